"""What a check was computed against, so that readers can see whether it is still valid. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.statuses import live
from reconciler.pulls.merged_tree import Merged
from reconciler.pulls.queue_at_check import CommittedStatus
from schemas.reading.units import format_instant
from schemas.status.gpr_status import GPRStatus


@dataclass(frozen=True, slots=True)
class Stamps:
    """Commits and queue behind a check. The check is stale once main or the queue's digest changes."""

    base: str  # main
    head: str
    behind: int  # commits of main missing in the branch
    status: str | None  # commit of the status branch; None: there is none
    status_at: datetime | None
    is_answered: bool  # true if the status covers current main
    queue: str  # digest of the waiting and holding requests and their times


def stamps_of(merge: Merged, known: CommittedStatus | None) -> Stamps:
    facts = None if known is None else known.facts
    return Stamps(
        base=merge.base,
        head=merge.head,
        behind=merge.behind,
        status=None if known is None else known.commit,
        status_at=None if known is None else known.at,
        is_answered=facts is not None and facts.intent == merge.base,
        queue=queue_digest({} if facts is None else facts.requests),
    )


def queue_digest(requests: Mapping[str, GPRStatus]) -> str:
    """`sha256:` over the plan's inputs: every unfinished request, with phase, pool and times.

    Once it changes, older checks are stale.
    """
    lines = sorted(_line(key, status) for key, status in live(requests).items())
    return "sha256:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _line(key: str, status: GPRStatus) -> str:
    start = status.start_time or status.estimated_start_time
    end = status.end_time or status.estimated_end_time
    held = status.assignment
    where = f"{held.cluster}/{held.pool}" if held else f"{status.estimated_cluster}/{status.estimated_pool}"
    spec = status.accepted_spec
    instants = (status.filed_at, start, end, spec.not_before)
    times = " ".join("-" if at is None else format_instant(at) for at in instants)
    asked = f"{status.spec_digest} {spec.priority} {spec.move} {spec.start} {status.remaining}"
    return f"{key} {status.phase} {asked} {where} {times}"
