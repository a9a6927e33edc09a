"""Looks at a run from outside and says what it broke: at the status branch's whole history, and the clusters' own.

A cluster's history is written down by the cluster itself (`RecordedState`), beside what was committed at that
instant, so that a node that changes hands before the commit that says so is seen. Used by every test of crashes,
late pushes and second controllers; none of them looks into a controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from demo.audit import Audit
from reconciler.clusters.simulated.simulated_world import World
from reconciler.clusters.simulated.state_file import StateFile
from reconciler.model.cluster_port import Stamp
from reconciler.model.events import EventReason
from reconciler.model.facts import Facts
from reconciler.status.parse import events_from
from reconciler.store.store_port import Store
from reconciler.store.trailers import parse_stamp
from schemas.status.gpr_status import TERMINAL, GPRStatus, Phase
from tests.support.readback import facts_from

ONCE = frozenset(
    {
        EventReason.FILED,
        EventReason.PENDING_APPROVAL,
        EventReason.APPROVED,
        EventReason.PROVISIONED,
        EventReason.MARK_25,
        EventReason.MARK_50,
        EventReason.MARK_75,
        EventReason.EXITING,
        EventReason.EARLY_RELEASED,
        EventReason.COMPLETED,
        EventReason.CANCELLED,
        EventReason.NODE_REPLACED,
    }
)
"""What is told once for each request that is never requeued, whatever happens to controllers."""
DRAIN = timedelta(seconds=20)
"""How long a node of an early release may still be given back."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Which node which lease had in one cluster from an instant on, and the status branch's tip then."""

    at: datetime
    tip: str | None
    leases: Mapping[str, str]  # node -> uid
    stamps: Mapping[str, Stamp]


class RecordedState(StateFile):
    """A simulated cluster's state that tells of every change of hands, in the order in which they happened."""

    def __init__(
        self, path: Path | None, tip: Callable[[], str | None], note: Callable[[Hold], None]
    ) -> None:
        super().__init__(path)
        self._tip, self._note = tip, note

    def save(self, world: World) -> None:
        """See `StateFile.save`."""
        before = held_by(self._current())
        super().save(world)
        after = held_by(world)
        if after != before:
            stamps = {name: held.stamp for name, held in world.nodes.items() if held.stamp is not None}
            self._note(Hold(world.at, self._tip(), after, stamps))


def held_by(world: World) -> dict[str, str]:
    """Node -> uid of the lease it serves."""
    return {name: held.lease.uid for name, held in world.nodes.items() if held.lease is not None}


@dataclass(frozen=True, slots=True)
class Step:
    """One commit of the status branch."""

    oid: str
    facts: Facts
    term: int
    writer: str


@dataclass(slots=True)
class Verdict:
    """What a stranger finds out about a run; `broken` is empty after a good one."""

    last: Mapping[str, GPRStatus]
    told: Counter[tuple[str, str]]
    terms: list[int]
    broken: list[str] = field(default_factory=list)


def judge(store: Store, branch: str, holds: Sequence[Hold], slack: timedelta = timedelta()) -> Verdict:
    """Everything that must hold whatever was killed; an end may be late by `slack`, the time nobody was there."""
    steps = history(store, branch)
    audit = Audit()
    for step in steps:
        audit.see(step.facts.requests)
    audit.finish()
    last = steps[-1].facts.requests
    verdict = Verdict(last, told(store, steps[-1].oid), [step.term for step in steps], audit.broken)
    by_oid = {step.oid: step.facts for step in steps}
    verdict.broken += [
        *_out_of_order(verdict.terms),
        *_renamed(steps),
        *_told_twice(verdict),
        *_unjustified(holds, by_oid),
        *_granted_twice(holds),
        *_late_ends(holds, last, slack),
        *_older_stamps(holds),
    ]
    return verdict


def history(store: Store, branch: str) -> list[Step]:
    """Every commit of the branch, oldest first."""
    commits = list(store.log(store.fetch([branch])[branch], 100_000))[::-1]
    steps: list[Step] = []
    files: dict[str, bytes] = {}
    before = None
    for commit in commits:
        changed = store.diff(before, commit.oid)
        wanted = {e.path: e.oid for e in changed if e.oid is not None and e.path.startswith("slices/")}
        blobs = store.read(set(wanted.values()))
        for entry in changed:
            files.pop(entry.path, None)
        files |= {path: blobs[oid] for path, oid in wanted.items()}
        stamp = parse_stamp(commit.trailers)
        assert stamp is not None
        known = steps[-1].facts if steps and not changed else facts_from(files, commit.at, stamp.intent or "")
        steps.append(Step(commit.oid, known, stamp.term, stamp.writer))
        before = commit.oid
    return steps


