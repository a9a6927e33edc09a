"""The objects that have API servers judge pods are there, and only those: drift, stamps, upgrade, removal (C6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.admission.object_shapes import KINDS
from reconciler.clusters.kubernetes.admission.placement_objects import Placement
from reconciler.clusters.kubernetes.admission.webhook import PATHS, AdmissionService, mutated
from reconciler.clusters.kubernetes.api.api_features import ADMISSION, discover
from reconciler.clusters.kubernetes.names import SLICE, SYSTEM_NAMESPACE
from reconciler.model.cluster_port import Busy, Difference, Done, Refused, Stamp
from schemas.documents.cluster import Admission
from tests.reconciler.clusters.kubernetes.judged import namespace
from tests.reconciler.clusters.kubernetes.judging import (
    NOW,
    STAMP,
    Judged,
    create,
    judged,
    placed,
    refused,
    started,
    without_patches,
)
from tests.support.kube import eventually


@pytest.fixture(scope="module")
def no_patches() -> Iterator[None]:
    """A webhook that changes nothing."""
    with without_patches():
        yield


@pytest.fixture
def webhook_patches(monkeypatch) -> None:
    """A webhook as it is, whatever the tests on 1.20 made of it."""
    monkeypatch.setitem(PATHS, "/mutate", mutated)


@pytest.fixture
def fresh(kube, no_patches) -> Iterator[Judged]:
    """1.20, for one test."""
    with judged(kube.api, discover(kube.api), Admission()) as found:
        yield found


WEBHOOKS = f"{ADMISSION}/validatingwebhookconfigurations"
NAME = "egs-default-isolation"


def seen(placement: Placement, want: object) -> None:
    """The watch has brought it."""
    eventually(lambda: placement.differences(NOW) == want, f"{want}", 5)


@pytest.mark.parametrize("field", ["objectSelector", "namespaceSelector"])
def test_what_others_changed_is_seen_and_put_back(fresh: Judged, field: str) -> None:
    """Drift: a narrowed selector counts, another's label does not."""
    fresh.api.merge(f"{WEBHOOKS}/{NAME}", {"metadata": {"labels": {"theirs": "1"}}})
    hook = fresh.api.get(f"{WEBHOOKS}/{NAME}")["webhooks"]
    narrowed = {**hook[0].get(field, {})}
    narrowed["matchLabels"] = {**narrowed.get("matchLabels", {}), "judged": "please"}
    before, hook[0][field] = hook[0].get(field, {}), narrowed
    fresh.api.merge(f"{WEBHOOKS}/{NAME}", {"webhooks": hook})
    seen(fresh.placement, (Difference("", f"ValidatingWebhookConfiguration {NAME}", "changed", "webhooks"),))
    assert fresh.placement.ensure(STAMP, NOW) == Done()
    found = fresh.api.get(f"{WEBHOOKS}/{NAME}")
    assert found["webhooks"][0].get(field, {}) == before
    assert found["metadata"]["labels"]["theirs"] == "1"


def test_what_others_deleted_comes_back_and_a_quarrel_slows_down(fresh: Judged) -> None:
    missing = (Difference("", f"ValidatingWebhookConfiguration {NAME}", "missing"),)
    for _ in range(2):
        fresh.api.delete(f"{WEBHOOKS}/{NAME}")
        seen(fresh.placement, missing)
        last = fresh.placement.ensure(STAMP, NOW)
    assert isinstance(last, Busy)
    assert fresh.placement.ensure(STAMP, last.until) == Done()
    seen(fresh.placement, ())


def test_an_older_controller_changes_nothing(fresh: Judged) -> None:
    """The stamp of the object is newer: whatever the old one wants is refused."""
    for old in (Stamp(2, 99), Stamp(3, 6)):
        answer = fresh.placement.ensure(old, NOW)
        assert isinstance(answer, Refused)
        assert answer.reason == "StaleStamp"
        assert isinstance(fresh.placement.remove(old), Refused)
    assert fresh.api.find(f"{WEBHOOKS}/{NAME}")


def test_a_new_term_marks_what_it_takes_over(fresh: Judged) -> None:
    """Else the old controller, once awake, could still write."""
    assert fresh.placement.ensure(Stamp(4, 1), NOW) == Done()
    assert isinstance(fresh.placement.ensure(STAMP, NOW), Refused)


def test_nothing_is_left_after_removal(fresh: Judged) -> None:
    assert fresh.placement.remove(STAMP) == Done()
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert list(fresh.api.items(f"{ADMISSION}/{plural}")) == []


def test_nobody_is_sent_to_a_webhook_that_never_ran(kube) -> None:
    """Else every pod of a slice would be refused by the mere installation."""
    kube.api.create("/api/v1/namespaces", {"metadata": {"name": SYSTEM_NAMESPACE}})
    placement = started(kube.api, discover(kube.api), 1)
    answer = placement.ensure(STAMP, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "AdmissionMissing"
    assert list(kube.api.items(WEBHOOKS)) == []
    assert [found.object for found in placement.differences(NOW)] == ["admission webhook"]


def test_policies_that_a_server_has_not_are_refused_by_name(kube) -> None:
    placement = started(kube.api, discover(kube.api), 1, Admission(mode="policy"))
    answer = placement.ensure(STAMP, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "PoliciesNotServed"


def test_where_nothing_is_wanted_nothing_is_made(kube) -> None:
    placement = started(kube.api, discover(kube.api), 1, Admission(mode="none"))
    assert placement.ensure(STAMP, NOW) == Done()
    assert list(kube.api.items(WEBHOOKS)) == []


def test_an_upgraded_cluster_goes_over_to_policies(new_kube, webhook_patches) -> None:
    """1.25, then 1.30, then 1.36: at each step exactly the right objects, and a GPU pod is given its nodes."""
    api = new_kube.api
    for made in ({"metadata": {"name": SYSTEM_NAMESPACE}}, namespace()):
        eventually(lambda made=made: create(api, "/api/v1/namespaces", made), "the namespace")
    top = discover(api)
    middle = replace(top, mutating_policies=False)
    bottom = replace(middle, validating_policies=False, match_conditions=False)
    later = NOW
    for features, kinds in (
        (bottom, ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]),
        (
            middle,
            ["MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
        ),
        (top, [kind for kind in KINDS if "Policy" in kind]),
    ):
        service = AdmissionService(api, SYSTEM_NAMESPACE, "127.0.0.1:0", SystemClock(), "127.0.0.1")
        service.start()
        placement = started(api, features, service.port)
        later += timedelta(minutes=5)
        assert placement.ensure(STAMP, later) == Done()
        found = [
            kind
            for kind, plural in KINDS.items()
            if list(api.items(f"{ADMISSION}/{plural}", labelSelector="app.kubernetes.io/managed-by=egs"))
        ]
        assert sorted(found) == sorted(kinds)
        eventually(lambda: placed(api).get(SLICE) == "vision", "a pod that is given its nodes")
        refused(api)
        service.stop()
        for informer in placement.informers:
            informer.stop()
