"""Values from JSON, lists of them, and how both are displayed.

A record is a frozen dataclass whose fields all have defaults, so answers with fewer or more fields are understood.
Fields have Python names; `wire` gives the name in JSON if it is not the same in camelCase.

Held by tests/egs/test_sdk_data.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from html import escape
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast, dataclass_transform

T = TypeVar("T")

MOST_ROWS = 200
"""Most rows of a list in a notebook."""


def wire(
    name: str = "",
    *,
    default: Any,
    read: Callable[[Any], Any] | None = None,
    usual: Any = None,
    repr: bool = True,
) -> Any:
    """A field with the JSON name `name`; `read` converts its value.

    `usual`: a value that is left out when the record is displayed; a function computes it from the record.
    """
    return dataclasses.field(
        default=default, metadata={"wire": name, "read": read, "usual": usual}, repr=repr
    )


@dataclass_transform(frozen_default=True, field_specifiers=(wire, dataclasses.field), kw_only_default=False)
def record(kind: type[T]) -> type[T]:
    """A frozen dataclass with slots; its class is a `Record`."""
    return dataclasses.dataclass(frozen=True, slots=True, repr=False)(kind)


class Record:
    """Methods of every record."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values for `json.dumps`, under its field names, recursively."""
        return {
            field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(cast(Any, self))
        }

    def __repr__(self) -> str:
        """Type and fields without defaults."""
        inner = ", ".join(f"{name}={held!r}" for name, held in _said(self).items())
        return f"{type(self).__name__}({inner})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(_cell(held))}</td></tr>"
            for name, held in _said(self).items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(held) for name, held in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def of(kind: type[T], data: Any) -> T:
    """A record from JSON; absent fields keep their defaults."""
    given = data if isinstance(data, Mapping) else {}
    values = {}
    for field in dataclasses.fields(cast(Any, kind)):
        value = given.get(wire_name(field))
        if value is not None:
            read = field.metadata.get("read")
            values[field.name] = read(value) if read else value
    return kind(**values)


def each(kind: type[T]) -> Callable[[Any], Items[T]]:
    """A reader for a list of such records; the message beside it is kept."""

    def read(data: Any) -> Items[T]:
        found = Items(of(kind, row) for row in data or ())
        found.message = getattr(data, "message", "")
        return found

    return read


def one(kind: type[T]) -> Callable[[Any], T]:
    """A reader for one such record."""
    return lambda data: of(kind, data)


def wire_name(field: dataclasses.Field[Any]) -> str:
    """The JSON name of a field."""
    return field.metadata.get("wire") or camel(field.name)


def camel(name: str) -> str:
    """`free_nodes` in JSON: `freeNodes`."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def same_as(name: str) -> Any:
    """The field of that name under another, documented name."""
    return property(attrgetter(name))


def _said(value: Any) -> dict[str, Any]:
    """The fields that differ from their default and usual values."""
    shown = (f for f in dataclasses.fields(value) if f.repr and not _is_nothing(value, f))
    return {f.name: getattr(value, f.name) for f in shown}


def _is_nothing(value: Any, field: dataclasses.Field[Any]) -> bool:
    held, usual = getattr(value, field.name), field.metadata.get("usual")
    if held == field.default or (isinstance(held, (list, tuple, dict)) and not held):
        return True
    return usual is not None and bool(held == (usual(value) if callable(usual) else usual))


def _cell(value: Any) -> str:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return "" if value is None else str(value)


class Items(list[T], Generic[T]):
    """A list, also available as `.items`; a table in a notebook."""

    message: str = ""
    """The server's message, for example why the list is empty; usually none."""

    @property
    def items(self) -> list[T]:
        return self

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name, as `pandas.DataFrame` and its like take them; inner fields as `limits.tempC`."""
        rows = [_flat(row.to_dict() if isinstance(row, Record) else row) for row in self]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}

    def __repr__(self) -> str:
        """One line per item."""
        if len(self) < 2:
            return list.__repr__(self)
        return "[\n" + "".join(f"  {row!r},\n" for row in self) + "]"

    def _repr_html_(self) -> str:
        return table(self)


def _flat(row: Any, head: str = "") -> dict[str, Any]:
    """Nested values under dotted names; lists stay as they are."""
    found: dict[str, Any] = {}
    for name, value in row.items() if isinstance(row, Mapping) else (("value", row),):
        found |= (
            _flat(value, f"{head}{name}.")
            if isinstance(value, Mapping) and value
            else {f"{head}{name}": value}
        )
    return found


def table(rows: Iterable[Any]) -> str:
    """HTML table of records of one kind, with the columns that have any value."""
    shown = list(rows)
    said = [_said(row) if dataclasses.is_dataclass(row) else {"value": row} for row in shown[:MOST_ROWS]]
    columns = list(dict.fromkeys(name for row in said for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in columns) + "</tr>"
        for row in said
    )
    more = f"<p>… and {len(shown) - MOST_ROWS} more</p>" if len(shown) > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class Answered(dict[str, Any]):
    """JSON from the server, for reports; a table in a notebook."""

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(_cell(v))}</td></tr>" for k, v in self.items())
        return f"<table>{rows}</table>"


@record
class Change(Record):
    """Where a change is now: on main (`pushed`), proposed for merging, or `accepted` and on its way.

    `unchanged`: everything was as wanted, so nothing was written.
    """

    way: str = ""
    commit: str = ""
    branch: str = ""
    url: str = ""
    """Where to see or follow it."""


class Named(str):
    """The name or id of a new object: a string with `.change`, which says where the change is now."""

    change: Change

    def __new__(cls, text: str, change: Change) -> Named:
        made = super().__new__(cls, text)
        made.change = change
        return made
