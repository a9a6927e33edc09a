"""Reads a protobuf message as its fields, by number: enough for the few messages of the kubelet.

Pure. Unknown fields are kept and ignored by the caller, so that newer kubelets are understood. Groups do not exist in
proto3 and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.errors import Fault

Fields = Mapping[int, list[int | bytes]]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10


def fields_of(data: bytes) -> Fields:
    """Every field's values in their order: integers, or bytes of strings and messages.

    Raises `Fault` (`BadMessage`) for what is no message.
    """
    found: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        value: int | bytes
        if kind == VARINT:
            value, at = _varint(data, at)
        elif kind in (LENGTH, FIXED64, FIXED32):
            size, at = _varint(data, at) if kind == LENGTH else ((8 if kind == FIXED64 else 4), at)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise _bad("ends within a field")
        else:
            raise _bad(f"has a field of kind {kind}")
        found.setdefault(number, []).append(value)
    return found


def texts(fields: Fields, number: int) -> list[str]:
    """The strings of a field."""
    return [value.decode("utf-8", "replace") for value in messages(fields, number)]


def text(fields: Fields, number: int) -> str:
    """A string; empty if absent, which proto3 does not tell apart."""
    return (texts(fields, number) or [""])[-1]


def messages(fields: Fields, number: int) -> list[bytes]:
    """The messages of a field, to be read in turn."""
    return [value for value in fields.get(number, ()) if isinstance(value, bytes)]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(LONGEST_VARINT):
        if at >= len(data):
            raise _bad("ends within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at
    raise _bad("has a number without an end")


def _bad(what: str) -> Fault:
    return Fault(f"the kubelet's answer {what}", "BadMessage")
