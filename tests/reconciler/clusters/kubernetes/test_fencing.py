"""A paused old leader that wakes does no harm (issue 3 §2): its write is refused, whatever it had read before.

Each case holds a write of the old leader after it has read and decided, lets a newer leader write, and lets go. Where
one call makes several writes it is held at each of them in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.names import LEASE, STAMP
from reconciler.model.cluster_port import Busy, Done, Refused, SliceTerms
from schemas.documents.cluster import Admission
from tests.reconciler.clusters.kubernetes.living import (
    HOME,
    MINUTE,
    NODES,
    SPEC,
    SPEECH,
    TERMS,
    VISION,
    A,
    prepared,
)
from tests.reconciler.clusters.kubernetes.tenants import FIRST, NEWER, NOW, pod
from tests.reconciler.clusters.rig import placed
from tests.support.faulty import Wire
from tests.support.kube import Plane, eventually

LONGER = replace(VISION, end=VISION.end + MINUTE)
FURTHER = SliceTerms("speech", ("speech", "speech-more"), ("cy@example.com",), 8)
WRITES = ("POST", "PUT", "PATCH", "DELETE")
Driver = KubernetesCluster


@dataclass
class Leaders:
    """Two who both believe they lead."""

    plane: Plane
    old: Driver
    newer: Driver
    wire: Wire  # of the old one

    def node(self) -> Json:
        """As it is now."""
        return self.plane.api.get(f"{NODES}/{A}")

    def held(self, write: int, meanwhile: Callable[[], object]) -> list[str]:
        """From now on the old leader's n-th write waits for that; its writes from that one on are listed."""
        sent: list[str] = []
        count = iter(range(1_000))

        def before() -> None:
            number = next(count)
            if number == write:
                meanwhile()
            if number >= write:
                sent.append("sent")

        for method in WRITES:
            self.wire.rule(method, "", before=before)
        return sent


@pytest.fixture
def leaders(kube) -> Iterator[Leaders]:
    prepared(kube)
    spec = SPEC.model_copy(update={"admission": Admission(mode="none"), "notice": timedelta()})
    api = kube.connect()
    found = Leaders(
        kube, Driver("east", spec, api, HOME), Driver("east", spec, kube.connect(), HOME), Wire(api)
    )
    for driver in (found.old, found.newer):
        driver.observe(NOW)
    yield found
    for driver in (found.old, found.newer):
        driver.close()


def known_to_both(leaders: Leaders) -> None:
    """Both have seen the node as it is; a watch is always a moment behind."""
    version = int(leaders.node()["metadata"]["resourceVersion"])
    for driver in (leaders.old, leaders.newer):
        eventually(lambda d=driver: d._nodes._versions[A] >= version, "the node")


@pytest.mark.parametrize(
    ("begun", "write", "newer"),
    [
        pytest.param(
            lambda d: Done(),
            lambda d: d.add(A, VISION, FIRST, NOW),
            lambda d: d.add(A, SPEECH, NEWER, NOW),
            id="add: the newer one gave the node to somebody else",
        ),
        pytest.param(
            lambda d: Done(),
            lambda d: d.add(A, VISION, FIRST, NOW),
            lambda d: d.remove(A, VISION.uid, NEWER, NOW),
            id="add: the newer one has taken the request back",
        ),
        pytest.param(
            lambda d: d.add(A, VISION, FIRST, NOW),
            lambda d: d.evict(A, VISION.uid, NOW, FIRST, NOW),
            lambda d: d.add(A, LONGER, NEWER, NOW),
            id="evict: the newer one granted an extension",
        ),
        pytest.param(
            lambda d: d.add(A, VISION, FIRST, NOW),
            lambda d: d.remove(A, VISION.uid, FIRST, NOW),
            lambda d: d.add(A, LONGER, NEWER, NOW),
            id="remove: the newer one granted an extension",
        ),
        pytest.param(
            lambda d: Done(),
            lambda d: d.isolate(A, "Xid79", FIRST, NOW),
            lambda d: d.restore(A, NEWER, NOW),
            id="isolate: the newer one found the node well",
        ),
        pytest.param(
            lambda d: d.isolate(A, "Xid79", FIRST, NOW),
            lambda d: d.restore(A, FIRST, NOW),
            lambda d: d.isolate(A, "Xid48", NEWER, NOW),
            id="restore: the newer one found the node ill",
        ),
        pytest.param(
            lambda d: Done(),
            lambda d: d.ensure_fleet(FIRST, NOW),
            lambda d: d.add(A, SPEECH, NEWER, NOW),
            id="ensure_fleet: the newer one gave the node away",
        ),
    ],
)
def test_a_held_write_to_a_node_is_refused(leaders, begun, write, newer):
    assert begun(leaders.old) == Done()
    known_to_both(leaders)
    after: list[Json] = []

    def meanwhile() -> None:
        assert newer(leaders.newer) == Done()
        after.append(leaders.node())

    leaders.held(0, meanwhile)
    answer = write(leaders.old)
    assert isinstance(answer, Refused), answer
    assert answer.reason == "StaleStamp"
    assert "newer controller (2.1)" in answer.message
    assert leaders.node()["metadata"]["annotations"] == after[0]["metadata"]["annotations"]
    assert leaders.node()["spec"] == after[0]["spec"]


