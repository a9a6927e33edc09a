"""Clusters are asked side by side, and one that hangs is left alone for a while: it holds up no other (G5)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from reconciler.acting import apply as applying
from reconciler.acting.actions import Action, Do
from reconciler.acting.apply import ClusterFailures, announce, apply, compare, observe
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.model.cluster_port import (
    Answer,
    Busy,
    ClusterDriver,
    Difference,
    Note,
    Refused,
    SliceTerms,
    Stamp,
)
from schemas.documents.cluster import Cluster
from schemas.errors import Fault
from tests.support.world import at, cluster, parsed

NAMES = ("east", "north", "west")
TERMS = SliceTerms("a", ("a",))
NOTE = Note("k", "Started", "It started.", at(0), "a", "a/x")
STAMP = Stamp(1, 1)
UNANSWERED = Fault("no answer", "ClusterUnreachable")


class Server(EmbeddedCluster):
    """A cluster whose driver asks a server; `met` is called at each call and may hang, fail or answer."""

    def __init__(self, name: str, met: Callable[[str], Answer | None] = lambda _: None) -> None:
        manifest = parsed(f"clusters/{name}.yaml", cluster(name))
        assert isinstance(manifest, Cluster)
        super().__init__(name, manifest.spec)
        self.met, self.remote, self.called = met, True, list[str]()

    def _call(self, now, writes, work):  # type: ignore[no-untyped-def]
        self.met("call")
        return super()._call(now, writes, work)

    def isolate(self, node, reason, stamp, now):  # type: ignore[no-untyped-def]
        self.called.append(node)
        return self.met(node) or super().isolate(node, reason, stamp, now)


class Told(Server):
    """As a cluster shows notes, and differences, through calls that may hang."""

    def announce(self, notes: tuple[Note, ...], now: object) -> None:
        self.met("announce")

    def differences(self, slices: tuple[SliceTerms, ...], now: object) -> tuple[Difference, ...]:
        self.met("differences")
        return ()


def isolations(*names: str) -> list[Action]:
    return [Action(Do.ISOLATE, name, f"h100-{i}") for i in (1, 2) for name in names]


ROUNDS = {
    "observe": lambda drivers, failures, now: [*observe(drivers, failures, now, {})],
    "compare": lambda drivers, failures, now: [
        *compare(drivers, dict.fromkeys(drivers, (TERMS,)), failures, now)
    ],
    "announce": lambda drivers, failures, now: sorted(
        announce(drivers, dict.fromkeys(drivers, (NOTE,)), failures, now)
    ),
    "apply": lambda drivers, failures, now: [
        a.cluster for a in apply(isolations(*drivers)[: len(drivers)], drivers, failures, STAMP, now).done
    ],
}


@pytest.mark.parametrize("doing", ROUNDS)
def test_clusters_behind_servers_are_asked_side_by_side(doing: str) -> None:
    """Each waits until all others are asked as well: one after the other they would wait for ever."""
    together = threading.Barrier(len(NAMES), timeout=20)
    once: dict[str, Told] = {}
    for name in NAMES:
        waits = iter([lambda: together.wait()])
        once[name] = Told(name, lambda _, waits=waits: (next(waits, lambda: 0)(), None)[1])  # type: ignore[misc]
    assert ROUNDS[doing](once, ClusterFailures(), at(0)) == [*NAMES]


@pytest.mark.parametrize("doing", ROUNDS)
def test_simulated_clusters_and_a_single_server_are_asked_by_the_caller_itself(doing: str) -> None:
    """One thread: stories stay the same however often they are told."""
    threads = set[threading.Thread]()
    drivers = {name: Told(name, lambda _: threads.add(threading.current_thread())) for name in NAMES}
    for name in NAMES[1:]:
        drivers[name].remote = False
    assert ROUNDS[doing](drivers, ClusterFailures(), at(0)) == [*NAMES]
    assert threads == {threading.current_thread()}


def test_answers_come_in_the_order_of_the_actions_and_each_cluster_gets_its_own_in_order() -> None:
    """Whoever is faster: the answers are those of one thread."""
    actions = isolations("west", "east")
    first = threading.Event()

    def slow(node: str) -> Answer | None:
        assert first.wait(20)
        return Refused("No", "no") if node == "h100-2" else None

    def fast(node: str) -> Answer | None:
        if node == "h100-2":
            first.set()
        return Busy(at(5), "later") if node == "h100-2" else None

    west, east = Server("west", lambda n: None if n == "call" else slow(n)), Server("east", fast)
    answers = apply(actions, {"east": east, "west": west}, ClusterFailures(), STAMP, at(0))
    assert (east.called, west.called) == (["h100-1", "h100-2"],) * 2
    assert answers.done == actions[:2]
    assert answers.begun == [*actions[:2], actions[3]]
    assert [action for action, _ in answers.refused] == [actions[2]]


def test_after_a_failure_the_rest_of_that_clusters_actions_waits_and_others_go_on() -> None:
    def fails(_: str) -> None:
        raise UNANSWERED

    drivers: dict[str, ClusterDriver] = {"east": Server("east", fails), "west": Server("west")}
    answers = apply(isolations("east", "west"), drivers, ClusterFailures(), STAMP, at(0))
    assert [action.cluster for action in answers.done] == ["west", "west"]
    assert (answers.unreachable, answers.counts[Do.ISOLATE, "Failed"]) == ({"east"}, 1)


def test_a_defect_of_ours_is_raised_as_it_is_by_one_thread() -> None:
    def breaks(_: str) -> None:
        raise ZeroDivisionError

    drivers: dict[str, ClusterDriver] = {"east": Server("east", breaks), "west": Server("west")}
    with pytest.raises(ZeroDivisionError):
        observe(drivers, ClusterFailures(), at(0), {})


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Real seconds as `apply` sees them; a cluster that hangs adds to them."""
    seconds = [0.0]
    monkeypatch.setattr(applying, "monotonic_s", lambda: seconds[0])
    return seconds


