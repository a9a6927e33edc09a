"""What every cluster driver must do with nodes that NVSentinel wants drained (H14): simulated, and with its objects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import DrainAsked
from reconciler.model.cluster_port import ClusterDriver, Done, LeaseRef, Refused, SliceTerms, Stamp
from schemas.documents.cluster import ClusterSpec
from schemas.documents.remediation import Remediation
from tests.reconciler.clusters.rig import FIRST, KUBERNETES_SPEC, NOW, SPEC
from tests.support import nvsentinel
from tests.support.kube import ON_NEW, Plane, await_new_nodes, gpu_node

A = "h100-1"
VISION = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + timedelta(hours=1))
ALLOWED = {"remediation": Remediation(nvsentinel=True)}


class Rig(Protocol):
    driver: ClusterDriver

    def ask(self, node: str) -> None:
        """NVSentinel wants the node drained."""

    def allow(self, allowed: bool) -> None:
        """The cluster's manifest allows it, or not; `driver` is a new object."""


class EmbeddedRig:
    def __init__(self, folder: Path) -> None:
        self._state = folder / "east.json"
        self.allow(True)

    def allow(self, allowed: bool) -> None:
        spec = SPEC.model_copy(update=ALLOWED) if allowed else SPEC
        self.driver: ClusterDriver = EmbeddedCluster("east", spec, self._state)

    def ask(self, node: str) -> None:
        EmbeddedCluster("east", SPEC, self._state).inject(DrainAsked(node=node, at=NOW))


class KubernetesRig:
    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        nvsentinel.served(plane.api)
        for pool in KUBERNETES_SPEC.pools:
            for name in pool.node_names():
                product = "NVIDIA-" + pool.gpu_shape
                plane.api.create("/api/v1/nodes", gpu_node(name, pool.gpus_per_node, product))
        await_new_nodes(plane.api)
        self.driver: ClusterDriver = self._opened(KUBERNETES_SPEC.model_copy(update=ALLOWED))

    def allow(self, allowed: bool) -> None:
        self.driver.close()
        spec = KUBERNETES_SPEC.model_copy(update=ALLOWED) if allowed else KUBERNETES_SPEC
        self.driver = self._opened(spec)

    def _opened(self, spec: ClusterSpec) -> ClusterDriver:
        return KubernetesCluster("east", spec, self._plane.connect())

    def ask(self, node: str) -> None:
        nvsentinel.ask(self._plane.api, node, f"event-{node}")


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=ON_NEW)])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made: Rig = (
        EmbeddedRig(tmp_path)
        if request.param == "embedded"
        else KubernetesRig(request.getfixturevalue("new_kube"))
    )
    yield made
    made.driver.close()


def asked(rig: Rig, node: str = A) -> tuple[bool, bool]:
    """Whether it is asked for, and whether that is unanswered."""
    found = rig.driver.observe(NOW).nodes[node]
    return bool(found.drain), found.drain_open


def test_a_request_is_seen_until_it_is_answered_and_the_node_is_not_free_while_it_exists(rig: Rig) -> None:
    assert asked(rig) == (False, False)
    rig.ask(A)
    assert asked(rig) == (True, True)
    assert asked(rig, "h100-2") == (False, False)
    assert rig.driver.drained(A, FIRST, NOW) == Done()
    assert asked(rig) == (True, False)
    assert rig.driver.drained(A, FIRST, NOW) == Done()


def test_without_leave_in_the_manifest_nothing_is_seen(rig: Rig) -> None:
    rig.ask(A)
    rig.allow(False)
    assert asked(rig) == (False, False)
    assert rig.driver.drained(A, FIRST, NOW) == Done()
    rig.allow(True)
    assert asked(rig) == (True, True), "and nothing was answered"


def test_a_node_with_a_lease_is_never_reported_as_drained(rig: Rig) -> None:
    rig.ask(A)
    rig.driver.ensure_slice(SliceTerms("vision", ("vision-train",)), FIRST, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    answer = rig.driver.drained(A, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NodeHeld"
    assert asked(rig) == (True, True)


def test_a_node_that_is_not_ours_is_left_to_others(rig: Rig) -> None:
    rig.ask("elsewhere-1")
    assert isinstance(rig.driver.drained("elsewhere-1", FIRST, NOW), Refused)


def test_an_older_controller_answers_nothing(rig: Rig) -> None:
    rig.ask(A)
    rig.driver.isolate(A, "Xid79", Stamp(2, 1), NOW)
    answer = rig.driver.drained(A, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert asked(rig) == (True, True)
