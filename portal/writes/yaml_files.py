"""New documents, and edits of people's own: what differs is changed, every other byte stays. Pure.

Held by tests/portal/writes/test_yaml_files.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from portal.http.errors import conflict
from portal.writes.write_request import Tree
from reconciler.documents.yaml_edit import Field, with_field
from schemas.documents.base import API_VERSION, Document
from schemas.reading.reader import read_document
from schemas.reading.yaml_text import dump
from schemas.rules.problems import Problem

Kind = TypeVar("Kind", bound=Document)


def new_document(kind: str, name: str, spec: Mapping[str, Any]) -> bytes:
    """The file of a document with these fields; what is None is left out."""
    given = {field: value for field, value in spec.items() if value is not None}
    return dump({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": given}).encode()


def fields_of(model: BaseModel) -> dict[str, Any]:
    """What a file says of it: fields as files name them, without those that say nothing new."""
    return model.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def with_changes(data: bytes, place: Field, old: BaseModel, new: BaseModel) -> bytes:
    """The document with what differs between the two below `place`; a value that became its default leaves the file."""
    before, after = fields_of(old), fields_of(new)
    for field in sorted(before.keys() | after.keys()):
        if before.get(field) != after.get(field):
            data = with_field(data, (*place, field), after.get(field))
    return data


def standing(tree: Tree, path: str, kind: type[Kind]) -> tuple[bytes, Kind] | None:
    """The file there and what it says; None: there is none. ApiError 409 for one that cannot be read."""
    data = tree.read(path)
    if data is None:
        return None
    found = read_document(path, data)
    if isinstance(found, kind):
        return data, found
    raise conflict(f"{path} does not read as it is: {_said(found)}; mend the file in the repository first")


def _said(found: object) -> str:
    problems = [p.message for p in found if isinstance(p, Problem)] if isinstance(found, tuple) else []
    return "; ".join(problems[:3]) or "it is of another kind"
