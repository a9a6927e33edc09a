"""Resets of GPUs and reboots of nodes on a real API server (H14). The tests play kubelets and NVSentinel."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clusters.kubernetes.names import RELEASE_NVML, SYSTEM_NAMESPACE
from reconciler.clusters.kubernetes.nodes.gpu_resets import LET_GO, NVSENTINEL, SENTINEL_PATH, GpuResets
from reconciler.clusters.kubernetes.nodes.node_inventory import read_node
from reconciler.clusters.kubernetes.rbac import RULES, Rule
from reconciler.model.cluster_port import Busy, RemedyOrder, Stamp
from schemas.errors import Fault
from schemas.reading.units import format_instant
from tests.reconciler.clusters.kubernetes.tenants import as_user
from tests.reconciler.clusters.kubernetes.test_slices_rights import CONTROLLER, granted, may
from tests.reconciler.clusters.rig import KUBERNETES_SPEC
from tests.support.kube import eventually, gpu_node

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
STAMP = Stamp(3, 7)
GPUS = ("GPU-0000000a-0000-0000-0000-000000000000",)
RESET = RemedyOrder("remedy-00000000000000aa", "reset", GPUS)
RELEASED = RemedyOrder(RESET.uid, "reset", GPUS, released=True)
REBOOT = RemedyOrder("remedy-00000000000000bb", "reboot", released=True)
JOBS = f"/apis/batch/v1/namespaces/{SYSTEM_NAMESPACE}/jobs"
PODS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Bench:
    """A node with an agent, and our driver's part for resets."""

    def __init__(self, kube, **remediation: object) -> None:
        self.api = kube.api
        self.api.create(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}},
        )
        made = self.api.create("/api/v1/nodes", gpu_node("h100-1"))
        self.node = read_node(made)
        self.api.create(PODS, agent("agent-1", "h100-1"))
        self.api.create(PODS, agent("agent-2", "h100-2"))
        policy = KUBERNETES_SPEC.remediation.edited(**remediation)
        self.spec = KUBERNETES_SPEC.edited(remediation=policy)
        self.resets = GpuResets(self.api, self.spec, SYSTEM_NAMESPACE)

    def run(self, order: RemedyOrder, now: datetime = NOW):
        return self.resets.run(self.node, order, STAMP, now)

    def result(self, order: RemedyOrder):
        """What it says once it is over: a control plane may write its own status in between."""

        def said():
            answer = self.run(order)
            return None if isinstance(answer, Busy) else answer

        return eventually(said, "the order is over")

    def released(self, pod: str = "agent-1") -> str | None:
        """Until when that agent is asked to let go."""
        return (self.api.get(f"{PODS}/{pod}")["metadata"].get("annotations") or {}).get(RELEASE_NVML)

    def ends(self, path: str, status: dict) -> None:
        self.api.merge(f"{path}/status", {"status": status})

    def job_ends(self, order: RemedyOrder, phase: str, exit_code: int, message: str = "") -> None:
        """As its pod did. The server's own controller ends a Job: it may write over what others say of its status.

        It also remembers pods by the names of their Jobs, so that each test needs a name of its own.
        """
        job = {"labelSelector": f"job-name={order.uid}"}
        pod = eventually(lambda: self.api.get(PODS, **job)["items"], "the Job's pod")[0]["metadata"]["name"]
        ended = {"terminated": {"exitCode": exit_code, "message": message}}
        container = {
            "name": "reset",
            "state": ended,
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
        self.ends(f"{PODS}/{pod}", {"phase": phase, "containerStatuses": [container]})


def agent(name: str, node: str) -> dict:
    """A pod as our DaemonSet makes it."""
    labels = {"app.kubernetes.io/name": "egs", "app.kubernetes.io/component": "agents"}
    container = {"name": "agents", "image": "egs"}
    spec = {"nodeName": node, "containers": [container], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def crd(kind: str) -> dict:
    """A definition as NVSentinel installs it, without the fields of its schema."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.janitor.dgxc.nvidia.com"},
        "spec": {
            "group": "janitor.dgxc.nvidia.com",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Cluster",
            "versions": [version],
        },
    }


@pytest.fixture
def sentinel(new_kube):
    """A bench in a cluster with NVSentinel, which asks for a newer one than the oldest that we know."""
    bench = Bench(new_kube)
    for kind in ("GPUReset", "RebootNode"):
        bench.api.create(CRDS, crd(kind))
    for _ in range(2_000):  # served a moment after they were made
        served = (bench.api.find(SENTINEL_PATH) or {}).get("resources") or ()
        if {"gpuresets", "rebootnodes"} <= {found["name"] for found in served}:
            return bench
    raise AssertionError("the definitions are not served")


def test_the_agent_lets_go_before_anything_is_reset(kube):
    """H14: only the node's own agent, for a while that is renewed."""
    bench = Bench(kube, image="cuda:12")
    assert isinstance(bench.run(RESET), Busy)
    assert (bench.released(), bench.released("agent-2")) == (format_instant(NOW + LET_GO), None)
    assert bench.api.get(JOBS)["items"] == []
    bench.run(RESET, NOW + MINUTE)
    assert bench.released() == format_instant(NOW + LET_GO)
    bench.run(RESET, NOW + 3 * MINUTE)
    assert bench.released() == format_instant(NOW + 3 * MINUTE + LET_GO)


def test_a_job_resets_these_gpus_on_this_node(kube):
    """H14: once."""
    bench = Bench(kube, image="cuda:12", runtime_class="nvidia")
    bench.run(RESET)
    assert isinstance(bench.run(RELEASED), Busy)
    assert isinstance(bench.run(RELEASED), Busy)
    (job,) = bench.api.get(JOBS)["items"]
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"] == ["nvidia-smi", "--gpu-reset", "-i", GPUS[0]]
    assert (pod["containers"][0]["image"], pod["runtimeClassName"]) == ("cuda:12", "nvidia")
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchFields"][0]["values"] == ["h100-1"]
    assert job["metadata"]["annotations"]["egs.dev/stamp"] == "3.7"


IN_USE = "GPU 00000000:0A:00.0 is currently in use by another process"


@pytest.mark.parametrize(
    ("uid", "phase", "exit_code", "said"),
    [("remedy-1", "Succeeded", 0, ""), ("remedy-2", "Failed", 19, IN_USE)],
)
def test_a_job_that_ended_says_how(kube, uid, phase, exit_code, said):
    """H14: the words of nvidia-smi, as its container left them; after it the agent may take the driver up again."""
    bench, order = Bench(kube, image="cuda:12"), replace(RELEASED, uid=uid)
    assert isinstance(bench.run(order), Busy)
    bench.job_ends(order, phase, exit_code, said)
    (result,) = bench.result(order)
    assert (result.name, result.passed, bench.released()) == ("Reset", phase == "Succeeded", None)
    assert said in result.log
    assert bench.run(order) == (result,)


def test_a_cluster_without_an_image_and_without_nvsentinel_resets_nothing(kube):
    bench = Bench(kube)
    (result,) = bench.run(RESET)
    assert not result.passed
    assert "spec.remediation has no image" in result.log
    assert bench.released() is None


def test_a_reboot_without_nvsentinel_is_the_routes_affair(kube):
    """H14: the event is the hook."""
    bench = Bench(kube)
    (result,) = bench.run(REBOOT)
    assert (result.name, result.passed) == ("Reboot", True)


@pytest.mark.parametrize(("phase", "passed"), [("Succeeded", True), ("Failed", False)])
def test_nvsentinel_resets_where_it_is_installed(sentinel, phase, passed):
    """H14: its own object, also where there is an image."""
    bench = sentinel
    assert isinstance(bench.run(RELEASED), Busy)
    path = f"{SENTINEL_PATH}/gpuresets/{RESET.uid}"
    assert bench.api.get(path)["spec"] == {"nodeName": "h100-1", "selector": {"uuids": list(GPUS)}}
    bench.ends(path, {"phase": "InProgress"})
    assert isinstance(bench.run(RELEASED), Busy)
    bench.ends(path, {"phase": phase, "conditions": [condition("Complete", "True", "in use by a client")]})
    (result,) = bench.run(RELEASED)
    assert (result.passed, result.log, bench.released()) == (passed, "in use by a client", None)


@pytest.mark.parametrize(("ready", "passed"), [("True", True), ("False", False)])
def test_nvsentinel_reboots_where_it_is_installed(sentinel, ready, passed):
    """H14."""
    bench = sentinel
    assert isinstance(bench.run(REBOOT), Busy)
    path = f"{SENTINEL_PATH}/rebootnodes/{REBOOT.uid}"
    assert bench.api.get(path)["spec"] == {"nodeName": "h100-1", "force": False}
    done = {"completionTime": format_instant(NOW), "conditions": [condition("NodeReady", ready, "told")]}
    bench.ends(path, done)
    (result,) = bench.run(REBOOT)
    assert (result.name, result.passed) == ("Reboot", passed)


def rights_of(new_kube, bench: Bench, rules: list[Rule]) -> None:
    """From now on the driver may do only that."""
    granted(new_kube, rules)
    eventually(lambda: may(new_kube, "watch", "namespaces"), "the rights")
    bench.resets = GpuResets(as_user(new_kube, CONTROLLER), bench.spec, SYSTEM_NAMESPACE)


def test_the_controllers_rules_are_enough_for_nvsentinel(new_kube, sentinel):
    """H14: both kinds are made and read with the rights that the chart grants, and with no others."""
    rights_of(new_kube, sentinel, list(RULES))
    for order in (RELEASED, REBOOT):
        assert isinstance(sentinel.run(order), Busy)  # made
        assert isinstance(sentinel.run(order), Busy)  # read


@pytest.mark.parametrize(
    ("rule", "verb"),
    [
        pytest.param(rule, verb, id=f"without {verb} {rule.resource}")
        for rule in RULES
        if rule.group == NVSENTINEL
        for verb in rule.verbs
    ],
)
def test_none_of_the_rules_for_nvsentinel_is_spare(new_kube, sentinel, rule, verb):
    less = [replace(r, verbs=tuple(v for v in r.verbs if v != verb)) if r is rule else r for r in RULES]
    rights_of(new_kube, sentinel, less)
    order = RELEASED if rule.resource == "gpuresets" else REBOOT
    with pytest.raises(Fault, match=f'cannot {verb} resource "{rule.resource}"'):
        sentinel.run(order)


def condition(kind: str, status: str, message: str) -> dict:
    """One of an object's conditions."""
    at = format_instant(NOW)
    return {"type": kind, "status": status, "reason": "X", "message": message, "lastTransitionTime": at}
