"""Checks of real nodes by an image: what is asked of the cluster, and what people read (F4, F5, F8).

There is no kubelet: the tests say what it would report of a check's pod.
"""

from __future__ import annotations

import json

import pytest

from reconciler.clusters.kubernetes.names import SLICE
from reconciler.clusters.kubernetes.nodes.node_writer import NODES
from reconciler.model.cluster_port import Busy
from tests.reconciler.clusters.kubernetes.checking import (
    FIRST,
    HOUR,
    IMAGE,
    MINUTE,
    NOW,
    SECOND,
    SPEECH,
    kubelet,
    node,
)
from tests.support.kube import await_new_nodes, eventually

PRE = ["NodeHealth", "PersistentVolume", "Connectivity", "RdmaSubnet", "NcclLatency"]
GOOD = [
    {"check": "NodeHealth", "ok": True, "log": "8 GPUs answer"},
    {"check": "PersistentVolume", "ok": True, "write_mb_s": 812.5, "log": "64 MiB"},
    {"check": "Connectivity", "ok": True, "latency_ms": 0.21, "log": "API server and DNS answer"},
    {"check": "RdmaSubnet", "ok": True, "bandwidth_gbit_s": 384.2, "log": "8 ports active in fe80::"},
    {
        "check": "NcclLatency",
        "ok": True,
        "latency_us": 21.3,
        "bandwidth_gb_s": 471,
        "log": "all_reduce, 8 GPUs",
    },
]
LIMITS = {"gpuShape": "H100-80GB", "maxNcclLatency": 30, "minNcclBandwidth": 400}

with_image = pytest.mark.parametrize("bench", [{"image": IMAGE, "thresholds": [LIMITS]}], indirect=True)


@with_image
def test_one_job_measures_all_on_that_node_alone(bench):
    """F4: it waits for nobody else's node, holds its GPUs, and has no token."""
    bench.add(node("h100-2"))
    await_new_nodes(bench.plane.api)
    taint = {"key": SLICE, "effect": "NoSchedule"}
    bench.plane.api.merge(f"{NODES}/h100-1", {"spec": {"taints": [taint]}})
    assert isinstance(bench.ask(), Busy)
    assert isinstance(bench.ask(NOW + SECOND), Busy)
    pod = bench.bound()
    assert pod["spec"]["nodeName"] == "h100-1"
    assert '"values": ["h100-1"]' in json.dumps(pod["spec"]["affinity"]), "and not by chance"
    container = pod["spec"]["containers"][0]
    environment = {e["name"]: e.get("value", "") for e in container["env"]}
    assert environment["EGS_CHECKS"] == ",".join(PRE)
    assert (environment["EGS_NODE"], environment["EGS_GPUS"]) == ("h100-1", "8")
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert pod["spec"]["automountServiceAccountToken"] is False


@with_image
def test_what_it_measured_is_judged_and_kept_and_the_job_goes(bench):
    """F4, F5: values and logs are what people read."""
    bench.ask()
    bench.ask(NOW + SECOND)
    bench.finish("some noise", *GOOD)
    results = bench.ask(NOW + MINUTE)
    assert [(r.name, r.passed, r.value) for r in results] == [
        ("NodeHealth", True, "passed"),
        ("PersistentVolume", True, "812.5 MB/s"),
        ("Connectivity", True, "0.21 ms"),
        ("RdmaSubnet", True, "384.2 Gb/s"),
        ("NcclLatency", True, "21.3 us"),
    ]
    assert bench.names(bench.jobs) == []
    bench.restart()
    assert bench.ask(NOW + 5 * MINUTE) == results


@with_image
@pytest.mark.parametrize(
    ("line", "name", "log"),
    [
        pytest.param(
            {"check": "NcclLatency", "ok": True, "latency_us": 44, "bandwidth_gb_s": 471},
            "NcclLatency",
            "44.0 us is above 30",
            id="too slow",
        ),
        pytest.param(
            {"check": "NcclLatency", "ok": True, "latency_us": 20, "bandwidth_gb_s": 90, "log": "8 GPUs"},
            "NcclLatency",
            "90.0 GB/s is below 400; 8 GPUs",
            id="too narrow",
        ),
        pytest.param(
            {"check": "NcclLatency", "ok": None, "log": "all_reduce_perf is missing"},
            "NcclLatency",
            "the manifest limits latency_us to 30 but it was not measured; all_reduce_perf is missing",
            id="bounded and not measured",
        ),
        pytest.param(
            {"check": "NodeHealth", "ok": False, "log": "nvidia-smi shows 7 GPUs"},
            "NodeHealth",
            "nvidia-smi shows 7 GPUs",
            id="a GPU that only the node knows to be gone",
        ),
    ],
)
def test_what_is_not_good_enough_fails_and_says_why(bench, line, name, log):
    bench.ask()
    bench.ask(NOW + SECOND)
    bench.finish(*[good for good in GOOD if good["check"] != line["check"]], line)
    results = bench.ask(NOW + MINUTE)
    assert [(r.name, r.log) for r in results if not r.passed] == [(name, log)]


