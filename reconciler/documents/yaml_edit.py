"""The text of new documents, and edits of one field that leave every other byte as it is. Pure.

An edit is read back: if it is not exactly the intended data, the whole document is written again, without
its comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from schemas.documents.base import API_VERSION
from schemas.reading.strict_yaml import Refused, load
from schemas.reading.yaml_text import dump

Field = tuple[str, ...]
"""Path of a value: `("spec", "network", "rdma")`."""

_BARE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./+@%-]*")
"""Texts that need no quotes inside `[…]` and `{…}`, unless YAML would read them as another type."""


def new_document(
    kind: str, name: str, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None
) -> bytes:
    """The file of a document with these fields; None values are left out."""
    metadata = {"name": name} | ({"labels": dict(labels)} if labels else {})
    given = {field: value for field, value in spec.items() if value is not None}
    return dump({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": given}).encode()


@dataclass(frozen=True, slots=True)
class _Cut:
    """Replaces the characters [begin, end) by `text`."""

    begin: int
    end: int
    text: str

    def of(self, whole: str) -> str:
        return whole[: self.begin] + self.text + whole[self.end :]


def with_field(data: bytes, field: Field, value: Any) -> bytes:
    """The document with that field set, or without it (None); `data` passes the strict loader."""
    intended = _set(load(data), field, value)
    text = data.decode()
    if not text.endswith("\n"):
        text += "\n"
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    cut = _cut(text, root, field, value) if isinstance(root, MappingNode) else None
    edited = data if cut is None else cut.of(text).encode()
    return edited if reads_as(edited, intended) else dump(intended).encode()


def reads_as(data: bytes, intended: Any) -> bool:
    """True if the bytes parse to exactly that."""
    try:
        return bool(load(data) == intended)
    except Refused:
        return False


def _set(document: Any, field: Field, value: Any) -> Any:
    """The same data with the field set; non-mappings on the path become mappings."""
    changed = deepcopy(document)
    inner = changed
    for step in field[:-1]:
        if not isinstance(inner.get(step), dict):
            if value is None:
                return changed
            inner[step] = {}
        inner = inner[step]
    if value is None:
        inner.pop(field[-1], None)
    else:
        inner[field[-1]] = value
    return changed


def _cut(text: str, mapping: MappingNode, field: Field, value: Any) -> _Cut | None:
    """The one replacement that sets the field; None if nothing changes."""
    key, rest = field[0], field[1:]
    pair = next((pair for pair in mapping.value if pair[0].value == key), None)
    if rest and pair is not None and isinstance(pair[1], MappingNode):
        return _cut(text, pair[1], rest, value)
    if value is None:
        return None if pair is None or rest else _removed(text, mapping, pair)
    for step in reversed(rest):
        value = {step: value}
    return _added(text, mapping, key, value) if pair is None else _replaced(text, pair, value)


def _replaced(text: str, pair: tuple[Node, Node], value: Any) -> _Cut:
    key, old = pair
    begin, end = old.start_mark.index, old.end_mark.index
    is_word = isinstance(old, ScalarNode) and old.style not in ("|", ">") and begin < end
    if is_word or getattr(old, "flow_style", False):
        return _Cut(begin, end, _inline(value, in_flow=False))
    # A value on its own lines, or no value: everything after the key's colon is replaced.
    colon = text.index(":", key.end_mark.index) + 1
    end = max(colon, last_character(text, old))
    return _Cut(colon, end, f" {_inline(value, in_flow=False)}")


def _added(text: str, mapping: MappingNode, key: str, value: Any) -> _Cut:
    if mapping.flow_style:
        end = mapping.end_mark.index - 1
        begin = len(text[:end].rstrip())
        comma = ", " if mapping.value else ""
        return _Cut(begin, end, f"{comma}{key}: {_inline(value, in_flow=True)}")
    line_end = text.index("\n", last_character(text, mapping)) + 1
    indent = " " * mapping.value[0][0].start_mark.column
    return _Cut(line_end, line_end, f"{indent}{key}: {_inline(value, in_flow=False)}\n")


def _removed(text: str, mapping: MappingNode, pair: tuple[Node, Node]) -> _Cut | None:
    if mapping.flow_style:
        rest = [other for other in mapping.value if other is not pair]
        inside = ", ".join(text[k.start_mark.index : v.end_mark.index] for k, v in rest)
        return _Cut(mapping.start_mark.index, mapping.end_mark.index, f"{{{inside}}}")
    if len(mapping.value) == 1:
        return None
    begin = text.rfind("\n", 0, pair[0].start_mark.index) + 1
    return _Cut(begin, text.index("\n", max(pair[0].end_mark.index, last_character(text, pair[1]))) + 1, "")


def last_character(text: str, node: Node) -> int:
    """The position of a value's last character; YAML's end mark of a block is after the comments that follow it."""
    if isinstance(node, ScalarNode) or getattr(node, "flow_style", False) or not node.value:
        end = int(node.end_mark.index)
        return len(text[:end].rstrip()) if isinstance(node, ScalarNode) and node.style in ("|", ">") else end
    last = node.value[-1]
    if not _has_value(last):
        return int(last[0].end_mark.index)
    return last_character(text, last[1] if isinstance(last, tuple) else last)


def _has_value(entry: Any) -> bool:
    """False for a key without a value, which has no position."""
    value = entry[1] if isinstance(entry, tuple) else entry
    return bool(value.value) or value.start_mark.index < value.end_mark.index


def _inline(value: Any, *, in_flow: bool) -> str:
    """A value on one line; inside brackets, texts are quoted unless they are plain words."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_inline(inner, in_flow=True)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_inline(item, in_flow=True) for item in value) + "]"
    if in_flow and isinstance(value, str) and not _BARE.fullmatch(value):
        return json.dumps(value, ensure_ascii=False)
    return dump(value).rstrip("\n")
