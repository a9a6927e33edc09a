"""Main, and main with the pull request applied, each as the controller would see it.

Unaffected requests are taken from the status.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reconciler.approvals.who_approved import with_readers_decisions
from reconciler.deciding.extension import extended
from reconciler.deciding.preemption import with_room_made
from reconciler.deciding.preview import preview
from reconciler.model.facts import Facts, Wanted
from reconciler.planning.queue_place import asked_anew, placed
from reconciler.planning.snapshot import build_snapshot
from reconciler.pulls.merged_tree import Merged
from reconciler.pulls.pull_documents import Documents, Known, keys_of
from reconciler.pulls.queue_at_check import CommittedStatus, committed_status, intent_of
from reconciler.store.store_port import Store
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
    """Both sides, and the status that they start from (None: there is none)."""

    base: Sight
    head: Sight
    committed_status: CommittedStatus | None
    edits: tuple[Problem, ...] = ()  # of requests that hold nodes


def look(store: Store, merge: Merged, status: str | None, now: datetime) -> Sights:
    """`status` is the commit of the status branch that counts. UserError `NoProject` if main has no project."""
    found, known = None, Known()
    if status is not None:
        since = _paths_since(store, intent_of(store.commit(status)), merge.base)
        found = committed_status(store, status, keys_of({*merge.changes, *(since or ())}))
        facts = found.facts
        known = Known(since, facts.requests.keys(), found.over, facts.trust, found.accepted)
    documents = Documents(store, merge, known)
    base = _seen(documents, found, now)
    documents.merge()
    head = _seen(documents, found, now)
    return Sights(base, head, found, _edits(store, merge, base, head))


def _paths_since(store: Store, intent: str, base: str) -> set[str] | None:
    """What main changed since the status; None: unknown."""
    if not intent:
        return None
    try:
        return {entry.path for entry in store.diff(intent, base)}
    except Fault:
        return None  # a shallow clone, or main was replaced


def _seen(documents: Documents, found: CommittedStatus | None, now: datetime) -> Sight:
    """As the controller would see the documents; requests whose files were not read keep their status."""
    desired, before = documents.desired, Facts(now) if found is None else found.facts
    wanted = with_readers_decisions(desired.wanted(before), before)
    gone = {key for key in before.requests if documents.is_absent(key)}
    moved = gone | wanted.filed.keys()
    touched = {key: status for key, status in before.requests.items() if key in moved}
    fresh = preview(replace(before, requests=touched), wanted, now, EPOCH if found is None else None)
    rest = {key: status for key, status in before.requests.items() if key not in moved}
    facts = placed(before, replace(fresh, requests={**rest, **fresh.requests}), wanted)
    world = build_snapshot(wanted, facts, None, asked_anew(before, facts, wanted))
    facts, world, _ = extended(facts, wanted, world)
    made = with_room_made(facts, wanted, world)
    return Sight(wanted, made.facts, made.shown, desired.repository.copy(), desired.problems)


def _edits(store: Store, merge: Merged, base: Sight, head: Sight) -> tuple[Problem, ...]:
    """Edits not allowed while a request holds nodes, with their lines."""
    phases: dict[tuple[str, str], Phase] = {}
    for key, status in head.facts.requests.items():
        slice_, _, name = key.partition("/")
        phases[slice_, name] = status.phase
    problems = []
    for edit in forbidden_edits(base.repository, head.repository, phases):
        oid = merge.changes[edit.file].oid if edit.file in merge.changes else None
        problems.append(edit.problem(None if oid is None else locate(store.read([oid])[oid])))
    return tuple(problems)