@with_image
def test_a_check_of_which_the_image_says_nothing_has_failed(bench):
    bench.ask()
    bench.ask(NOW + SECOND)
    bench.finish(*GOOD[:4], phase="Failed", exitCode=137, reason="OOMKilled")
    results = bench.ask(NOW + MINUTE)
    assert [(r.name, r.log) for r in results if not r.passed] == [
        ("NcclLatency", "the checks' image reported nothing for it (OOMKilled, exit code 137)")
    ]


@with_image
def test_the_log_is_read_where_the_termination_message_says_nothing(bench, tmp_path):
    """F5: an image that only prints is good enough."""
    lines = "\n".join(json.dumps(line) for line in GOOD)
    with kubelet(tmp_path, f"warming up\n{lines}\n") as status:
        bench.status("h100-1", status)
        bench.ask()
        bench.ask(NOW + SECOND)
        bench.bound()
        bench.finish()
        results = bench.ask(NOW + MINUTE)
    assert [r.passed for r in results] == [True] * 5


@with_image
def test_a_log_that_cannot_be_read_says_nothing(bench):
    """No kubelet answers there."""
    bench.ask()
    bench.ask(NOW + SECOND)
    bench.bound()
    bench.finish()
    results = bench.ask(NOW + MINUTE)
    assert {r.log for r in results if not r.passed} == {
        "the checks' image reported nothing for it (Completed, exit code 0)"
    }


@with_image
def test_checks_that_take_too_long_fail_and_say_what_they_wait_for(bench):
    bench.ask()
    bench.ask(NOW + SECOND)
    bench.report("Pending", {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}})
    bench.waits("ImagePullBackOff: no such image", NOW + MINUTE)
    results = bench.ask(NOW + 5 * MINUTE)
    failed = [r for r in results if not r.passed]
    assert [r.name for r in failed] == PRE[1:]
    assert failed[0].log.startswith("no result after 5 min: pod check-pre-")
    assert failed[0].log.endswith("is Pending, ImagePullBackOff: no such image")
    assert bench.names(bench.jobs) == []


@with_image
def test_a_pod_that_finds_no_gpus_says_so(bench):
    """Somebody's pod still holds them."""
    others = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}}
    bench.plane.api.create("/api/v1/namespaces", others)
    account = "/api/v1/namespaces/others/serviceaccounts/default"
    eventually(lambda: bench.plane.api.find(account), "what every pod needs")
    bench.plane.api.create("/api/v1/namespaces/others/pods", holder("h100-1"))
    bench.ask()
    bench.ask(NOW + SECOND)
    bench.waits("Insufficient nvidia.com/gpu", NOW + MINUTE)


@with_image
def test_a_repeat_after_a_crash_finds_the_same_job(bench):
    """Killed after each write: the record, then the Job."""
    bench.ask()
    bench.restart()
    bench.ask(NOW + SECOND)
    first = bench.names(bench.jobs)
    bench.restart()
    bench.ask(NOW + 2 * SECOND)
    assert bench.names(bench.jobs) == first
    assert len(first) == 1


@with_image
def test_a_job_that_somebody_deleted_is_made_again(bench):
    bench.ask()
    bench.ask(NOW + SECOND)
    name = bench.names(bench.jobs)[0]
    bench.plane.api.delete(f"{bench.jobs}/{name}")
    eventually(lambda: bench.ask(NOW + MINUTE) and bench.names(bench.jobs) == [name], "the Job again")


@with_image
def test_the_job_of_another_lease_gives_way(bench):
    """It holds the GPUs that the new one needs."""
    bench.ask()
    bench.ask(NOW + SECOND)
    first = bench.names(bench.jobs)
    bench.ask(NOW + MINUTE, lease=SPEECH)
    assert bench.names(bench.jobs) == []
    bench.ask(NOW + MINUTE + SECOND, lease=SPEECH)
    assert len(bench.names(bench.jobs)) == 1
    assert bench.names(bench.jobs) != first


