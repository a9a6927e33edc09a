"""The facts as they would be if the controller ran now, without clusters. Pure.

A check or a command line shows what the controller would make of the same documents: each request's file and
approvals are processed by the controller's own functions; clusters are not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path

from reconciler.accounts.monthly_limits import bounded_slices, bounded_turns, unbounded_turn
from reconciler.deciding.fold import deletions_to_hold
from reconciler.deciding.unchanged_requests import OF_ONE, differs_for_all, unsettled
from reconciler.documents.workspace_outcomes import workspace_turn
from reconciler.lifecycle.file_changes import file_turn
from reconciler.model.facts import Facts, Filed, Scene, Seen, Wanted
from reconciler.model.request_files import raw, with_filed
from reconciler.model.statuses import differing, records
from reconciler.planning.queue_place import placed
from reconciler.settings import Settings
from schemas.status.gpr_status import GPRStatus

_SHARED = tuple(field.name for field in fields(Wanted) if field.name not in OF_ONE)
"""The fields that all requests read."""


class Looked:
    """Results of the last preview of one committed status and time; see `preview`. One owner."""

    def __init__(self) -> None:
        self._turns: dict[str, GPRStatus | None] = {}
        self._last: tuple[Facts, Wanted, Mapping[str, Filed], datetime] | None = None

    def known(
        self, committed: Facts, wanted: Wanted, filed: Mapping[str, Filed], now: datetime
    ) -> Mapping[str, GPRStatus | None]:
        """Results that are still valid, by request: nothing that they depend on has changed."""
        if self._last is None:
            return {}
        before, was, files, at = self._last
        if before is not committed or at != now or differs_for_all(was, wanted):
            return {}
        moved = differing(raw(files), raw(filed)) | differing(was.words, wanted.words)
        moved |= differing(was.doubts, wanted.doubts)
        slices = differing(was.slices, wanted.slices)
        return {
            key: status
            for key, status in self._turns.items()
            if key in committed.requests and key not in moved and key.partition("/")[0] not in slices
        }

    def keep(
        self,
        turns: dict[str, GPRStatus | None],
        known: tuple[Facts, Wanted, Mapping[str, Filed], datetime],
    ) -> None:
        """Stores all results of a preview, and its inputs."""
        self._turns, self._last = turns, known


def preview(
    committed: Facts,
    wanted: Wanted,
    now: datetime,
    filed_at: datetime | None = None,
    looked: Looked | None = None,
) -> Facts:
    """`committed` with every request's file and approvals processed again at `now`.

    A request without a record is filed at `filed_at` (None: at `now`, as the controller would do). `looked`
    caches the previous preview, so that this one costs only what differs; None gives the same result.
    """
    looked = Looked() if looked is None else looked
    scene = Scene(now, Settings(repo="", state=Path()), wanted, Seen({}), committed.nodes)
    held, _ = deletions_to_hold(committed, wanted)
    filed = with_filed(wanted.filed, held)
    requests, bounded = records(committed.requests), bounded_slices(wanted)
    known, turns = looked.known(committed, wanted, filed, now), dict[str, GPRStatus | None]()
    for key in sorted(unsettled(committed.requests, filed)):
        old = committed.requests.get(key)
        status = known[key] if key in known else _turned(key, filed.get(key), old, (scene, bounded))
        turns[key] = status
        if status is None:
            requests.pop(key, None)
            continue
        if old is None and filed_at is not None:
            status = status.model_copy(update={"filed_at": filed_at})
        requests[key] = status
    looked.keep(turns, (committed, wanted, filed, now))
    for key, turn in bounded_turns(bounded, requests, committed.usage, scene):
        if turn.status is not None:
            requests[key] = turn.status
    requests.sort()
    spaces, _ = workspace_turn(committed, wanted, now)
    after = replace(committed, at=now, intent=wanted.commit, requests=requests, workspaces=spaces)
    return placed(committed, after, wanted)


def _turned(
    key: str, filed: Filed | None, old: GPRStatus | None, among: tuple[Scene, Collection[str]]
) -> GPRStatus | None:
    """The record after its file and approvals are processed; `among`: the context, and slices that are
    limited.
    """
    scene, bounded = among
    status = file_turn(key, filed, old, scene).status
    if status is None or status.accepted_spec.slice in bounded:
        return status
    return unbounded_turn(key, status, scene).status


def alike(wanted: Wanted, known: Wanted) -> Wanted:
    """`wanted` with the objects of `known` wherever they are equal, so that results derived from them stay
    valid.

    Not if a cluster differs: when a burst cluster serves depends on its terms.
    """
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
    return replace(found, worked_out=known.worked_out) if found.clusters is known.clusters else found
