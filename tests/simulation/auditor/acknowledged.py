"""Laws on what people pushed: in calm each pushed document shows in the status branch (docs/reference/kinds/gpr.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.auditor.commits import OVER
from tests.simulation.auditor.due import OVERDUE, Delays
from tests.simulation.auditor.reading import Page, Published, Status, document

SEEN = timedelta(minutes=3)
"""A webhook and a cycle; a push budget of two a minute may keep a commit back."""
_FILE = re.compile(r"slices/([^/]+)/gprs/([^/]+)\.yaml")
_SLICE = re.compile(r"slices/([^/]+)/slice\.yaml")
_APPROVAL = re.compile(r"approvals/([^/]+)/([^/]+)/[^/]+\.yaml")


@dataclass(slots=True)
class Main:
    """What people wrote, by path, and since when it has been there."""

    since: dict[str, datetime] = field(
        default_factory=dict
    )  # of a request's file and approvals, by slice/name
    specs: dict[str, Any] = field(default_factory=dict)  # of requests, by slice/name; None: not readable
    quotas: dict[str, int] = field(default_factory=dict)
    approvals: dict[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def read_main(published: Published, commit: str, before: Main | None, now: datetime) -> Main:
    """Main at that commit; unchanged files come from before."""
    files = published.files(commit)
    main = Main({} if before is None else dict(before.since), files=files)
    known = {} if before is None else before.files
    for path, blob in files.items():
        is_same = before is not None and known.get(path) == blob
        if (found := _FILE.fullmatch(path)) is not None:
            key = f"{found[1]}/{found[2]}"
            main.specs[key] = before.specs[key] if is_same and before else _spec(published.text(blob))
            if not is_same:
                main.since[key] = now
        elif (found := _SLICE.fullmatch(path)) is not None:
            quota = (_spec(published.text(blob)) or {}).get("quota") or {}
            if "gpus" in quota:
                main.quotas[found[1]] = quota["gpus"]
        elif (found := _APPROVAL.fullmatch(path)) is not None:
            key = f"{found[1]}/{found[2]}"
            main.approvals[key] = _spec(published.text(blob))
            if not is_same:
                main.since[key] = now
    return main


def _spec(text: str) -> Any:
    found = document(text)
    is_whole = isinstance(found, dict) and "metadata" in found
    return found.get("spec") if is_whole else None


def missing(page: Page, main: Main, delays: Delays, now: datetime, look: timedelta) -> Iterator[str]:
    """What was acknowledged and does not show, although nothing was wrong meanwhile."""
    for key, spec in main.specs.items():
        status, since = page.requests.get(key), main.since[key]
        if spec is None or now - since < SEEN + look or delays(since - OVERDUE - look * 2, now):
            continue
        if status is None:
            yield f"{key} was filed at {since:%H:%M:%S} and has no status"
        elif spec.get("earlyRelease") and status["phase"] not in OVER | {"Releasing"}:
            yield f"{key} was released and is {status['phase']}"
        elif spec.get("stopped") and status["phase"] in {"Provisioning", "Provisioned"} and _leaves(status):
            yield f"{key} was stopped and is {status['phase']}"
        elif status["phase"] == "PendingApproval" and _is_approved(status, main.approvals.get(key)):
            yield f"{key} was approved and is still {status['phase']}"
        elif _asks_otherwise(status, spec):
            yield f"{key} asks for {spec.get('nodes')} nodes and its status accepted {_accepted(status)}"


def _leaves(status: Status) -> bool:
    return not status.get("eviction")


def _is_approved(status: Status, approval: Any) -> bool:
    if not approval or approval.get("decision") != "approve":
        return False
    return bool(approval.get("specDigest") == status["specDigest"])


def _accepted(status: Status) -> Any:
    return status["acceptedSpec"]["nodes"]


def _asks_otherwise(status: Status, spec: Mapping[str, Any]) -> bool:
    """A waiting request is what its file asks for, unless a condition says why not."""
    waits = status["phase"] in {"Queued", "PendingApproval"} and not status.get("conditions")
    return waits and spec.get("nodes", 1) != _accepted(status)


def beyond_quota(before: Page | None, after: Page, main: Main | None) -> Iterator[str]:
    """Beyond its slice's quota a request holds nodes only with an approval."""
    for key, status in after.requests.items():
        was = None if before is None else before.requests.get(key)
        quota = None if main is None else main.quotas.get(key.partition("/")[0])
        if status["phase"] != "Provisioning" or quota is None or (was and was["phase"] == "Provisioning"):
            continue
        gpus = 8 * len(status["assignment"]["nodes"])
        decision = (status.get("approval") or {}).get("decision")
        if gpus > quota and decision != "approve":
            yield f"{key} gets {gpus} GPUs, its slice's quota is {quota} and the decision is {decision}"
