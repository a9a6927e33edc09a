"""Workloads filed and deleted over the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from egs.commands.errors import wrong_use
from egs.commands.output import Row
from egs.remote import asking
from egs.remote.changes import report, where_it_is
from egs.remote.fields import wired


def run(text: str, about: Mapping[str, str | None], terms: Mapping[str, Any], *, is_trial: bool) -> Row:
    """File a workload, and its request unless `about` names one."""
    slice_, name = about["slice"] or _only_slice(), str(about["name"])
    gpr = f"{slice_}/{about['gpr'] or name}"
    body: dict[str, Any] = {
        "sliceName": slice_,
        "name": name,
        "manifests": text,
        "namespace": about["namespace"],
    }
    body |= {"gprDetails": wired(terms)} if about["gpr"] is None else {"gprId": gpr}
    filed = asking.send("POST", "workloads", {**body, "dryRun": is_trial})
    change = filed.get("change") or {}
    if not is_trial:
        report(f"Run {filed['name']}", change)
    made = {"slice": slice_, "gpr": gpr, "workload": filed["name"], "text": filed["text"]}
    return {**made, **where_it_is(change)}


def delete(workload: str) -> None:
    done = asking.send("DELETE", "workloads", {"name": workload})
    report(f"Delete workload {workload}", done["change"])


def _only_slice() -> str:
    """The slice of a caller who sees one."""
    known = sorted(row["name"] for row in asking.pages("tables/slices", {}))
    if len(known) != 1:
        raise wrong_use(f"name the slice with --slice: {', '.join(known) or 'there is none'}")
    return str(known[0])
