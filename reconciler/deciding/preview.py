"""The facts as they would be if the controller ran now, without clusters. Pure.

Checks and commands use it: the controller's own functions judge each request's file and approvals, and
nothing is handed over.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from datetime import datetime

from reconciler.accounts.monthly_limits import bounded_outcomes, bounded_slices, unbounded_outcome
from reconciler.deciding.fold import deletions_to_hold
from reconciler.deciding.unchanged_requests import OF_ONE, differs_for_all, unsettled
from reconciler.documents.workspace_outcomes import workspace_turn
from reconciler.lifecycle.file_changes import file_outcome
from reconciler.model.facts import Context, Facts, Filed, Seen, Wanted
from reconciler.model.request_files import raw, with_filed
from reconciler.model.statuses import differing, records
from reconciler.planning.pool_choice import without_short_hours
from reconciler.planning.queue_place import placed
from reconciler.settings import DEFAULTS
from schemas.documents.cluster import is_same_but_for_maintenance
from schemas.status.gpr_status import GPRStatus

_SHARED = tuple(field.name for field in fields(Wanted) if field.name not in OF_ONE)
"""The fields that all requests read."""


class Looked:
    """Outcomes of the last look at one committed status and instant; see `preview`. One owner.

    Worth it by `benchmarks.cycle --only against`: without it `egs plan --against` costs 30 % more.
    """

    def __init__(self) -> None:
        self._found: dict[str, GPRStatus | None] = {}
        self._last: tuple[Facts, Wanted, Mapping[str, Filed], datetime] | None = None

    def known(
        self, committed: Facts, wanted: Wanted, filed: Mapping[str, Filed], now: datetime
    ) -> Mapping[str, GPRStatus | None]:
        """Those that would give the same again, by request: their inputs did not change."""
        if self._last is None:
            return {}
        before, was, files, at = self._last
        if before is not committed or at != now or differs_for_all(was, wanted):
            return {}
        moved = differing(raw(files), raw(filed)) | differing(was.decisions, wanted.decisions)
        moved |= differing(was.ignored_decisions, wanted.ignored_decisions)
        slices = differing(was.slices, wanted.slices)
        return {
            key: status
            for key, status in self._found.items()
            if key in committed.requests and key not in moved and key.partition("/")[0] not in slices
        }

    def keep(
        self,
        found: dict[str, GPRStatus | None],
        known: tuple[Facts, Wanted, Mapping[str, Filed], datetime],
    ) -> None:
        """All outcomes of a look, and what it was a look at."""
        self._found, self._last = found, known


def preview(
    committed: Facts,
    wanted: Wanted,
    now: datetime,
    filed_at: datetime | None = None,
    looked: Looked | None = None,
) -> Facts:
    """`committed` with every request's file and approvals processed again at `now`.

    A request without a record is filed at `filed_at` (None: at `now`); `looked` caches the previous preview.
    """
    looked = Looked() if looked is None else looked
    context = Context(now, DEFAULTS, wanted, Seen({}), committed.nodes)
    held, _ = deletions_to_hold(committed, wanted)
    filed = with_filed(wanted.filed, held)
    requests, bounded = records(committed.requests), bounded_slices(wanted)
    known, found = looked.known(committed, wanted, filed, now), dict[str, GPRStatus | None]()
    for key in sorted(unsettled(committed.requests, filed)):
        old = committed.requests.get(key)
        status = known[key] if key in known else _judged(key, filed.get(key), old, (context, bounded))
        found[key] = status
        if status is None:
            requests.pop(key, None)
            continue
        if old is None and filed_at is not None:
            status = status.edited(filed_at=filed_at)
        requests[key] = status
    looked.keep(found, (committed, wanted, filed, now))
    for key, outcome in bounded_outcomes(bounded, requests, committed.usage, context):
        if outcome.status is not None:
            requests[key] = outcome.status
    requests.sort()
    spaces, _ = workspace_turn(committed, wanted, now)
    after = replace(committed, at=now, intent=wanted.commit, requests=requests, workspaces=spaces)
    return placed(committed, after, wanted)


def _judged(
    key: str, filed: Filed | None, old: GPRStatus | None, among: tuple[Context, Collection[str]]
) -> GPRStatus | None:
    """The record after its file and approvals are processed; `among`: the context, and slices that are limited."""
    context, bounded = among
    status = file_outcome(key, filed, old, context).status
    if status is None or status.accepted_spec.slice in bounded:
        return status
    return unbounded_outcome(key, status, context).status


def alike(wanted: Wanted, known: Wanted) -> Wanted:
    """`wanted` with equal objects taken from `known`, so that derived results stay valid unless a cluster differs."""
    same = {
        name: there
        for name in _SHARED
        if (there := getattr(known, name)) is not (here := getattr(wanted, name)) and there == here
    }
    slices = {
        name: there if (there := known.slices.get(name)) == spec and there is not None else spec
        for name, spec in wanted.slices.items()
    }
    found = replace(wanted, **same, slices=slices)
    if found.clusters is known.clusters:
        return replace(found, worked_out=known.worked_out)
    if _is_quiet(found, known):
        return replace(found, worked_out=without_short_hours(known.worked_out))
    return found


def _is_quiet(wanted: Wanted, known: Wanted) -> bool:
    """Whether the clusters differ in maintenance alone, which no request is judged by."""
    here, there = wanted.clusters, known.clusters
    return here.keys() == there.keys() and all(
        is_same_but_for_maintenance(spec, there[name]) for name, spec in here.items()
    )
