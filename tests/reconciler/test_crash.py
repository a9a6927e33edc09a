"""A controller is killed at every call that writes, and nothing is lost, doubled or late (D6, D7, F1, F2, F15; H10).

Design sections 2 (principles 3 and 4), 4 and 5. `tests.support.crash` tells the story and how the
process dies; `tests.support.witness` looks at what is left, from outside. Kill points are drawn by the commit under
test, pushes more often than other writes; some pushes also land late, when the next controller is there already. At
night it is every kill point there is. The planted bugs at the end show that the witness would notice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from reconciler.acting.actions import actions
from reconciler.acting.apply import apply
from reconciler.deciding.decide import Decision
from reconciler.loop import Reconciler
from reconciler.model.events import Event
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.status import branch, tree
from reconciler.status.render import request_file
from schemas.status.gpr_status import GPRStatus
from tests.support.crash import Walk
from tests.support.profile import drawn
from tests.support.witness import ONCE, Verdict

pytestmark = pytest.mark.slow

KINDS = {"write", "push", "ensure_slice", "check", "add", "evict", "remove", "isolate", "restore", "state"}
MINUTE = timedelta(minutes=1)


def some_kills(number: int, kind: str) -> Iterator[str]:
    """Each push, and as many of the other writes as there is time for."""
    ways = (
        {"before": 8, "after": 8, "lands 1": 32, "lands 2": 32}
        if kind == "push"
        else {"before": 24, "after": 24}
    )
    yield from (way for way, one_in in ways.items() if drawn(f"{number} {kind} {way}", one_in))


def no_kill(_: int, __: str) -> Iterator[str]:
    """A run that nothing befalls."""
    return iter(())


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """A folder in memory where there is one: a third of the time on a disk is spent in making files durable."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def walked(root) -> tuple[Walk, Verdict]:
    walk = Walk(root, some_kills)
    return walk, walk.play()


def once_told(verdict: Verdict) -> set[tuple[str, str]]:
    return {about for about in verdict.told if about[0] in ONCE}


def unlike(got: Verdict, want: Verdict) -> list[str]:
    """What the end of a run has otherwise than the run that nothing befell; a start may be seconds away."""
    found = [f"{key} is lost" for key in want.last.keys() - got.last.keys()]
    for key, status in got.last.items():
        mine, other = outcome(status), outcome(want.last[key])
        if mine != other:
            found.append(f"{key} ended as {mine}, not {other}")
        if abs(started(status) - started(want.last[key])) > MINUTE:
            found.append(f"{key} began at {status.start_time}, not {want.last[key].start_time}")
    return found + [f"{about} differs" for about in once_told(got) ^ once_told(want)]


def outcome(status: GPRStatus) -> tuple[object, ...]:
    lasted = ended(status) - started(status) if status.reason == "Ended" else None
    marks = tuple(mark.percent for mark in status.marks)
    nodes = 0 if status.assignment is None else len(status.assignment.nodes)
    return status.phase, status.reason, lasted, marks, nodes, status.retry_count, status.delayed_count


def started(status: GPRStatus) -> datetime:
    assert status.start_time is not None
    return status.start_time


def ended(status: GPRStatus) -> datetime:
    assert status.end_time is not None
    return status.end_time


# -- the real thing ------------------------------------------------------------------------------------------


def test_the_story_writes_in_every_way_there_is(walked):
    walk, verdict = walked
    assert verdict.broken == []
    assert set(walk.stage.points.kinds) == KINDS


def test_no_kill_breaks_a_promise(walked):
    """No request lost, none provisioned twice, no node in two slices, marks and ends once, ends strict."""
    walk, _ = walked
    assert walk.verdicts
    assert {str(kill): verdict.broken for kill, verdict in walk.verdicts.items() if verdict.broken} == {}


def test_the_end_is_that_of_the_run_that_nothing_befell(walked):
    walk, want = walked
    found = {str(kill): unlike(verdict, want) for kill, verdict in walk.verdicts.items()}
    assert {kill: what for kill, what in found.items() if what} == {}


def test_every_life_takes_a_term_of_its_own(walked):
    """A push of the dead that lands before the next life's first one costs it that push, and no term."""
    walk, _ = walked
    lives = {kill: len(set(verdict.terms)) for kill, verdict in walk.verdicts.items()}
    assert {n for kill, n in lives.items() if kill.number > 1} == {2}


# -- planted bugs: the witness must notice -------------------------------------------------------------------


class ActsFirst(Reconciler):
    """Carries a decision out before it is committed."""

    def _observe(self, wanted: Wanted, now: datetime) -> tuple[Wanted, Seen]:
        wanted, self.seen = super()._observe(wanted, now)
        return wanted, self.seen

    def _commit(
        self, decision: Decision, wanted: Wanted, events: tuple[Event, ...], reachable: bool
    ) -> datetime | None:
        now, fleet = decision.facts.at, self._memory.fleet
        todo = actions(wanted, decision.facts, self.seen, now, MINUTE)
        apply(todo, fleet.drivers(wanted.clusters), fleet.failures, self._branch.stamp, now)
        return super()._commit(decision, wanted, events, reachable)


def test_planted_acting_before_the_commit_is_noticed(tmp_path: Path):
    verdict = Walk(tmp_path, no_kill, ActsFirst).play()
    assert any("before that was committed" in sentence for sentence in verdict.broken)


def test_planted_marks_that_are_not_persisted_are_noticed(tmp_path: Path, monkeypatch):
    def forgetful(key: str, status: GPRStatus) -> bytes:
        return request_file(key, status.model_copy(update={"marks": ()}))

    def late_kills(number: int, kind: str) -> Iterator[str]:
        if kind == "push" and 142 < number < 152:
            yield "after"

    monkeypatch.setattr(branch, "request_file", forgetful)
    walk = Walk(tmp_path, late_kills)
    assert walk.play().broken == []
    assert walk.verdicts
    for kill, verdict in walk.verdicts.items():
        assert any("was told 2 times" in sentence for sentence in verdict.broken), kill


def test_planted_forgotten_requests_are_noticed(tmp_path: Path, monkeypatch):
    """A status that is not written back: after a crash the request is filed, and may start, a second time."""
    monkeypatch.setattr(tree.Trees, "loaded", lambda *_: tree.Loaded(Facts(NEVER), {}))
    walk = Walk(tmp_path, lambda number, _: iter(["after"] if number == 30 else []))
    walk.play()
    (verdict,) = walk.verdicts.values()
    assert any("was filed twice" in sentence for sentence in verdict.broken)


NEVER = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
