"""Edits of existing documents that change only what differs. Pure."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

from portal.http.errors import conflict
from portal.writes.write_request import Tree
from reconciler.documents.yaml_edit import Field, with_field
from schemas.documents.base import Document
from schemas.reading.reader import read_document
from schemas.rules.problems import Problem

Kind = TypeVar("Kind", bound=Document)


def fields_of(model: BaseModel) -> dict[str, Any]:
    """The fields of a model under their file names, without defaults."""
    return model.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def with_changes(data: bytes, place: Field, old: BaseModel, new: BaseModel) -> bytes:
    """The document with the differences below `place`; a value that became its default is removed from the file."""
    before, after = fields_of(old), fields_of(new)
    for field in sorted(before.keys() | after.keys()):
        if before.get(field) != after.get(field):
            data = with_field(data, (*place, field), after.get(field))
    return data


def standing(tree: Tree, path: str, kind: type[Kind]) -> tuple[bytes, Kind] | None:
    """The file and its document; None: there is none. ApiError 409 if it cannot be read."""
    data = tree.read(path)
    if data is None:
        return None
    found = read_document(path, data)
    if isinstance(found, kind):
        return data, found
    raise conflict(f"{path} cannot be read: {_said(found)}; first repair the file in the repository")


def _said(found: object) -> str:
    problems = [p.message for p in found if isinstance(p, Problem)] if isinstance(found, tuple) else []
    return "; ".join(problems[:3]) or "it is a document of another kind"