def test_a_held_eviction_costs_one_pod_at_most(leaders):
    """The server knows nothing of stamps in an eviction: what was sent is done, and nothing is sent after it."""
    leaders.old.ensure_slice(TERMS, FIRST, NOW)
    leaders.old.add(A, SPEECH, FIRST, NOW)
    space = "/api/v1/namespaces/speech"
    pods = f"{space}/pods"
    eventually(lambda: leaders.plane.api.find(f"{space}/serviceaccounts/default"), "an account for pods")
    for name in ("one", "three", "two"):
        leaders.plane.api.create(pods, pod(name, 2, nodeName=A, **placed("speech")))
    eventually(lambda: len(leaders.old._gpu_pods(A)) == 3, "the pods")
    known_to_both(leaders)

    def meanwhile() -> None:
        assert leaders.newer.add(A, replace(SPEECH, end=LONGER.end), NEWER, NOW) == Done()
        known_to_both(leaders)

    leaders.held(1, meanwhile)
    leaders.old.evict(A, SPEECH.uid, NOW + MINUTE, FIRST, NOW)
    ended = [p for p in leaders.plane.api.items(pods) if p["metadata"].get("deletionTimestamp")]
    assert len(ended) <= 1
    assert leaders.node()["metadata"]["annotations"][STAMP] == "2.1"


def slice_differs(driver: Driver) -> bool:
    """Something of it is not as the newer leader wants it."""
    return any(found.slice for found in driver.differences((FURTHER,), NOW))


@pytest.mark.parametrize("number", [0, 1, 4, 9])
@pytest.mark.parametrize(
    ("begun", "write"),
    [
        pytest.param(
            lambda d: d.ensure_slice(TERMS, FIRST, NOW),
            lambda d: d.remove_slice("speech", FIRST, NOW),
            id="remove_slice",
        ),
        pytest.param(lambda d: Done(), lambda d: d.ensure_slice(TERMS, FIRST, NOW), id="ensure_slice"),
    ],
)
def test_a_slice_is_as_the_newer_one_wants_it(leaders, begun, write, number):
    """Wherever the old one was held, further turns of the newer one mend all that it could still do."""
    assert begun(leaders.old) == Done()
    turns = iter(range(1_000))
    told: list[Any] = []

    def newer() -> Any:
        told[:] = [leaders.newer.ensure_slice(FURTHER, NEWER, NOW + next(turns) * MINUTE)]
        return told[0]

    leaders.held(number, newer)
    answer = write(leaders.old)
    if not told:
        pytest.skip(f"it makes no more than {number} writes")
    if number == 0:
        assert isinstance(answer, Refused), answer
        assert answer.reason == "StaleStamp"
    assert not leaders.plane.api.get("/api/v1/namespaces/speech")["metadata"].get("deletionTimestamp")
    eventually(lambda: newer() == Done(), f"the newer one is content: {told}", 10)
    eventually(lambda: not slice_differs(leaders.newer), "it is as the newer one wants it", 10)
    refused = write(leaders.old)
    assert isinstance(refused, Refused)
    assert refused.reason == "StaleStamp"


def test_a_removed_slice_is_not_made_again(leaders):
    """The old one was about to make it when the newer one removed it."""
    assert leaders.old.ensure_slice(TERMS, FIRST, NOW) == Done()

    def gone() -> None:
        eventually(
            lambda: not isinstance(leaders.newer.remove_slice("speech", NEWER, NOW), Busy),
            "the slice is gone",
        )

    leaders.held(0, gone)
    answer = leaders.old.ensure_slice(FURTHER, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert leaders.plane.api.find("/api/v1/namespaces/speech-more") is None


def test_a_held_check_begins_nothing(leaders):
    def meanwhile() -> None:
        assert isinstance(leaders.newer.check(A, "pre", SPEECH, NEWER, NOW), Busy)

    leaders.held(0, meanwhile)
    answer = leaders.old.check(A, "pre", VISION, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert isinstance(leaders.newer.check(A, "pre", SPEECH, NEWER, NOW), Busy)


def test_a_node_that_changed_hands_in_silence_is_refused_too(leaders):
    """The old one's watch died long ago: it writes on what it remembers, and the server knows better."""
    leaders.old.close()
    assert leaders.newer.add(A, SPEECH, NEWER, NOW) == Done()
    answer = leaders.old.add(A, VISION, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert SPEECH.uid in leaders.node()["metadata"]["annotations"][LEASE]
