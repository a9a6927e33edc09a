"""What names the authors of GPR objects is there as soon as there are such objects, once for all projects (A8, C6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.admission.object_authors import (
    BINDING_PATH,
    GUARD,
    POLICY_PATH,
    WEBHOOK_PATH,
    guarded_since,
)
from reconciler.clusters.kubernetes.admission.placement_objects import Placement
from reconciler.clusters.kubernetes.admission.webhook import AdmissionService
from reconciler.clusters.kubernetes.api.api_client import Api, Rejected
from reconciler.clusters.kubernetes.api.api_features import Features, discover
from reconciler.clusters.kubernetes.names import AUTHOR, SYSTEM_NAMESPACE
from reconciler.model.cluster_port import Difference, Done, Stamp
from schemas.documents.cluster import Admission
from tests.reconciler.clusters.kubernetes.judging import NOW, STAMP, create, site
from tests.support.door import SPEC
from tests.support.kube import eventually
from tests.support.requests import Objects, install, namespace

MINUTE = timedelta(minutes=1)


@pytest.fixture
def requested(new_kube) -> Objects:
    """A server of today with the custom resource and a slice's namespace."""
    install(new_kube)
    namespace(new_kube, "vision-train", "vision")
    namespace(new_kube, SYSTEM_NAMESPACE, None)
    return Objects(new_kube.api, "vision-train")


@contextmanager
def keeping(
    api: Api,
    features: Features,
    admission: Admission = Admission(),  # noqa: B008 - frozen
    project: str = "default",
) -> Iterator[Placement]:
    """A project's controller, with our webhook beside it."""
    service = AdmissionService(api, SYSTEM_NAMESPACE, "127.0.0.1:0", SystemClock(), "127.0.0.1")
    service.start()
    found = Placement(api, features, admission, replace(site(service.port), project=project))
    for informer in found.informers:
        informer.start()
        informer.wait_synced(10)
    try:
        yield found
    finally:
        service.stop()
        for informer in found.informers:
            informer.stop()


def guards(api: Api) -> dict[str, bool]:
    """Which of them are there."""
    return {
        path.split("/")[-2]: api.find(path) is not None for path in (POLICY_PATH, BINDING_PATH, WEBHOOK_PATH)
    }


POLICIES = {
    "mutatingadmissionpolicies": True,
    "mutatingadmissionpolicybindings": True,
    "mutatingwebhookconfigurations": False,
}
WEBHOOK = {kind: not there for kind, there in POLICIES.items()}
NONE = dict.fromkeys(POLICIES, False)


def signed(objects: Objects) -> None:
    """What is applied now bears its sender's name, whatever it says."""
    count = iter(range(10_000))

    def look() -> bool:
        made = objects.apply(f"try-{next(count)}", **SPEC)
        return (made["metadata"].get("annotations") or {}).get(AUTHOR) == "admin"

    eventually(look, "an object that is given its author")


@pytest.mark.parametrize("mode", ["auto", "webhook", "policy"])
def test_a_server_that_can_names_authors_by_itself(requested: Objects, mode: str) -> None:
    """Whatever judges the pods: projects that share the cluster must not differ about what is there once."""
    api = requested.api
    with keeping(api, discover(api), Admission.model_validate({"mode": mode})) as placement:
        assert placement.ensure(STAMP, NOW) == Done()
        assert guards(api) == POLICIES
        eventually(lambda: placement.differences(NOW) == (), "no difference")
        signed(requested)


def test_another_server_asks_our_webhook_and_goes_over_once_it_can(requested: Objects) -> None:
    """The same objects on 1.30 and, upgraded, on 1.36; at no instant is nobody named."""
    api = requested.api
    top = discover(api)
    with keeping(api, replace(top, mutating_policies=False)) as placement:
        assert placement.ensure(STAMP, NOW) == Done()
        assert guards(api) == WEBHOOK
        assert guarded_since(None, None, api.get(WEBHOOK_PATH)) is not None
        signed(requested)
        with pytest.raises(Rejected, match="AuthorForged"):
            requested.apply("forged", {AUTHOR: "ada@example.com"}, **SPEC)
    with keeping(api, top) as placement:
        assert placement.ensure(STAMP, NOW + MINUTE) == Done()
        assert guards(api) == POLICIES
        signed(requested)


def test_nobody_is_named_before_there_is_anything_to_name(new_kube) -> None:
    """The custom resource comes later, while the controller runs; when it goes nothing is taken away."""
    api = new_kube.api
    namespace(new_kube, SYSTEM_NAMESPACE, None)
    with keeping(api, discover(api)) as placement:
        assert placement.ensure(STAMP, NOW) == Done()
        assert guards(api) == NONE
        install(new_kube)
        assert placement.differences(NOW) == (), "known for a minute"
        kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
        missing = tuple(Difference("", f"{kind} {GUARD}", "missing") for kind in kinds)
        assert placement.differences(NOW + MINUTE) == missing
        assert placement.ensure(STAMP, NOW + MINUTE) == Done()
        assert guards(api) == POLICIES
        api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gprs.egs.dev")
        eventually(lambda: not discover(api).requests, "the custom resource is gone")
        assert placement.ensure(STAMP, NOW + 2 * MINUTE) == Done()
        assert guards(api) == POLICIES


def test_what_others_loosened_is_put_back(requested: Objects) -> None:
    """Drift."""
    api = requested.api
    with keeping(api, discover(api)) as placement:
        assert placement.ensure(STAMP, NOW) == Done()
        api.merge(POLICY_PATH, {"spec": {"failurePolicy": "Ignore"}})
        changed = (Difference("", f"MutatingAdmissionPolicy {GUARD}", "changed", "spec.failurePolicy"),)
        eventually(lambda: placement.differences(NOW) == changed, "the difference")
        assert placement.ensure(STAMP, NOW) == Done()
        assert api.get(POLICY_PATH)["spec"]["failurePolicy"] == "Fail"


def test_projects_that_share_a_cluster_keep_it_together(requested: Objects) -> None:
    """Their stamps are of different repositories: neither outranks the other, and none takes it from the other."""
    api = requested.api
    with keeping(api, discover(api)) as one, keeping(api, discover(api), project="lab") as other:
        assert one.ensure(Stamp(9, 9), NOW) == Done()
        version = api.get(POLICY_PATH)["metadata"]["resourceVersion"]
        eventually(lambda: GUARD in other._known["MutatingAdmissionPolicyBinding"].items(), "the other knows")
        assert other.ensure(Stamp(1, 1), NOW) == Done()
        assert api.get(POLICY_PATH)["metadata"]["resourceVersion"] == version
        assert one.remove(Stamp(9, 9)) == Done()
        assert guards(api) == POLICIES
        eventually(lambda: other.differences(NOW) == (), "the other's own are as they were")


def test_the_oldest_server_is_sent_to_our_webhook_too(kube) -> None:
    """Its configuration only: no object is written, which this build of 1.20 would not survive."""
    api = kube.api
    install(kube)
    eventually(lambda: create(api, "/api/v1/namespaces", {"metadata": {"name": SYSTEM_NAMESPACE}}), "it")
    with keeping(api, discover(api)) as placement:
        assert placement.ensure(STAMP, NOW) == Done()
        (hook,) = api.get(WEBHOOK_PATH)["webhooks"]
        assert hook["clientConfig"]["url"].endswith("/authors")
        eventually(lambda: placement.differences(NOW) == (), "no server's default looks like a difference")
