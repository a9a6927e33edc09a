"""The facts as they would be if the controller looked now, without clusters. Pure.

What a person sees in a check or on a command line is what the controller would make of the same documents: each
request's file and approvals have their turn, in the controller's own functions, and nothing is handed over.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from reconciler.approval import approval_turn
from reconciler.facts import Facts, Scene, Seen, Wanted
from reconciler.filing import file_turn
from reconciler.fold import deletions_to_hold
from reconciler.settings import Settings
from reconciler.workspaces import workspace_turn
from schemas.status import GPRStatus


def preview(committed: Facts, wanted: Wanted, now: datetime, filed_at: datetime | None = None) -> Facts:
    """`committed` with every request's file and approvals read again at `now`.

    A request that is on no record takes its place at `filed_at` (None: at `now`, as the controller would have it).
    """
    scene = Scene(now, Settings(repo="", state=Path()), wanted, Seen({}), committed.nodes)
    held, _ = deletions_to_hold(committed, wanted)
    filed = {**wanted.filed, **held}
    requests: dict[str, GPRStatus] = {}
    for key in sorted({*committed.requests, *filed}):
        old = committed.requests.get(key)
        status = file_turn(key, filed.get(key), old, scene).status
        if status is not None:
            status = approval_turn(key, status, scene).status
        if status is None:
            continue
        if old is None and filed_at is not None:
            status = status.model_copy(update={"filed_at": filed_at})
        requests[key] = status
    spaces, _ = workspace_turn(committed, wanted, now)
    return replace(committed, at=now, intent=wanted.commit, requests=requests, workspaces=spaces)
