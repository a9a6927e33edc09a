"""Exports on a real API server with the real resources of the Multi-Cluster Services API and Cilium (C7, H13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.rbac import EXPORT_RULES, RULES
from reconciler.clusters.kubernetes.services.export_objects import NO_CONTROLLER, UNANSWERED_AFTER
from reconciler.clusters.kubernetes.tenancy.optional_objects import LOOK
from reconciler.clusters.kubernetes.whole_slices import WholeSlices
from reconciler.model.cluster_port import Done, Refused, SliceTerms
from reconciler.model.service_port import ExportsView, ExportView, Peer
from schemas.reading.units import parse_instant
from tests.reconciler.clusters.kubernetes.tenants import (
    FIRST,
    NEWER,
    NOW,
    OLD,
    as_user,
    finished,
    namespace,
    terms,
)
from tests.reconciler.clusters.kubernetes.test_slices_rights import CONTROLLER, granted, may
from tests.support.crds import CILIUM, MCS, install_crds
from tests.support.kube import Plane, eventually

TERMS = replace(terms("vision", "vision", "vision-dev"), peers=(Peer("west", "west"),))
PLAIN = replace(TERMS, peers=None)
EXPORTS = "/apis/multicluster.x-k8s.io/v1beta1"
POLICIES = "/apis/cilium.io/v2"
POLICY = f"{POLICIES}/namespaces/vision/ciliumnetworkpolicies/egs-peers"
SERVICES = "/api/v1/namespaces/vision/services"


@pytest.fixture
def cluster(new_kube: Plane) -> Plane:
    install_crds(new_kube.api, MCS, "serviceexports")
    return new_kube


@pytest.fixture
def slices(new_kube: Plane) -> Iterator[WholeSlices]:
    found = opened(new_kube)
    yield found
    found.stop()


def opened(plane: Plane) -> WholeSlices:
    made = WholeSlices(plane.api, "default", "egs-system", "east")
    made.start()
    made.namespaces()
    return made


def service(plane: Plane, name: str, space: str = "vision", **labels: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {key.replace("_", "/"): value for key, value in labels.items()}},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }
    plane.api.create(f"/api/v1/namespaces/{space}/services", body)


ASKED = {"egs.dev_export": "true"}


def ensured(slices: WholeSlices, wanted: SliceTerms = TERMS) -> None:
    assert slices.ensure(wanted, FIRST, NOW) == Done()


def settled(slices: WholeSlices, wanted: SliceTerms = TERMS) -> None:
    """The Services are known, and exported as they ask for it."""

    def is_so() -> bool:
        ensured(slices, wanted)
        return not slices.differences((wanted,), NOW)

    eventually(is_so, "nothing differs")


def exported(plane: Plane) -> list[str]:
    found = plane.api.items(f"{EXPORTS}/serviceexports", labelSelector="egs.dev/slice=vision")
    return sorted(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in found)


def states(slices: WholeSlices, now: datetime = NOW) -> dict[str, str]:
    return {each.name: each.state for each in slices.exports(now)["vision"].exports}


def test_labelled_services_are_exported_while_they_have_the_label(
    cluster: Plane, slices: WholeSlices
) -> None:
    """C7: and one in a foreign namespace, or without the label, never."""
    ensured(slices)
    namespace(cluster, "others")
    service(cluster, "db", **ASKED)
    service(cluster, "cache")
    service(cluster, "theirs", "others", **ASKED)
    eventually(lambda: slices.differences((TERMS,), NOW), "the Service is seen")
    (difference,) = slices.differences((TERMS,), NOW)
    assert (difference.object, difference.found) == ("ServiceExport vision/db", "outdated"), (
        "no foreign change"
    )
    settled(slices)
    assert exported(cluster) == ["vision/db"]
    cluster.api.merge(f"{SERVICES}/db", {"metadata": {"labels": {"egs.dev/export": None}}})
    cluster.api.merge(f"{SERVICES}/cache", {"metadata": {"labels": {"egs.dev/export": "true"}}})
    eventually(lambda: len(slices.differences((TERMS,), NOW)) == 2, "both are seen")
    settled(slices)
    assert exported(cluster) == ["vision/cache"]


def test_what_is_so_already_costs_no_call(cluster: Plane, slices: WholeSlices) -> None:
    ensured(slices)
    service(cluster, "db", **ASKED)
    eventually(lambda: slices.differences((TERMS,), NOW), "the Service is seen")
    settled(slices)
    before = cluster.api.calls
    ensured(slices)
    slices.differences((TERMS,), NOW)
    assert cluster.api.calls == before


@pytest.mark.parametrize("restarted", [False, True], ids=["at once", "after a restart"])
def test_exports_that_are_wanted_no_more_go(cluster: Plane, slices: WholeSlices, restarted: bool) -> None:
    """Also those that an earlier process left."""
    ensured(slices)
    service(cluster, "db", **ASKED)
    eventually(lambda: slices.differences((TERMS,), NOW), "the Service is seen")
    settled(slices)
    if restarted:
        slices.stop()
        slices = opened(cluster)
    assert {d.found for d in slices.differences((PLAIN,), NOW)} == {"extra"}
    ensured(slices, PLAIN)
    assert exported(cluster) == []
    assert slices.exports(NOW) == {}
    assert slices.differences((PLAIN,), NOW) == ()
    slices.stop()


def test_exports_go_with_their_slice_and_never_by_an_older_controller(
    cluster: Plane, slices: WholeSlices
) -> None:
    """C2."""
    ensured(slices)
    service(cluster, "db", **ASKED)
    eventually(lambda: slices.differences((TERMS,), NOW), "the Service is seen")
    settled(slices)
    assert slices.ensure(TERMS, NEWER, NOW) == Done()
    for answer in (slices.ensure(PLAIN, OLD, NOW), slices.remove("vision", False, OLD, NOW)):
        assert isinstance(answer, Refused)
        assert answer.reason == "StaleStamp"
    assert exported(cluster) == ["vision/db"]
    finished(lambda now: slices.remove("vision", False, NEWER, now))
    assert exported(cluster) == []


def test_what_the_controller_says_is_shown(cluster: Plane, slices: WholeSlices) -> None:
    """A controller's word counts; without one, a sentence says what to install."""
    ensured(slices)
    service(cluster, "db", **ASKED)
    eventually(lambda: slices.differences((TERMS,), NOW), "the Service is seen")
    settled(slices)
    path = f"{EXPORTS}/namespaces/vision/serviceexports/db"
    soon = parse_instant(cluster.api.get(path)["metadata"]["creationTimestamp"])
    later = soon + UNANSWERED_AFTER
    assert states(slices, soon) == {"db": "Waiting"}
    assert slices.exports(later)["vision"] == ExportsView(
        (ExportView("vision", "db", "Unanswered", NO_CONTROLLER),)
    )
    answered: Json = {
        "type": "Valid",
        "status": "True",
        "reason": "Valid",
        "message": "",
        "lastTransitionTime": "2026-11-21T08:00:00Z",
    }
    cluster.api.merge(f"{path}/status", {"status": {"conditions": [answered]}})
    eventually(lambda: states(slices, later) == {"db": "Exported"}, "its word")
    assert slices.differences((TERMS,), NOW) == ()


