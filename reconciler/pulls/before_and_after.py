"""Main, and main with the pull request applied, each as the controller would see it.

Unaffected requests are taken from the status.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reconciler.approvals.who_approved import with_readers_decisions
from reconciler.deciding.extension import extended
from reconciler.deciding.preemption import with_room_made
from reconciler.deciding.preview import alike, preview
from reconciler.documents.in_force import Desired
from reconciler.model.facts import Facts, Wanted
from reconciler.model.request_files import Filings, raw
from reconciler.model.statuses import records
from reconciler.planning.queue_place import asked_anew, placed
from reconciler.planning.snapshot import build_snapshot
from reconciler.pulls.check_basis import Stamps, stamps_of
from reconciler.pulls.merged_tree import Merged
from reconciler.pulls.pull_documents import Documents, Known, keys_of
from reconciler.pulls.queue_at_check import committed_status, intent_of
from reconciler.store.store_port import Contents, History
from scheduler.causes.compare import as_planned
from scheduler.snapshot import Snapshot
from schemas.errors import Fault
from schemas.reading.strict_yaml import locate
from schemas.rules.check import forbidden_edits
from schemas.rules.problems import Problem
from schemas.rules.repository import Repository
from schemas.status.gpr_status import Phase

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Filing time of a request if no controller recorded one."""


@dataclass(frozen=True, slots=True)
class Sight:
    """One side of the comparison, at one time."""

    wanted: Wanted
    facts: Facts  # as they would be if the controller ran now; finished requests may be missing
    snapshot: Snapshot
    repository: Repository  # with the documents that were read
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Sights:
    """Both sides, and what they start from."""

    base: Sight
    head: Sight
    promised: Snapshot  # the base's world, with its plan as promises
    stamps: Stamps
    edits: tuple[Problem, ...] = ()  # of requests that hold nodes


def look(store: History, merge: Merged, status: str | None, now: datetime) -> Sights:
    """`status` is the commit of the status branch that counts. UserError `NoProject` if main has no project."""
    found, known = None, Known()
    if status is not None:
        since = paths_since(store, intent_of(store.commit(status)), merge.base)
        found = committed_status(store, status, keys_of({*merge.changes, *(since or ())}))
        facts = found.facts
        known = Known(since, facts.requests.keys(), found.over, facts.trust, found.accepted)
    documents = Documents(store, merge, known)
    committed = Facts(now) if found is None else found.facts
    base = _seen(documents, committed, now, is_first=found is None)
    base = replace(base, repository=base.repository.copy())
    documents.merge()
    head = _seen(documents, committed, now, is_first=found is None)
    edits = edited(store, merge, base, head)
    return Sights(base, head, as_planned(base.snapshot), stamps_of(merge, found), edits)


def paths_since(store: Contents, intent: str, base: str) -> set[str] | None:
    """What main changed since the status; None: unknown."""
    if not intent:
        return None
    try:
        return {entry.path for entry in store.diff(intent, base)}
    except Fault:
        return None  # a shallow clone, or main was replaced


def _seen(documents: Documents, committed: Facts, now: datetime, *, is_first: bool) -> Sight:
    """As the controller would see the documents; requests whose files were not read keep their status."""
    desired = documents.desired
    gone = {key for key in committed.requests if documents.is_absent(key)}
    return sight(desired, committed, gone | desired.wanted(committed).filed.keys(), now, is_first=is_first)


def sight(
    desired: Desired,
    committed: Facts,
    moved: Collection[str],
    now: datetime,
    *,
    is_first: bool,
    beside: Wanted | None = None,
) -> Sight:
    """As the controller would see the documents after `committed`; all but the `moved` requests keep their status.

    `is_first`: no controller has written a status yet. What is equal in `beside` is not computed again.
    """
    wanted, facts = judged_again(desired, committed, moved, now, is_first=is_first, beside=beside)
    world = build_snapshot(wanted, facts, None, asked_anew(committed, facts, wanted))
    facts, world, _ = extended(facts, wanted, world)
    made = with_room_made(facts, wanted, world)
    return Sight(wanted, made.facts, made.shown, desired.repository, desired.problems)


def judged_again(
    desired: Desired,
    committed: Facts,
    moved: Collection[str],
    now: datetime,
    *,
    is_first: bool,
    beside: Wanted | None = None,
) -> tuple[Wanted, Facts]:
    """The documents with the files of these requests only, and the facts after judging them; see `sight`."""
    wanted = with_files_of(moved, with_readers_decisions(desired.wanted(committed), committed))
    wanted = wanted if beside is None else alike(wanted, beside)
    known = committed.requests
    touched = {key: status for key in moved if (status := known.get(key)) is not None}
    fresh = preview(replace(committed, requests=touched), wanted, now, EPOCH if is_first else None)
    requests = records(known)
    for key in touched.keys() - fresh.requests.keys():
        del requests[key]
    requests.update(fresh.requests)
    return wanted, placed(committed, replace(fresh, requests=requests), wanted)


def with_files_of(requests: Collection[str], wanted: Wanted) -> Wanted:
    """The documents without the files of other requests."""
    files = raw(wanted.filed)
    return replace(wanted, filed=Filings({key: files[key] for key in requests if key in files}))


def edited(store: Contents, merge: Merged, base: Sight, head: Sight) -> tuple[Problem, ...]:
    """Edits not allowed while a request holds nodes, with their lines."""
    phases: dict[tuple[str, str], Phase] = {}
    for key in keys_of(merge.changes):
        if (status := head.facts.requests.get(key)) is not None:
            slice_, _, name = key.partition("/")
            phases[slice_, name] = status.phase
    problems = []
    for edit in forbidden_edits(base.repository, head.repository, phases):
        oid = merge.changes[edit.file].oid if edit.file in merge.changes else None
        problems.append(edit.problem(None if oid is None else locate(store.read([oid])[oid])))
    return tuple(problems)
