"""Workloads on real API servers: the cluster judges by the members' rights, nothing foreign is touched (A9, J1)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml

from reconciler.clusters.kubernetes.api.api_client import Api, Rejected
from reconciler.clusters.kubernetes.api.connection import from_text
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.rbac import RULES
from reconciler.model.cluster_port import Done, Refused, SliceTerms
from reconciler.model.workload_port import PlacedWorkload, WorkloadTerms
from schemas.status.workload_status import ObjectState
from tests.contract.test_workload_contract import KEY, Hours, job, settings, terms
from tests.reconciler.clusters.kubernetes.test_slices_rights import CONTROLLER, GROUP, RBAC, granted
from tests.reconciler.clusters.rig import FIRST, KUBERNETES_SPEC
from tests.support.kube import Plane, eventually
from tests.support.requests import namespace

SPACE = "/api/v1/namespaces/vision-train"
MINUTE = timedelta(minutes=1)


class Bench:
    """A controller of a cluster with the slice vision, and the time."""

    def __init__(self, api: Api, own: Api) -> None:
        self.api, self.clock = api, Hours()
        self.driver = KubernetesCluster("east", KUBERNETES_SPEC, own)
        answer = self.driver.ensure_slice(SliceTerms("vision", ("vision-train",)), FIRST, self.clock.now)
        assert answer == Done()

    def run(self, wanted: WorkloadTerms) -> Any:
        return self.driver.run_workload(wanted, FIRST, self.clock.later())

    def placed(self) -> PlacedWorkload:
        return self.driver.observe(self.clock.later()).placed[KEY]

    def placed_keys(self) -> set[str]:
        return set(self.driver.observe(self.clock.later()).placed)


@pytest.fixture
def bench(kube: Plane) -> Iterator[Bench]:
    made = Bench(kube.api, kube.connect())
    yield made
    made.driver.close()


@pytest.fixture
def new_bench(new_kube: Plane) -> Iterator[Bench]:
    made = Bench(new_kube.api, new_kube.connect())
    yield made
    made.driver.close()


def test_the_cluster_judges_by_the_members_rights(bench: Bench) -> None:
    """B4: what the members may not do, their workload may not do."""
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/egs-slice-member"
    rules = [rule for rule in bench.api.get(role)["rules"] if "jobs" not in rule["resources"]]
    bench.api.merge(role, {"rules": rules})

    def refusal() -> Refused | None:
        bench.clock.now += MINUTE
        answer = bench.run(terms(settings(), job(gpus=0)))
        return answer if isinstance(answer, Refused) and answer.reason == "RightsMissing" else None

    found = eventually(refusal, "the refusal of the Job")
    assert found is not None
    assert "members of slice vision may not" in found.message
    by_id = {each.id: each for each in bench.placed().objects}
    assert by_id["ConfigMap/settings"].state is ObjectState.READY, "one refused object stops no other"
    assert by_id["Job/train"].state is ObjectState.REFUSED
    assert bench.api.find("/apis/batch/v1/namespaces/vision-train/jobs/train") is None


def test_a_foreign_object_of_that_name_is_left_alone(bench: Bench) -> None:
    """What a person applied stays theirs."""
    foreign = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings"},
        "data": {"mine": "1"},
    }
    bench.api.create(f"{SPACE}/configmaps", foreign)
    answer = bench.run(terms(settings(epochs="3")))
    assert isinstance(answer, Refused)
    assert answer.reason == "ObjectTaken"
    assert bench.driver.end_workload(KEY, FIRST, bench.clock.later()) == Done()
    assert bench.api.get(f"{SPACE}/configmaps/settings")["data"] == {"mine": "1"}


def test_a_foreign_change_is_shown_with_its_author_and_put_right(bench: Bench) -> None:
    """J1: drift."""
    wanted = terms(settings(epochs="3"))
    bench.run(wanted)
    patched = {"data": {"epochs": "10"}}
    bench.api._json(
        "PATCH",
        f"{SPACE}/configmaps/settings",
        {"fieldManager": "kubectl-edit"},
        patched,
        "application/merge-patch+json",
    )
    (found,) = bench.placed().objects
    assert (found.state, found.reason) == (ObjectState.CHANGED, "ObjectChanged")
    assert "kubectl-edit" in found.message
    bench.clock.now += MINUTE
    assert bench.run(wanted) == Done()
    assert bench.api.get(f"{SPACE}/configmaps/settings")["data"]["epochs"] == "3"
    (found,) = bench.placed().objects
    assert found.state is ObjectState.READY


def test_data_outlives_the_lease(bench: Bench) -> None:
    """J4: a volume with checkpoints is never deleted, and used again."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "checkpoints"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    assert bench.run(terms(volume, settings())) == Done()
    uid = bench.api.get(f"{SPACE}/persistentvolumeclaims/checkpoints")["metadata"]["uid"]
    assert bench.driver.end_workload(KEY, FIRST, bench.clock.later()) == Done()
    assert bench.api.find(f"{SPACE}/configmaps/settings") is None
    assert bench.run(terms(volume)) == Done()
    assert bench.api.get(f"{SPACE}/persistentvolumeclaims/checkpoints")["metadata"]["uid"] == uid