def test_cilium_s_policies_are_kept_exactly(cluster: Plane, slices: WholeSlices) -> None:
    """H13: what others add to them is a hole, and is removed."""
    install_crds(cluster.api, CILIUM, "ciliumnetworkpolicies")
    ensured(slices)
    assert slices.differences((TERMS,), NOW) == ()
    assert slices.exports(NOW)["vision"].by_name
    assert len(list(cluster.api.items(f"{POLICIES}/ciliumnetworkpolicies"))) == 2
    before = cluster.api.get(POLICY)["spec"]
    hole: list[Json] = [{"fromEntities": ["world"]}]
    change = {
        "spec": {"ingress": [*before["ingress"], *hole]},
        "specs": [{"endpointSelector": {}, "ingress": hole}],
    }
    cluster.api.merge(POLICY, change)
    eventually(lambda: slices.differences((TERMS,), NOW), "it is seen")
    ensured(slices)
    after = cluster.api.get(POLICY)
    assert (after["spec"], after.get("specs") or []) == (before, [])
    ensured(slices, replace(TERMS, peers=()))
    assert list(cluster.api.items(f"{POLICIES}/ciliumnetworkpolicies")) == []


def test_without_the_api_the_slice_is_made_and_says_so(new_kube: Plane, slices: WholeSlices) -> None:
    """And it is used once it is there, in its older version too."""
    ensured(slices)
    assert slices.differences((TERMS,), NOW) == ()
    assert slices.exports(NOW)["vision"].problem == (
        "cluster east does not serve ServiceExport of multicluster.x-k8s.io, so no Service is exported there; install "
        "an implementation of the Multi-Cluster Services API, or set spec.services.across of the slice to none"
    )
    service(new_kube, "db", **ASKED)
    install_crds(new_kube.api, MCS, "serviceexports", version="v1alpha1")
    assert {d.found for d in slices.differences((TERMS,), NOW + LOOK)} == {"outdated"}
    assert slices.ensure(TERMS, FIRST, NOW + LOOK) == Done()
    assert states(slices) == {"db": "Waiting"}


@pytest.mark.parametrize("rules", [(), EXPORT_RULES], ids=["without the rules", "with them"])
def test_the_rules_for_exports_are_needed_and_enough(cluster: Plane, rules: tuple[object, ...]) -> None:
    """Without them the slice says what to grant, and is made all the same."""
    if rules:
        install_crds(cluster.api, CILIUM, "ciliumnetworkpolicies")
    namespace(cluster, "egs-system")
    granted(cluster, [*RULES, *(EXPORT_RULES if rules else ())])
    eventually(lambda: may(cluster, "watch", "namespaces"), "the rights")
    slices = WholeSlices(as_user(cluster, CONTROLLER), "default", "egs-system", "east")
    slices.start()
    try:
        ensured(slices)
        if not rules:
            problem = slices.exports(NOW)["vision"].problem
            assert "the controller may not export Services in cluster east" in problem
            assert "set `mcs: true`" in problem
            return
        service(cluster, "db", **ASKED)
        eventually(lambda: slices.differences((TERMS,), NOW), "the Service is seen")
        settled(slices)
        assert exported(cluster) == ["vision/db"]
        cluster.api.merge(POLICY, {"spec": {"ingress": [{"fromEntities": ["world"]}]}})
        eventually(lambda: slices.differences((TERMS,), NOW), "it is seen")
        settled(slices)
        ensured(slices, PLAIN)
        assert exported(cluster) == []
    finally:
        slices.stop()
