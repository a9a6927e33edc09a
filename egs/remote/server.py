"""The backend for a server: each command is one request, or a few, of the HTTP API (docs/api.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from egs.commands.backend import Access, Decision, Filed
from egs.commands.limits import not_here
from egs.commands.output import Row
from egs.remote import asking, changes, sharing
from egs.remote.fields import named, quotes, wired

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

    def plan(self, ref: str | None, against: str | None) -> Row:
        found = asking.get("plan")
        return {**found, **{part: list(map(without_id, found[part])) for part in ("requests", "refused")}}

    def instance(self, file: str, pools: Sequence[str], form: str, is_fair: bool) -> int:
        raise not_here("--instance of egs plan")

    def quotes(self, slice_: str, terms: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
        return quotes(slice_, terms)

    def why(self, request: str) -> Row:
        return without_id(asking.get("gpr/why", {"gprId": named(request)}))

    def insights(self, days: int) -> Row:
        return _row(asking.get("insights", {"days": days}))

    def watch(self, slice_: str | None, gpr: str | None, every_s: int) -> Iterable[Row]:
        from egs.remote.streams import followed

        return followed(slice_, gpr if gpr is None or "/" in gpr or slice_ is None else f"{slice_}/{gpr}")

    def create(self, request: str, terms: Mapping[str, Any], *, is_trial: bool) -> Filed:
        return changes.create(request, terms, is_trial=is_trial)

    def edit(self, request: str, words: Sequence[str]) -> None:
        changes.edit(request, words)

    def change(self, request: str, fields: Mapping[str, Any], subject: str) -> None:
        given = {
            name: False if (name, value) == ("stopped", None) else value for name, value in fields.items()
        }
        changes.changed(request, wired(given), subject)

    def release(self, request: str) -> None:
        changes.release(request)

    def cancel(self, request: str) -> None:
        changes.cancel(request)

    def restore(self, request: str) -> None:
        changes.restore(request)

    def request_slice(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> None:
        sharing.request_slice(name, about)

    def create_slice(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> None:
        sharing.create_slice(name, about)

    def slice_parts(self, name: str) -> Row:
        return sharing.slice_parts(name)

    def delete_slice(self, name: str) -> None:
        sharing.delete_slice(name)

    def add_member(
        self, name: str, mail: str, *, is_owner: bool, keys: tuple[Path, ...], forge: str | None
    ) -> None:
        sharing.add_member(name, mail, is_owner=is_owner)

    def remove_member(self, name: str, mail: str) -> None:
        sharing.remove_member(name, mail)

    def decide(self, request: str, decision: Decision) -> None:
        sharing.decide(request, decision)

    def keys(self) -> list[Row]:
        return sharing.keys()

    def create_key(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> str:
        return sharing.create_key(name, about)

    def revoke_key(self, name: str) -> None:
        sharing.revoke_key(name)

    def kubeconfig(self, slice_: str, cluster: str, access: Access) -> str:
        return sharing.kubeconfig(slice_, cluster)


def _row(found: Any) -> Row:
    """JSON of the server, which has the fields that docs/api.md names."""
    row: Row = found
    return row


def without_id(row: Row) -> dict[str, Any]:
    """The row as a repository has it, where requests are named and have no id."""
    return {name: value for name, value in row.items() if name != "gprId"}
