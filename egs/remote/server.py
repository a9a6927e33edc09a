"""The backend for a server: each command is one request, or a few, of the HTTP API (docs/reference/api.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from egs.commands.backend import Access, Ways
from egs.commands.limits import not_here
from egs.commands.output import Form, Row
from egs.remote import asking, changes, filed_jobs, sharing
from egs.remote.fields import named, quotes, wired

_WORKSPACE = {"slice": "sliceName"}
_LISTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "gprs": ("tables/gprs", _WORKSPACE),
    "queue": ("queue", _WORKSPACE),
    "jobs": ("tables/jobs", _WORKSPACE),
    "endpoints": ("tables/endpoints", _WORKSPACE),
    "events": ("events", {"grep": "q"}),
    "problems": ("problems", {}),
    "workloads": ("workloads", _WORKSPACE),
    "gpus": ("metrics/gpus", {**_WORKSPACE, "grep": "q"}),
    "alerts": ("alerts", _WORKSPACE),
}
"""Path and filter names of the kinds that differ from `tables/KIND` and the command's own names."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server that the command line chose (`egs.modes`)."""

    at: str | None = None
    """The past state to read; None: the present."""

    quotes = staticmethod(quotes)
    create = staticmethod(changes.create)
    edit = staticmethod(changes.edit)
    release = staticmethod(changes.release)
    cancel = staticmethod(changes.cancel)
    restore = staticmethod(changes.restore)
    slice_parts = staticmethod(sharing.slice_parts)
    delete_slice = staticmethod(sharing.delete_slice)
    remove_member = staticmethod(sharing.remove_member)
    decide = staticmethod(sharing.decide)
    keys = staticmethod(sharing.keys)
    revoke_key = staticmethod(sharing.revoke_key)

    def rows(self, kind: str, filters: Mapping[str, Any]) -> list[Row]:
        path, renamed = _LISTS.get(kind, (f"tables/{kind}", {}))
        sent = {name: value for name, value in filters.items() if name != "limit" and value is not False}
        given = {renamed.get(name, name): value for name, value in sent.items()}
        found = asking.pages(path, {**given, "at": self.at}, filters.get("limit"))
        return [without_id(row) for row in found] if kind == "queue" else list(found)

    def whole(self, kind: str, name: str) -> Row:
        shown = named(name) if kind == "gpr" else name
        return _row(asking.get(f"tables/{kind}", {"name": shown, "at": self.at}))

    def calendar(self, filters: Mapping[str, Any]) -> Row:
        given = {name: filters[name] for name in ("from", "hours", "cluster", "pool", "shape")}
        given |= {"sliceName": filters["slice"], "free": filters["free"] or None, "at": self.at}
        return asking.windows("calendar", given)

    def plan(self, ref: str | None, against: str | None) -> Row:
        found = asking.get("plan", {"at": self.at})
        return {**found, **{part: list(map(without_id, found[part])) for part in ("requests", "refused")}}

    def instance(self, file: str, pools: Sequence[str], form: str, is_fair: bool) -> int:
        raise not_here("--instance of egs plan")

    def what_if(
        self, manifests: Mapping[str, str], edits: Sequence[tuple[str, Sequence[str]]], ended: Sequence[str]
    ) -> Row:
        found = [
            *(
                {"do": "edit", "gprId": named(request), **changes.assignments(words)}
                for request, words in edits
            ),
            *({"do": "end", "gprId": named(request)} for request in ended),
        ]
        return _row(asking.send("POST", "whatif", {"manifests": list(manifests.values()), "changes": found}))

    def run_job(
        self, text: str, about: Mapping[str, str | None], terms: Mapping[str, Any], *, is_trial: bool
    ) -> Row:
        return filed_jobs.run(text, about, terms, is_trial=is_trial)

    def delete_job(self, workload: str) -> None:
        filed_jobs.delete(workload)

    def create_endpoint(self, endpoint: str, gpr: str, spec: Mapping[str, Any], *, is_trial: bool) -> str:
        slice_, _, name = named(endpoint).partition("/")
        body = {
            "sliceName": slice_,
            "name": name,
            "gprId": f"{slice_}/{gpr}",
            "spec": spec,
            "dryRun": is_trial,
        }
        done = asking.send("POST", "endpoints", body)
        if not is_trial:
            changes.report(f"Serve {done['name']}", done["change"])
        return str(done["text"])

    def promote_endpoint(self, endpoint: str, version: str, percent: int) -> None:
        body = {"version": version, "weight": percent}
        done = asking.send("POST", f"endpoints/{named(endpoint)}/promote", body)
        changes.report(f"Promote {version} of {endpoint} to {percent} %", done["change"])

    def roll_back_endpoint(self, endpoint: str) -> None:
        done = asking.send("POST", f"endpoints/{named(endpoint)}/rollback", {})
        changes.report(f"Roll back {endpoint}", done["change"])

    def why(self, request: str) -> Row:
        return without_id(asking.get("gpr/why", {"gprId": named(request)}))

    def diagnosis(self, workload: str, slice_: str | None) -> Row:
        from urllib.parse import quote

        return _row(asking.get(f"workloads/{quote(workload)}/diagnosis", {"sliceName": slice_}))

    def advice(self, slice_: str, terms: Mapping[str, Any]) -> Row:
        from urllib.parse import quote

        shapes = {"gpuShape": ",".join(terms["gpuShape"] or ())}
        return _row(asking.get(f"advice/{quote(slice_, safe='')}", {**terms, **shapes}))

    def insights(self, days: int) -> Row:
        return _row(asking.get("insights", {"days": days}))

    def undo(self, commit: str, *, is_trial: bool) -> Row:
        return changes.undo(commit, is_trial=is_trial)

    def blame(self, thing: str, field: str | None, limit: int) -> Row:
        what = {"path": thing} if thing.endswith(".yaml") else {"gprId": named(thing)}
        return _row(asking.get("blame", {**what, "field": field, "limit": limit}))

    def differences(self, first: str, second: str | None) -> Row:
        return _row(asking.get("diff", {"from": first, "to": second}))

    def in_clusters(self, ways: Ways, form: Form) -> int:
        raise not_here("egs diff without FROM")

    def promises(self, months: int) -> Row:
        return _row(asking.get("promises", {"months": months}))

    def watch(self, slice_: str | None, gpr: str | None, every_s: int) -> Iterable[Row | None]:
        from egs.remote.streams import followed

        request = gpr if gpr is None or "/" in gpr or slice_ is None else f"{slice_}/{gpr}"
        return followed(slice_, request, every_s)

    def change(self, request: str, fields: Mapping[str, Any], subject: str) -> None:
        given = {
            name: False if (name, value) == ("stopped", None) else value for name, value in fields.items()
        }
        changes.changed(request, wired(given), subject)

    def request_slice(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> None:
        sharing.request_slice(name, about)

    def create_slice(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> None:
        sharing.create_slice(name, about)

    def add_member(
        self, name: str, mail: str, *, is_owner: bool, keys: tuple[Path, ...], forge: str | None
    ) -> None:
        sharing.add_member(name, mail, is_owner=is_owner)

    def create_key(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> str:
        return sharing.create_key(name, about)

    def kubeconfig(self, slice_: str, cluster: str, access: Access) -> str:
        return sharing.kubeconfig(slice_, cluster)

    def portal(self, port: int, show: Callable[[str], None]) -> None:
        show(asking.send("POST", "auth/ticket", {})["url"])


def _row(found: Any) -> Row:
    row: Row = found
    return row


def without_id(row: Row) -> dict[str, Any]:
    """The row as on a repository, where requests have no id."""
    return {name: value for name, value in row.items() if name != "gprId"}
