"""Kubernetes objects as people write them, and the file of a workload with these objects. Pure.

Held by tests/reconciler/documents/test_manifest_text.py: no text, however deep or often it refers to itself, costs
more than a file may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent

from reconciler.documents.yaml_edit import new_document
from schemas.documents.workload import Manifest
from schemas.errors import UserError
from schemas.reading.strict_yaml import FORBIDDEN, MAX_BYTES, MAX_DEPTH, MAX_NODES

_TOO_LARGE = (
    f"the objects have more than {MAX_NODES} values, or nest more than {MAX_DEPTH} deep, as a value that contains "
    "itself does; write it out without the alias"
)
_WHOLE = 2**63
"""Whole numbers of Kubernetes lie below it, and not below its negative."""


class NotManifests(UserError):  # noqa: N818 - a refusal is an answer
    """The text has no Kubernetes objects, or says something that YAML readers understand differently."""

    reason = "NotManifests"


def workload_file(
    slice_: str, name: str, gpr: str, namespace: str | None, manifests: Sequence[Manifest]
) -> bytes:
    """The file of a workload; its rules judge it when it is read."""
    spec = {"slice": slice_, "gpr": gpr, "namespace": namespace, "manifests": manifests}
    return new_document("Workload", name, spec)


def endpoint_file(slice_: str, name: str, gpr: str, spec: Mapping[str, Any]) -> bytes:
    """The file of an endpoint; its rules judge it when it is read.

    Raises NotManifests if `spec`, the fields beside slice and gpr, has these two, or what JSON could not carry.
    """
    if both := sorted({"slice", "gpr"} & spec.keys()):
        raise NotManifests(f"leave {both[0]} out of spec: it is named beside it")
    if spec:
        checked([spec])
    return new_document("Endpoint", name, {"slice": slice_, "gpr": gpr, **spec})


def manifests_of(text: str) -> list[Manifest]:
    """The objects of a text with one or more YAML documents. Raises NotManifests."""
    if len(text) > MAX_BYTES:
        raise NotManifests(f"the objects have {len(text)} characters, at most {MAX_BYTES} are allowed")
    try:
        _check_extent(text)
        found = [each for each in yaml.load_all(text, yaml.CSafeLoader) if each is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise NotManifests(f"the file is not YAML: {str(error).splitlines()[0]}") from error
    return checked(found)


def checked(found: Sequence[Any]) -> list[Manifest]:
    """The objects themselves. Raises NotManifests if there is none, or one that JSON could not carry."""
    if not found or not all(isinstance(each, dict) for each in found):
        raise NotManifests(
            "the file has no Kubernetes objects; each is a mapping with apiVersion, kind and metadata"
        )
    for number, (value, depth) in enumerate(_values(found)):
        if number > MAX_NODES or depth > MAX_DEPTH:
            raise NotManifests(_TOO_LARGE)
        _check_value(value)
    return list(found)


@dataclass(slots=True, eq=False)
class _Extent:
    """What a value has with its aliases written out: nodes, keys among them, and levels of collections."""

    nodes: int = 1
    levels: int = 0

    def add(self, inner: _Extent) -> None:
        self.nodes += inner.nodes
        self.levels = max(self.levels, inner.levels + 1)


def _check_extent(text: str) -> None:
    """Before anything is built of it: builders call themselves for each level, and copy all that `<<` merges."""
    known: dict[str | None, _Extent] = {}  # by anchor
    opened = [_Extent()]  # the text itself, then the collections around the event
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, CollectionStartEvent):
            opened.append(_Extent(levels=1))
            known[event.anchor] = opened[-1]
            if len(opened) - 1 > MAX_DEPTH:
                raise NotManifests(f"the objects nest more than {MAX_DEPTH} deep")
        elif isinstance(event, CollectionEndEvent):
            inner = opened.pop()
            opened[-1].add(inner)
        elif isinstance(event, AliasEvent):
            inner = known.get(event.anchor, _Extent())
            if inner in opened or len(opened) - 1 + inner.levels > MAX_DEPTH:
                raise NotManifests(_TOO_LARGE)
            opened[-1].add(inner)
        elif isinstance(event, ScalarEvent):
            known[event.anchor] = _Extent()
            opened[-1].add(known[event.anchor])
        if opened[-1].nodes > 2 * MAX_NODES:  # each value of a mapping has a key
            raise NotManifests(_TOO_LARGE)


def _values(found: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """Every value with its depth; of one that contains itself without end."""
    ahead: list[tuple[Any, int]] = [(each, 1) for each in found]
    while ahead:
        value, depth = ahead.pop()
        yield value, depth
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        ahead.extend((each, depth + 1) for each in inner)


def _check_value(value: Any) -> None:
    """YAML readers disagree about unquoted words such as `on` and dates: these must be quoted."""
    for text in value if isinstance(value, dict) else (value,):
        if isinstance(value, dict) and not isinstance(text, str):
            raise NotManifests(
                f"the file has the key {_told(text)}, which is no text; quote it as it is meant"
            )
        if isinstance(text, str) and (found := FORBIDDEN.search(text)) is not None:
            raise NotManifests(
                f"the objects have the character U+{ord(found[0]):04X}, which no file may have"
            )
    if isinstance(value, int) and not -_WHOLE <= value < _WHOLE:
        raise NotManifests(
            "the file has a whole number of more than 64 bits, which no reader takes; quote it"
        )
    if isinstance(value, float) and not isfinite(value):
        raise NotManifests(f"the file has the value {value}, which is no number to every reader; quote it")
    if not isinstance(value, dict | list | str | int | float | bool | None):
        raise NotManifests(f"the file has the value {_told(value)}, which is no text or number; quote it")


def _told(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return f"of type {type(value).__name__}"