def failing(spent: list[float], took_s: float, error: Exception = UNANSWERED) -> Told:
    """East, whose calls are counted in `called`."""

    def fails(_: str) -> None:
        east.called.append("")
        spent[0] += took_s
        raise error

    east = Told("east", fails)
    east.remote = False  # one thread: the seconds are told one after the other
    return east


@pytest.mark.parametrize(
    ("took_s", "rests"),
    [
        pytest.param(2.5, [2.5, 5, 10, 20, 30, 30], id="twice as long each time, up to a bound"),
        pytest.param(
            30, [30, 30, 30], id="and as long as it was waited for, so that others have half the time"
        ),
    ],
)
def test_a_cluster_that_hung_is_not_asked_for_a_while(
    took_s: float, rests: list[float], spent: list[float]
) -> None:
    east, west, failures, now = failing(spent, took_s), Told("west"), ClusterFailures(), at(0)
    for count, rest in enumerate(rests, 1):
        assert [*observe({"east": east, "west": west}, failures, now, {})] == ["west"]
        assert len(east.called) == count
        now += timedelta(seconds=took_s + rest)
        for doing in ROUNDS:
            just = now - timedelta(seconds=0.1)
            assert ROUNDS[doing]({"east": east, "west": west}, failures, just) == ["west"], doing
        assert len(east.called) == count


@pytest.mark.parametrize("doing", ROUNDS)
def test_whatever_hung_all_else_waits_too_and_an_answer_ends_it(doing: str, spent: list[float]) -> None:
    east, west, failures = failing(spent, 9), Told("west"), ClusterFailures()
    drivers = {"east": east, "west": west}
    assert ROUNDS[doing](drivers, failures, at(0)) == ["west"]
    assert ROUNDS["observe"](drivers, failures, at(0)) == ["west"]
    east.met = lambda _: None
    later = at(0) + timedelta(seconds=18)
    assert ROUNDS[doing](drivers, failures, later) == ["east", "west"]
    east.met = failing(spent, 9).met
    ROUNDS[doing](drivers, failures, later)
    assert not failures.rests("east", later + timedelta(seconds=18))  # it began anew


@pytest.mark.parametrize(
    ("took_s", "error"),
    [
        pytest.param(1.9, UNANSWERED, id="a failure that cost no time"),
        pytest.param(30, Fault("no", "ClusterForbidden"), id="an answer, however slow"),
    ],
)
def test_other_failures_are_tried_again_at_once(took_s: float, error: Exception, spent: list[float]) -> None:
    """Recovery is not put off where nobody waits for it."""
    east, failures = failing(spent, took_s, error), ClusterFailures()
    for _ in range(3):
        observe({"east": east, "west": Told("west")}, failures, at(0), {})
    assert len(east.called) == 3


def test_a_single_cluster_holds_up_nobody_and_is_asked_each_time(spent: list[float]) -> None:
    east, failures = failing(spent, 30), ClusterFailures()
    for _ in range(3):
        observe({"east": east}, failures, at(0), {})
    assert len(east.called) == 3
