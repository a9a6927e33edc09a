"""Our own records as YAML text, written from a model's values at once: a flood of requests has a record for each.

The text is that of `yaml_text.dump` of the model's plain data, without empty fields. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from schemas.reading.strict_yaml import FORBIDDEN
from schemas.reading.units import format_duration, format_instant
from schemas.reading.yaml_text import add_block, scalar_text, string_text

_CAN_BE_EMPTY = (str, list, dict)


def record_text(content: BaseModel) -> str:
    """One record that is not empty, with a final line break."""
    lines: list[str] = []
    _add_fields(lines, content, "")
    lines.append("")
    return "\n".join(lines)


def without_empty(content: Any) -> Any:
    """Without empty lists, maps and texts; characters that our own reader refuses are replaced."""
    if isinstance(content, str):
        return _readable(content)
    if isinstance(content, dict):
        pairs = {k: without_empty(v) for k, v in content.items()}
        return {k: v for k, v in pairs.items() if v or not isinstance(v, _CAN_BE_EMPTY)}
    if isinstance(content, list):
        return [without_empty(v) for v in content]
    return content


def plain_data(content: BaseModel) -> dict[str, Any]:
    """Its fields as plain data, by their names in files; None is left out."""
    return content.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=False)


def _readable(text: str) -> str:
    # Nearly every text is plain, and this is the fastest test for it.
    return text if text.isascii() and text.isprintable() else FORBIDDEN.sub("\ufffd", text)


def _add_fields(lines: list[str], content: BaseModel, indent: str) -> None:
    values = content.__dict__
    for name, head in _heads(type(content), indent):
        value = values[name]
        if value is None:
            continue
        if (short := _SHORT.get(type(value))) is not None:
            if (text := short(value)) is not None:
                lines.append(f"{head} {text}")
        elif isinstance(value, BaseModel):
            lines.append(head)
            before = len(lines)
            _add_fields(lines, value, f"{indent}  ")
            if len(lines) == before:
                lines.pop()
        else:
            _add_long(lines, head, without_empty(_plain(value)), indent)


@lru_cache(maxsize=256)
def _heads(model: type[BaseModel], indent: str) -> tuple[tuple[str, str], ...]:
    """Each field's name in Python, and the begin of its line."""
    fields = model.model_fields.items()
    return tuple((name, f"{indent}{string_text(one.serialization_alias or name)}:") for name, one in fields)


def _text(value: str) -> str | None:
    """None: an empty text is left out."""
    return string_text(_readable(value)) if value else None


_SHORT: Mapping[type, Callable[[Any], str | None]] = {
    str: _text,
    bool: {True: "true", False: "false"}.__getitem__,
    int: str,
    datetime: format_instant,
    timedelta: format_duration,
}
"""The commonest types of values."""


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return plain_data(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, datetime):
        return format_instant(value)
    return format_duration(value) if isinstance(value, timedelta) else value


def _add_long(lines: list[str], head: str, value: Any, indent: str) -> None:
    if isinstance(value, dict | list) and value:
        lines.append(head)
        add_block(lines, value, f"{indent}  ", f"{indent}  ")
    elif not isinstance(value, _CAN_BE_EMPTY) or value:
        lines.append(f"{head} {scalar_text(value)}")
