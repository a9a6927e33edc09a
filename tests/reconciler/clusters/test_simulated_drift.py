"""What people do to a simulated cluster behind our back, and what is measured and announced in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import CheckFails, ForeignPod, NamespaceDeleted, NodeDies
from reconciler.clusters.simulated.simulated_world import NOTES_KEPT
from reconciler.model.cluster_port import (
    Busy,
    CheckResult,
    Difference,
    LeaseRef,
    Note,
    Refused,
    SliceTerms,
    Stamp,
)
from schemas.documents.cluster import ClusterSpec

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
STAMP = Stamp(1, 1)
LEASE = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + 60 * MINUTE)
VISION = SliceTerms("vision", ("dev", "train"))
A, B = "h100-1", "h100-2"


def cluster(*faults, state: Path | None = None, **checks: object) -> EmbeddedCluster:  # type: ignore[no-untyped-def]
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 2}
    spec = ClusterSpec.model_validate(
        {"driver": "embedded", "pools": (pool,), "checks": {"latencyInterval": 2 * MINUTE, **checks}}
    )
    made = EmbeddedCluster("east", spec, state, faults)
    made.ensure_slice(VISION, STAMP, NOW)
    for node in (A, B):
        made.add(node, LEASE, STAMP, NOW)
    return made


def run(c: EmbeddedCluster, now: datetime, node: str = A) -> tuple[CheckResult, ...]:
    busy = c.check(node, "run", LEASE, STAMP, now)
    assert isinstance(busy, Busy)
    found = c.check(node, "run", LEASE, STAMP, busy.until)
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param(VISION, [], id="as it was made"),
        pytest.param(
            SliceTerms("vision", ("dev", "more")),
            [("Namespace more", "missing"), ("Namespace train", "extra")],
            id="other namespaces are asked for",
        ),
        pytest.param(SliceTerms("new", ("n",)), [("Namespace n", "missing")], id="a slice that is not there"),
    ],
)
def test_what_differs(terms: SliceTerms, want: list[tuple[str, str]]) -> None:
    c = cluster()
    before = c.observe(NOW)
    assert [(d.object, d.found) for d in c.differences((terms,), NOW)] == want
    assert c.observe(NOW) == before


def test_a_namespace_that_was_deleted_is_missing_until_the_slice_is_ensured() -> None:
    c = cluster(NamespaceDeleted(namespace="train", at=NOW + MINUTE))
    assert c.differences((VISION,), NOW) == ()
    assert c.observe(NOW + MINUTE).slices == {"vision": ("dev",)}
    assert c.differences((VISION,), NOW + MINUTE) == (Difference("vision", "Namespace train", "missing"),)
    c.ensure_slice(VISION, STAMP, NOW + 2 * MINUTE)
    assert c.differences((VISION,), NOW + 2 * MINUTE) == ()


def test_pods_of_others_are_shown_while_they_run() -> None:
    c = cluster(
        ForeignPod(node=A, pod="ml/a", at=NOW, until=NOW + MINUTE), ForeignPod(node=A, pod="ml/b", at=NOW)
    )
    assert c.observe(NOW).nodes[A].foreign == ("ml/a", "ml/b")
    assert not c.observe(NOW).nodes[A].usable
    assert c.observe(NOW + MINUTE).nodes[A].foreign == ("ml/b",)
    assert c.observe(NOW).nodes[B].usable


def test_latency_is_measured_between_the_nodes_of_a_lease_and_anew_in_each_interval() -> None:
    """F6."""
    c = cluster(CheckFails(node=A, check="Latency", stage="run", at=NOW + MINUTE, until=NOW + 5 * MINUTE))
    (first,) = run(c, NOW)
    assert (first.name, first.passed) == ("Latency", True)
    assert B in first.log
    assert c.check(A, "run", LEASE, STAMP, NOW + 2 * MINUTE) == (first,)
    (later,) = run(c, NOW + 3 * MINUTE)
    assert not later.passed


@pytest.mark.parametrize(("most", "passes"), [(None, True), (14.0, True), (8.9, False)])
def test_latency_above_the_manifests_bound_fails(most: float | None, passes: bool) -> None:
    (found,) = run(cluster(maxLatency=most), NOW)
    assert found.passed is passes


def test_a_silent_node_is_slow() -> None:
    (found,) = run(cluster(NodeDies(node=A, at=NOW)), NOW)
    assert not found.passed


def test_an_older_controller_begins_no_check() -> None:
    c = cluster()
    c.add(A, LEASE, Stamp(2, 1), NOW)
    assert isinstance(c.check(A, "pre", LEASE, STAMP, NOW), Refused)


def test_a_note_is_kept_once_and_the_oldest_are_forgotten(tmp_path: Path) -> None:
    """H10."""
    c = cluster(state=tmp_path / "east.json")
    notes = tuple(Note(str(i), "GPRFiled", "…", NOW, "vision") for i in range(NOTES_KEPT + 5))
    c.announce(notes[:3], NOW)
    c.announce((*notes[:3], notes[2]), NOW + MINUTE)
    assert c.notes() == notes[:3]
    c.announce(notes, NOW + MINUTE)
    assert cluster(state=tmp_path / "east.json").notes() == notes[5:]
