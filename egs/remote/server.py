"""The backend for a server: each command is one request, or a few, of the HTTP API (docs/api.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from egs.commands.errors import wrong_use
from egs.commands.output import Row
from egs.remote import asking

_WORKSPACE = {"slice": "sliceName"}
_LISTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "gprs": ("tables/gprs", _WORKSPACE),
    "queue": ("queue", _WORKSPACE),
    "events": ("events", {"grep": "q"}),
    "problems": ("problems", {}),
    "workloads": ("workloads", _WORKSPACE),
}
"""Where the rows of a kind are, and what its filters are called there; by default `tables/KIND` and the same names."""


class Server:
    """The server that the command line chose (`egs.modes`)."""

    def rows(self, kind: str, filters: Mapping[str, Any]) -> list[Row]:
        path, renamed = _LISTS.get(kind, (f"tables/{kind}", {}))
        given = {renamed.get(name, name): value for name, value in filters.items() if name != "limit"}
        found = asking.pages(path, given, filters.get("limit"))
        return [without_id(row) for row in found] if kind == "queue" else list(found)

    def whole(self, kind: str, name: str) -> Row:
        return _row(asking.get(f"tables/{kind}", {"name": named(name) if kind == "gpr" else name}))


def _row(found: Any) -> Row:
    """JSON of the server, which has the fields that docs/api.md names."""
    row: Row = found
    return row


def without_id(row: Row) -> dict[str, Any]:
    """The row as a repository has it, where requests are named and have no id."""
    return {name: value for name, value in row.items() if name != "gprId"}


def named(request: str) -> str:
    """The request as the server names it. Raises Said where it is no SLICE/GPR."""
    if request.count("/") != 1 or not all(request.split("/")):
        raise wrong_use(f"{request} names no request; write SLICE/GPR, for example vision/train")
    return request
