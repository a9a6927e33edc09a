"""Bugs planted by hand: each is a small change of the product that the auditor must notice within 200 seeds.

`python -m tests.simulation planted` says how many seeds each survives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.acting import actions as acting
from reconciler.acting.apply import apply
from reconciler.approvals import is_approved
from reconciler.clusters.simulated import simulated_writes
from reconciler.deciding import decide as deciding
from reconciler.deciding import fold as folding
from reconciler.leadership import Leading
from reconciler.lifecycle import provisioned, provisioning
from reconciler.loop import Reconciler
from reconciler.model.facts import Context, RequestOutcome
from reconciler.planning import snapshot as planning
from reconciler.status import branch as status_branch
from reconciler.status import tree
from reconciler.status.render import request_file
from reconciler.store.branch_writer import BranchWriter
from reconciler.store.memory_store import MemoryRemote
from reconciler.store.store_port import Outcome
from reconciler.timekeeping import timekeeper
from schemas.status.gpr_status import Phase

Patch = pytest.MonkeyPatch
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is wrong in one sentence, and how it is planted."""

    name: str
    plant: Callable[[Patch], object]


def _around(of: Any, name: str, change: Callable[..., Any]) -> Callable[[Patch], object]:
    """`change` gets the real function and its arguments."""
    real = getattr(of, name)
    return lambda patch: patch.setattr(of, name, lambda *args, **more: change(real, *args, **more))


def _fence_removed(patch: Patch) -> None:
    patch.setattr(simulated_writes, "stale", lambda *_: None)


def _acts_first(real: Any, self: Any, decision: Any, wanted: Any, events: Any, reachable: bool) -> Any:
    now, fleet = decision.facts.at, self._memory.fleet
    view = fleet.observe(wanted, self._facts(), now)[1]
    todo = acting.actions(wanted, decision.facts, view, now, MINUTE)
    apply(todo, fleet.drivers(wanted.clusters), fleet.failures, self._branch.stamp, now)
    return real(self, decision, wanted, events, reachable)


def _early_now(real: Any, self: Any, wanted: Any, seen: Any, now: Any) -> Any:
    return real(self, wanted, seen, now + 2 * MINUTE)


def _forces_pushes(real: Any, self: Any, branch: str, new: str, expected: str | None) -> Any:
    return real(self, branch, new, self.tips.get(branch))


def _unknown_is_committed(real: Any, self: Any, attempt: Any, now: Any) -> Any:
    push = self._store.push

    def sure(*args: Any) -> Outcome:
        found = push(*args)
        return Outcome.COMMITTED if found is Outcome.UNKNOWN else found

    self._store.push = sure
    try:
        return real(self, attempt, now)
    finally:
        del self._store.push


def _same_term(real: Any, self: Any, work: Any, now: Any, term: int, *, reroot: bool) -> Any:
    return real(self, work, now, max(1, term - 1) if term > self._term else term, reroot=reroot)


def _never_released(real: Any, key: str, status: Any, context: Context) -> RequestOutcome | None:
    found: RequestOutcome | None = real(key, status, context)
    gone = found is not None and found.status is not None and found.status.reason == "EarlyRelease"
    return None if gone else found


def _no_slip(real: Any, status: Any, *args: Any, **more: Any) -> Any:
    return status


def _clean_at_once(real: Any, key: str, status: Any, context: Context) -> RequestOutcome:
    if status.phase is not Phase.RELEASING:
        return real(key, status, context)
    return provisioned._completed(key, status, (), context)


def _started_by_one(real: Any, requests: Any, seen: Any) -> Any:
    found = set(real(requests, seen))
    for status in requests:
        held, start = status.assignment, status.estimated_start_time
        if status.phase is not Phase.PROVISIONING or held is None or start is None:
            continue
        leases = [seen.lease_of(held.cluster, node) for node in held.nodes]
        if start <= max((view.at for view in seen.views.values()), default=start) and (
            len(leases) > 1 or any(lease is not None for lease in leases)
        ):
            found.add((status.uid, start))
    return frozenset(found)


def _forgets_checks(real: Any, status: Any, seen: Any) -> Any:
    held = status.assignment
    return frozenset(() if held is None else held.nodes)


def _runs_before(real: Any, status: Any, now: Any) -> bool:
    return bool(real(status, now) or real(status, now + 3 * MINUTE))


def _runs_after(real: Any, key: str, status: Any, context: Context, free: Any) -> Any:
    return real(key, status, replace(context, now=context.now - 3 * MINUTE), free)


def _ends_early(real: Any, status: Any, now: Any) -> bool:
    return bool(real(status, now) and real(status, now + 2 * MINUTE))


def _overlong(real: Any, status: Any) -> Any:
    return real(status) + MINUTE


def _own_slice(real: Any, key: str, status: Any, *args: Any) -> Any:
    found = real(key, status, *args)
    return found if found is None else replace(found, slice=key)


