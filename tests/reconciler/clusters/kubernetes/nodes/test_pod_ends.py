"""Pods can read when they must have stopped, and say when they saved their work (J4): on API servers old and new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.names import CHECKPOINTED_AT, ENDS_AT
from reconciler.clusters.kubernetes.nodes import pod_ends
from reconciler.model.cluster_port import Busy, ClusterView, Done, LeaseRef, SliceTerms, Stamp
from schemas.documents.cluster import Admission
from schemas.reading.units import format_instant
from tests.reconciler.clusters.kubernetes.tenants import pod
from tests.reconciler.clusters.rig import KUBERNETES_SPEC, placed
from tests.support.kube import ON_NEW, ON_OLD, Plane, eventually, gpu_node

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
FIRST, NEWER = Stamp(1, 1), Stamp(2, 1)
LEASE = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + HOUR, start=NOW)
SPEC = KUBERNETES_SPEC.model_copy(update={"admission": Admission(mode="none")})
PODS = "/api/v1/namespaces/vision/pods"


class Site:
    """A slice whose lease has two nodes, with a driver."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        for name in ("h100-1", "h100-2"):
            plane.api.create("/api/v1/nodes", gpu_node(name, 8, "NVIDIA-H100-80GB"))
        self.driver = KubernetesCluster("east", SPEC, plane.connect())
        assert self.driver.ensure_slice(SliceTerms("vision", ("vision",)), FIRST, NOW) == Done()
        eventually(lambda: plane.api.find("/api/v1/namespaces/vision/serviceaccounts/default"), "an account")
        for name in ("h100-1", "h100-2"):
            assert self.driver.add(name, LEASE, FIRST, NOW) == Done()

    def pod(self, name: str, node: str = "h100-1", gpus: int = 4, **annotations: str) -> None:
        body = pod(name, gpus, nodeName=node, **placed("vision"))
        body["metadata"]["annotations"] = annotations
        self.plane.api.create(PODS, body)
        eventually(lambda: f"vision/{name}" in self.driver._pods.items(), f"the driver sees {name}")

    def annotate(self, name: str, **annotations: str) -> None:
        self.plane.api.merge(f"{PODS}/{name}", {"metadata": {"annotations": annotations}})

    def ends(self, name: str) -> str | None:
        found: Json = self.plane.api.get(f"{PODS}/{name}")["metadata"].get("annotations") or {}
        return found.get(ENDS_AT)

    def view(self) -> ClusterView:
        return self.driver.observe(NOW)


@pytest.fixture(params=[pytest.param("kube", marks=ON_OLD), pytest.param("new_kube", marks=ON_NEW)])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(request.getfixturevalue(request.param))
    yield found
    found.driver.close()


def test_gpu_pods_and_those_that_ask_for_it_show_the_end(site: Site) -> None:
    site.pod("train")
    site.pod("far", node="elsewhere")
    site.pod("cpu", gpus=0)
    site.pod("head", gpus=0, **{ENDS_AT: ""})
    assert site.driver.show_end(LEASE, FIRST, NOW) == Done()
    shown = {name: site.ends(name) for name in ("train", "head", "cpu", "far")}
    assert shown == {
        "train": "2026-11-21T09:00:00Z",
        "head": "2026-11-21T09:00:00Z",
        "cpu": None,
        "far": None,
    }


def test_a_node_that_leaves_corrects_what_its_pods_show_before_they_are_asked_to_stop(site: Site) -> None:
    """A replaced node, or an early release: its pods have the notice from now."""
    site.pod("train")
    site.pod("stays", node="h100-2")
    assert site.driver.show_end(LEASE, FIRST, NOW) == Done()
    eventually(lambda: site.driver._pods.items()["vision/train"].ends_at, "the driver sees it")
    assert isinstance(site.driver.remove("h100-1", LEASE.uid, FIRST, NOW), Busy)
    assert site.ends("train") == format_instant(NOW + SPEC.notice)
    assert site.plane.api.get(f"{PODS}/train")["metadata"]["deletionTimestamp"]
    assert site.ends("stays") == format_instant(LEASE.end)


def test_an_old_decision_changes_no_pod_that_shows_a_newer_one(site: Site) -> None:
    """A paused controller wakes up with what it knew then."""
    site.pod("train")
    eventually(lambda: site.driver._pods.items()["vision/train"].version, "its version")
    old = site.driver._known()
    later = replace(LEASE, end=NOW + 3 * HOUR)
    site.driver.add("h100-1", later, NEWER, NOW)
    assert site.driver.show_end(later, NEWER, NOW) == Done()
    answer = pod_ends.show(site.plane.api, lambda _: None, LEASE, old, FIRST, NOW)
    assert isinstance(answer, Busy)
    assert site.ends("train") == format_instant(later.end)


def test_what_a_pod_says_of_its_checkpoints_is_seen_and_nonsense_is_not(site: Site) -> None:
    site.pod("train")
    site.pod("liar", node="h100-2")
    site.annotate("train", **{CHECKPOINTED_AT: "2026-11-21T10:30:00+02:00"})
    site.annotate("liar", **{CHECKPOINTED_AT: "yesterday"})
    site.pod("broken", gpus=1, node="h100-2")
    site.annotate("broken", **{CHECKPOINTED_AT: "1970-01-01T00:00:00Z"})

    def said() -> dict[str, datetime | None]:
        return {work.name: work.checkpointed_at for work in site.view().workloads}

    want = {"train": NOW + HOUR / 2, "liar": None, "broken": None}
    eventually(lambda: said() == want, "the driver sees it")


def test_a_word_about_a_checkpoint_wakes_nobody(site: Site) -> None:
    """A pod may say it every second."""
    site.pod("train")
    before = site.driver._pods.items()["vision/train"]
    site.annotate("train", **{CHECKPOINTED_AT: "2026-11-21T08:30:00Z"})
    eventually(lambda: site.driver._pods.items()["vision/train"].checkpointed_at, "the driver sees it")
    assert site.driver._pods.items()["vision/train"] == before


def test_a_pod_that_is_gone_or_changed_meanwhile_stops_no_other(site: Site) -> None:
    for name in ("a", "b", "c"):
        site.pod(name, gpus=1)
    known = site.driver._known()
    site.plane.api.delete(f"{PODS}/a", grace_s=0)
    site.annotate("b", some="thing")
    answer = pod_ends.show(site.plane.api, lambda _: None, LEASE, known, FIRST, NOW)
    assert answer == Busy(NOW + pod_ends.AGAIN, "1 pods do not show the end of vision/train yet")
    assert (site.ends("b"), site.ends("c")) == (None, "2026-11-21T09:00:00Z")