def told(store: Store, tip: str) -> Counter[tuple[str, str]]:
    """How often each thing was told of each request, by the branch's files of events."""
    paths = {e.path: e.oid for e in store.diff(None, tip) if e.oid and e.path.startswith("events/")}
    blobs = store.read(set(paths.values()))
    rows = [row for path in sorted(paths) for row in events_from(blobs[paths[path]])]
    return Counter((row["reason"], row.get("request", "")) for row in rows)


def _out_of_order(terms: list[int]) -> Iterator[str]:
    if terms != sorted(terms):
        yield f"terms went back: {terms}"


def _renamed(steps: Sequence[Step]) -> Iterator[str]:
    uids: dict[str, str] = {}
    for step in steps:
        for key in uids.keys() - step.facts.requests.keys():
            yield f"{key} was lost in {step.oid[:8]}"
            uids = {k: v for k, v in uids.items() if k != key}
        for key, status in step.facts.requests.items():
            if uids.setdefault(key, status.uid) != status.uid:
                yield f"{key} was filed twice: {uids[key]}, then {status.uid}"
                uids[key] = status.uid


def _told_twice(verdict: Verdict) -> Iterator[str]:
    for (reason, request), times in sorted(verdict.told.items()):
        status = verdict.last.get(request)
        if reason in ONCE and times > 1 and status is not None and status.retry_count == 0:
            yield f"{reason} of {request} was told {times} times"


def _changes(holds: Sequence[Hold]) -> Iterator[tuple[Hold, str, str, bool]]:
    """Every node that came to a lease (True) or left it, in order."""
    before: Mapping[str, str] = {}
    for hold in holds:
        for node, uid in sorted(before.items() - hold.leases.items()):
            yield hold, node, uid, False
        for node, uid in sorted(hold.leases.items() - before.items()):
            yield hold, node, uid, True
        before = hold.leases


def _unjustified(holds: Sequence[Hold], committed: Mapping[str, Facts]) -> Iterator[str]:
    """A decision is committed before it is carried out: the branch said so when it was done."""
    for hold, node, uid, came in _changes(holds):
        facts = committed.get(hold.tip or "")
        requests = {} if facts is None else facts.requests
        status = next((s for s in requests.values() if s.uid == uid), None)
        runs = status is not None and _runs(status, hold.at) and status.assignment is not None
        own = (
            runs and status is not None and status.assignment is not None and node in status.assignment.nodes
        )
        if came and not own:
            yield f"{node} came to {uid} at {hold.at} before that was committed"
        if not came and own:
            yield f"{node} was taken from {uid} at {hold.at} before that was committed"


def _runs(status: GPRStatus, at: datetime) -> bool:
    start = status.start_time or status.estimated_start_time
    end = status.end_time or status.estimated_end_time
    holds = status.phase in {Phase.PROVISIONING, Phase.PROVISIONED}
    return holds and start is not None and end is not None and start <= at < end


def _granted_twice(holds: Sequence[Hold]) -> Iterator[str]:
    times = Counter((node, uid) for _, node, uid, came in _changes(holds) if came)
    yield from (f"{node} was given to {uid} {n} times" for (node, uid), n in sorted(times.items()) if n > 1)


def _late_ends(holds: Sequence[Hold], last: Mapping[str, GPRStatus], slack: timedelta) -> Iterator[str]:
    requests = {status.uid: status for status in last.values()}
    for hold, node, uid, came in _changes(holds):
        status = requests.get(uid)
        if came or status is None or status.end_time is None or status.phase not in TERMINAL:
            continue
        drained = DRAIN if status.reason == "EarlyRelease" else timedelta()
        if hold.at > status.end_time + drained + slack:
            yield f"{node} left {uid} at {hold.at}, after its end {status.end_time}"
    for node, uid in sorted(holds[-1].leases.items() if holds else ()):
        if uid not in requests or requests[uid].phase in TERMINAL:
            yield f"{node} still serves {uid}"


def _older_stamps(holds: Sequence[Hold]) -> Iterator[str]:
    newest: dict[str, Stamp] = {}
    for hold in holds:
        for node, stamp in sorted(hold.stamps.items()):
            if stamp < newest.get(node, stamp):
                yield f"{node} obeyed {stamp.term}.{stamp.seq} at {hold.at}, after {newest[node]}"
            newest[node] = max(stamp, newest.get(node, stamp))