def test_what_cannot_be_changed_is_refused_with_advice(bench: Bench) -> None:
    bench.run(terms(job(gpus=0)))
    edited = job(gpus=0)
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/train:2"
    answer = bench.run(terms(edited))
    assert isinstance(answer, Refused)
    assert answer.reason == "ObjectImmutable"
    assert "another name" in answer.message
    assert bench.driver.end_workload(KEY, FIRST, bench.clock.later()) == Done()
    path = "/apis/batch/v1/namespaces/vision-train/jobs/train"
    eventually(lambda: bench.api.find(path) is None, "the end of an object whose change was refused")


def test_a_kind_that_is_not_served_is_refused_as_such(bench: Bench) -> None:
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "gang"},
        "spec": {},
    }
    answer = bench.run(terms(job_set))
    assert isinstance(answer, Refused)
    assert answer.reason == "KindNotServed"
    assert "its admin installs it" in answer.message


def test_a_namespace_that_left_its_slice_keeps_users_objects(bench: Bench) -> None:
    """C2: what the slice's account cannot reach any more stays, and blocks nothing."""
    bench.run(terms(settings()))
    assert bench.driver.ensure_slice(SliceTerms("vision", ()), FIRST, bench.clock.later()) == Done()
    eventually(
        lambda: bench.driver.end_workload(KEY, FIRST, bench.clock.later()) == Done(), "the end of its record"
    )
    assert KEY not in bench.driver.observe(bench.clock.later()).placed


def test_what_the_members_may_not_delete_is_not_forgotten(bench: Bench) -> None:
    """The namespace is still the slice's: its admin hears what is left."""
    bench.run(terms(settings()))
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/egs-slice-member"
    rules = [rule for rule in bench.api.get(role)["rules"] if "configmaps" not in rule["resources"]]
    bench.api.merge(role, {"rules": rules})

    def is_refused() -> bool:
        bench.clock.now += MINUTE
        return isinstance(bench.run(terms(settings(epochs=str(bench.clock.now)))), Refused)

    eventually(is_refused, "the loss of the right")
    answer = bench.driver.end_workload(KEY, FIRST, bench.clock.later())
    assert isinstance(answer, Refused)
    assert "configmaps" in answer.message
    assert bench.api.find(f"{SPACE}/configmaps/settings") is not None
    assert KEY in bench.placed_keys()


def with_token(plane: Plane, namespace: str, name: str) -> Api:
    """The API with the credentials of a ServiceAccount, and nothing else."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    place = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    plane.api.create(place, account)
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    asked = {**head, "metadata": {}, "spec": {"expirationSeconds": 3600}}
    token = plane.api.create(f"{place}/{name}/token", asked)["status"]["token"]
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"] = [{**user, "user": {"token": token}} for user in config["users"]]
    return from_text("east", yaml.safe_dump(config))


def test_the_controller_s_own_rights_are_enough_and_do_not_reach_the_objects(new_kube: Plane) -> None:
    """B10: with exactly the listed rights it applies workloads, by impersonation of these accounts and no others."""
    plane = new_kube
    namespace(plane, "egs-system", None)
    granted(plane, list(RULES))
    subject = {"kind": "ServiceAccount", "name": "controller", "namespace": "egs-system"}
    for kind, place in (("ClusterRole", RBAC), ("Role", f"{RBAC}/namespaces/egs-system")):
        ref = {"apiGroup": GROUP, "kind": kind, "name": CONTROLLER}
        binding = {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}Binding", "metadata": {"name": "with-token"}}
        plane.api.create(
            f"{place}/{kind.lower()}bindings", {**binding, "roleRef": ref, "subjects": [subject]}
        )
    own = with_token(plane, "egs-system", "controller")
    eventually(lambda: allowed(own, "/api/v1/namespaces"), "its rights")
    bench = Bench(plane.api, own)
    try:
        assert bench.run(terms(job(gpus=0), settings())) == Done()
        assert bench.placed().objects[0].state is ObjectState.READY
        assert not allowed(own, f"{SPACE}/configmaps")
        assert not allowed(own.acting_as("kube-system", "default"), "/api/v1/namespaces")
    finally:
        bench.driver.close()


def allowed(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except Rejected as no:
        if no.status != 403:
            raise
        return False
    return True


def test_a_deployment_runs_on_the_new_server_too(new_bench: Bench) -> None:
    """J1: a Deployment, a Service and a ConfigMap."""
    pod = {"containers": [{"name": "web", "image": "example.com/web"}]}
    labels = {"app": "web"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    }
    assert new_bench.run(terms(deployment, service, settings())) == Done()
    assert [each.id for each in new_bench.placed().objects] == [
        "Service/web",
        "ConfigMap/settings",
        "Deployment/web",
    ]
    assert new_bench.driver.end_workload(KEY, FIRST, new_bench.clock.later()) == Done()
    for path in ("/apis/apps/v1/namespaces/vision-train/deployments/web", f"{SPACE}/services/web"):
        assert new_bench.api.find(path) is None