@with_image
def test_jobs_that_nobody_waits_for_are_swept_up(bench):
    """The request was cancelled while its nodes were checked."""
    bench.ask()
    bench.ask(NOW + SECOND)
    bench.checks.sweep(bench.fleet(), FIRST, NOW + MINUTE)
    assert len(bench.names(bench.jobs)) == 1
    bench.checks.sweep([], FIRST, NOW + 2 * HOUR)
    assert len(bench.names(bench.jobs)) == 1, "not a node of ours"
    assert [d.found for d in bench.checks.left_over(bench.fleet(), NOW + 2 * HOUR)] == ["extra"]
    bench.checks.sweep(bench.fleet(), FIRST, NOW + 2 * HOUR)
    assert bench.names(bench.jobs) == []


@with_image
def test_a_node_that_is_not_clean_is_not_measured(bench):
    """Its Job would wait for GPUs that are in use."""
    bench.label("h100-1", **{SLICE: "vision"})
    results, _ = bench.answer(stage="post")
    assert [r.name for r in results if not r.passed] == ["Labels"]
    assert bench.names(bench.jobs) == []


@pytest.mark.parametrize("bench", [{"image": IMAGE, "storageClass": "fast"}], indirect=True)
def test_the_volume_is_asked_of_the_manifests_class_and_goes_with_the_job(bench):
    """F4: PV and PVC."""
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    body = {"metadata": {"name": "fast"}, "provisioner": "example.com/none"}
    bench.plane.api.delete(f"{classes}/fast")
    bench.plane.api.create(classes, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **body})
    try:
        bench.restart()
        bench.ask()
        bench.ask(NOW + SECOND)
        claim = next(iter(bench.plane.api.items(bench.claims)))
        assert claim["spec"]["storageClassName"] == "fast"
        assert [o["kind"] for o in claim["metadata"]["ownerReferences"]] == ["Job"]
        mounted = [v for v in bench.pod()["spec"]["volumes"] if "persistentVolumeClaim" in v]
        assert [v["persistentVolumeClaim"]["claimName"] for v in mounted] == [claim["metadata"]["name"]]
        # A crash between the two writes: the claim comes when the pod is seen to wait for it.
        name = claim["metadata"]["name"]
        path = f"{bench.claims}/{name}"
        bench.plane.api.patch(path, [{"op": "remove", "path": "/metadata/finalizers"}])
        bench.plane.api.delete(path)
        eventually(lambda: bench.ask(NOW + MINUTE) and bench.names(bench.claims) == [name], "the claim again")
    finally:
        bench.plane.api.delete(f"{classes}/fast")


@pytest.mark.parametrize("bench", [{"image": IMAGE, "storageClass": "fast"}], indirect=True)
def test_what_the_objects_know_to_fail_is_not_measured(bench):
    """Its pod would wait for a volume for ever."""
    results, _ = bench.answer()
    assert [r.name for r in results if not r.passed] == ["PersistentVolume"]
    assert "not run, since PersistentVolume failed" in [r.log for r in results]
    assert bench.names(bench.jobs) == []


# --- between running nodes ---


@pytest.mark.parametrize(
    "bench", [{"image": IMAGE, "latencyInterval": "10m", "maxLatency": 50}], indirect=True
)
def test_latency_is_measured_to_the_next_node_without_a_gpu_and_again_in_each_interval(bench):
    """F8: and a threshold makes it a word to people."""
    bench.add(node("h100-2"))
    bench.status("h100-2", {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]})
    run = {"stage": "run", "peers": ("h100-2",)}
    bench.ask(**run)
    bench.ask(NOW + SECOND, **run)
    container = bench.pod()["spec"]["containers"][0]
    assert container["resources"]["requests"] == {"cpu": "10m", "memory": "32Mi"}
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    assert {e["name"]: e.get("value") for e in container["env"]}["EGS_PEERS"] == "h100-2=10.0.0.2"
    bench.finish({"check": "Latency", "ok": True, "latency_us": 61.5, "log": "20 handshakes"})
    (result,) = bench.ask(NOW + MINUTE, **run)
    assert (result.name, result.passed, result.value) == ("Latency", False, "61.5 us to h100-2")
    assert result.log == "to h100-2: 61.5 us is above 50; 20 handshakes"
    assert bench.ask(NOW + 9 * MINUTE, **run) == (result,)
    assert isinstance(bench.ask(NOW + 10 * MINUTE, **run), Busy)


def test_a_lease_of_one_node_has_no_latency(bench):
    (result,), _ = bench.answer(stage="run")
    assert (result.passed, result.value) == (True, "no other node")


def holder(node_name: str):
    """A pod that has the node's GPUs."""
    gpus = {"limits": {"nvidia.com/gpu": "8"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "holder"},
        "spec": {
            "nodeName": node_name,
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "x", "resources": gpus}],
        },
    }
