"""Adds and removes one entry of a list in a person's YAML file, leaving every other line as it is. Pure.

In a block-style list only the entry's lines change; any other list is written again.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

from reconciler.documents.yaml_edit import Field, last_character, reads_as, with_field
from schemas.reading.strict_yaml import load
from schemas.reading.yaml_text import dump


def with_item(data: bytes, field: Field, item: Any) -> bytes:
    """The document with one more entry at the end of that list; `data` passes the strict loader."""
    items = [*_items(load(data), field), item]
    text, node = _found(data, field)
    if isinstance(node, SequenceNode) and not node.flow_style and node.value:
        end = text.index("\n", last_character(text, node.value[-1])) + 1
        edited = text[:end] + _entry(item, node.start_mark.column) + text[end:]
        if reads_as(edited.encode(), _with(data, field, items)):
            return edited.encode()
    return with_field(data, field, items)


def without_item(data: bytes, field: Field, place: int) -> bytes:
    """The document without that entry of the list."""
    items = _items(load(data), field)
    del items[place]
    text, node = _found(data, field)
    if isinstance(node, SequenceNode) and not node.flow_style and items:
        begin = text.rfind("\n", 0, node.value[place].start_mark.index) + 1
        end = text.index("\n", last_character(text, node.value[place])) + 1
        edited = (text[:begin] + text[end:]).encode()
        if reads_as(edited, _with(data, field, items)):
            return edited
    return with_field(data, field, items or None)


def _items(document: Any, field: Field) -> list[Any]:
    for step in field:
        document = document.get(step) or {}
    return list(document)


def _with(data: bytes, field: Field, items: list[Any]) -> Any:
    document: Any = deepcopy(load(data))
    inner = document
    for step in field[:-1]:
        inner = inner[step]
    inner[field[-1]] = items
    return document


def _found(data: bytes, field: Field) -> tuple[str, Node | None]:
    text = data.decode()
    text += "" if text.endswith("\n") else "\n"
    node: Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    for step in field:
        pairs = node.value if isinstance(node, MappingNode) else ()
        node = next((value for key, value in pairs if key.value == step), None)
    return text, node


def _entry(item: Any, column: int) -> str:
    lines = dump(item).splitlines()
    indent = " " * column
    return "".join(f"{indent}{'- ' if i == 0 else '  '}{line}\n" for i, line in enumerate(lines))
