"""The facts as they would be if the controller looked now, without clusters. Pure.

What a person sees in a check or on a command line is what the controller would make of the same documents: each
request's file and approvals have their turn, in the controller's own functions, and nothing is handed over.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from reconciler.charging import bounded_slices, bounded_turns, unbounded_turn
from reconciler.facts import Facts, Scene, Seen, Wanted
from reconciler.filing import file_turn
from reconciler.filings import with_filed
from reconciler.fold import deletions_to_hold
from reconciler.placing import placed
from reconciler.records import records
from reconciler.settings import Settings
from reconciler.settling import unsettled
from reconciler.workspaces import workspace_turn


def preview(committed: Facts, wanted: Wanted, now: datetime, filed_at: datetime | None = None) -> Facts:
    """`committed` with every request's file and approvals read again at `now`.

    A request that is on no record takes its place at `filed_at` (None: at `now`, as the controller would have it).
    """
    scene = Scene(now, Settings(repo="", state=Path()), wanted, Seen({}), committed.nodes)
    held, _ = deletions_to_hold(committed, wanted)
    filed = with_filed(wanted.filed, held)
    requests, bounded = records(committed.requests), bounded_slices(wanted)
    for key in sorted(unsettled(committed.requests, filed)):
        old = committed.requests.get(key)
        status = file_turn(key, filed.get(key), old, scene).status
        if status is not None and status.accepted_spec.slice not in bounded:
            status = unbounded_turn(key, status, scene).status
        if status is None:
            requests.pop(key, None)
            continue
        if old is None and filed_at is not None:
            status = status.model_copy(update={"filed_at": filed_at})
        requests[key] = status
    for key, turn in bounded_turns(bounded, requests, committed.usage, scene):
        if turn.status is not None:
            requests[key] = turn.status
    requests.sort()
    spaces, _ = workspace_turn(committed, wanted, now)
    after = replace(committed, at=now, intent=wanted.commit, requests=requests, workspaces=spaces)
    return placed(committed, after, wanted)