def _short_hold(real: Any, key: str, status: Any, *args: Any) -> Any:
    """The planner believes that nodes are free in the middle of their lease."""
    found = real(key, status, *args)
    if found is None:
        return None
    middle = found.start + max(1, (found.end - found.start) // 2)
    return replace(found, end=middle, held_until=middle)


def _doubtless(real: Any, *_: Any) -> None:
    return None


def _costs_twice(real: Any, *args: Any, **more: Any) -> Any:
    found = real(*args, **more)
    return found.edited(gpu_hours=found.gpu_hours * 2)


def _tells_again(real: Any, key: str, status: Any, now: Any, until: Any = None) -> Any:
    told = status.edited(marks=status.marks[:-1]) if status.marks else status
    after, events = real(key, told, now, until)
    return after, events


def _forgets_marks(patch: Patch) -> None:
    def forgetful(key: str, status: Any) -> bytes:
        return request_file(key, status.model_copy(update={"marks": ()}))

    patch.setattr(status_branch, "request_file", forgetful)


def _forgets_requests(patch: Patch) -> None:
    real = tree.Trees.loaded

    def few(self: Any, found: Any) -> Any:
        loaded = real(self, found)
        kept = dict(list(loaded.facts.requests.items())[1:])
        return replace(loaded, facts=replace(loaded.facts, requests=kept))

    patch.setattr(tree.Trees, "loaded", few)


def _never_overdue(patch: Patch) -> None:
    patch.setattr(Leading, "_overdue", lambda *_: False)
    patch.setattr(Leading, "_unanswered", lambda *_: False)


def _offline_idle(real: Any, self: Any, wanted: Any, seen: Any, now: Any) -> Any:
    """Committed actions wait until the remote is back."""
    if not self._ports.store.fetch.__self__._remote._guard.fetches():
        from reconciler.acting.apply import Answers

        return Answers()
    return real(self, wanted, seen, now)


def _needs_nothing(real: Any, *_: Any) -> tuple[str, ...]:
    return ()


def _uses_bad_nodes(real: Any, facts: Any, *args: Any) -> Any:
    found, failed = real(facts, *args)
    return {key: record for key, record in found.items() if record.state.value != "Unhealthy"}, failed


MUTANTS = (
    Mutant("a cluster obeys older stamps", _fence_removed),
    Mutant("a decision is carried out before its commit", _around(Reconciler, "_commit", _acts_first)),
    Mutant("actions use a time that is two minutes early", _around(Reconciler, "_carry_out", _early_now)),
    Mutant("pushes overwrite what others pushed", _around(MemoryRemote, "push", _forces_pushes)),
    Mutant(
        "a push without an answer counts as committed", _around(BranchWriter, "_push", _unknown_is_committed)
    ),
    Mutant("a controller takes the branch without a new term", _around(BranchWriter, "_attempt", _same_term)),
    Mutant("a lease runs before its start", _around(acting, "is_running", _runs_before)),
    Mutant("a lease runs after its end", _around(folding, "running_outcome", _runs_after)),
    Mutant("a lease ends two minutes early", _around(acting, "is_running", _ends_early)),
    Mutant("a lease is a minute longer than asked", _around(provisioning, "lease_duration", _overlong)),
    Mutant("an early release is ignored", _around(provisioned, "left_early", _never_released)),
    Mutant("a promise moves later without a slip", _around(deciding, "with_slip", _no_slip)),
    Mutant("a late start is moved without a slip", _around(provisioning, "with_slip", _no_slip)),
    Mutant(
        "a request is complete before its nodes are clean",
        _around(folding, "releasing_outcome", _clean_at_once),
    ),
    Mutant("a request starts with some of its nodes", _around(provisioning, "handed_over", _started_by_one)),
    Mutant("nodes are handed over unchecked", _around(acting, "passed_nodes", _forgets_checks)),
    Mutant("a slice may run two requests", _around(planning, "lease_of", _own_slice)),
    Mutant("half of a lease is planned on by others", _around(planning, "lease_of", _short_hold)),
    Mutant("no clock is ever doubted", _around(timekeeper, "doubt", _doubtless)),
    Mutant("costs count twice", _around(provisioned, "cost_until", _costs_twice)),
    Mutant("marks are told again", _around(provisioned, "with_marks", _tells_again)),
    Mutant("marks are not written down", _forgets_marks),
    Mutant("one request is forgotten at each take-over", _forgets_requests),
    Mutant("what is overdue is never carried out", _never_overdue),
    Mutant("without the remote nothing is carried out", _around(Reconciler, "_carry_out", _offline_idle)),
    Mutant("nothing needs an approval", _around(is_approved, "needed_reasons", _needs_nothing)),
    Mutant("reports of bad nodes are ignored", _around(folding, "_judged", _uses_bad_nodes)),
)
