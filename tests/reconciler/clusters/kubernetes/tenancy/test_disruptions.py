"""Work that loses its nodes before it is done keeps what it has done (D7, E5). On the newer real API server.

The Job controller and the eviction API are the real ones; what a kubelet does to pods the test does itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.admission.webhook import PATHS, mutated
from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.nodes import pod_exits
from reconciler.clusters.kubernetes.nodes.node_inventory import read_pod
from reconciler.clusters.kubernetes.tenancy.disruptions import POLICY, granting, sparing
from schemas.documents.cluster import Admission
from tests.reconciler.clusters.kubernetes import judging
from tests.reconciler.clusters.kubernetes.judged import GPU, container, gpu_pod, patched, pod
from tests.reconciler.clusters.kubernetes.judging import PODS, Judged, judged
from tests.support.kube import eventually, gpu_node

NOTICE_S = 600
JOBS = "/apis/batch/v1/namespaces/vision-train/jobs"
MODES = [pytest.param("auto", id="by policies"), pytest.param("webhook", id="by our webhook")]


def job(name: str = "j", gpus: bool = True, pods: int = 1, grace_s: int = 5, **spec: object) -> Json:
    """One whose pods never restart, unless it is said otherwise."""
    kinds = spec.pop("restartPolicy", "Never")
    template = pod(container(resources=GPU) if gpus else container(), restartPolicy=kinds)["spec"]
    template |= {"terminationGracePeriodSeconds": grace_s, "nodeName": None}
    meta = {"name": name}
    body = {"completions": pods, "parallelism": pods, "template": {"metadata": {}, "spec": template}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body}


OTHER = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
SPARED = [
    pytest.param(job(), True, id="a GPU Job whose pods never restart ignores disruptions"),
    pytest.param(job(gpus=False), False, id="one without GPUs is nobody's business"),
    pytest.param(job(restartPolicy="OnFailure"), False, id="pods that restart may have no such policy"),
    pytest.param(job(podFailurePolicy=OTHER), False, id="what people wrote of failures stays"),
]


@pytest.mark.parametrize(("item", "changed"), SPARED)
def test_which_jobs_are_told_to_ignore_disruptions(item: Json, changed: bool) -> None:
    assert (patched(item, sparing(item))["spec"].get("podFailurePolicy") == POLICY) == changed


@pytest.mark.parametrize(
    ("item", "want"),
    [
        pytest.param(gpu_pod(), 600, id="one that says nothing gets the notice"),
        pytest.param(gpu_pod(terminationGracePeriodSeconds=5), 600, id="one that wants less gets the notice"),
        pytest.param(gpu_pod(terminationGracePeriodSeconds=900), 900, id="one that wants more keeps it"),
        pytest.param(pod(terminationGracePeriodSeconds=5), 5, id="one without GPUs keeps what it has"),
    ],
)
def test_what_grace_a_pod_gets(item: Json, want: int) -> None:
    assert patched(item, granting(item, NOTICE_S))["spec"].get("terminationGracePeriodSeconds") == want


# --- the same on a real server ---


@contextmanager
def serving(api: Api, mode: str) -> Iterator[Judged]:
    """A slice's namespace, where pods are judged and changed with a notice of ten minutes."""
    with pytest.MonkeyPatch.context() as during, ExitStack() as open_:
        during.setitem(PATHS, "/mutate", mutated)
        plain = judging.site
        during.setattr(judging, "site", lambda port: replace(plain(port), grace_s=NOTICE_S))
        found = open_.enter_context(judged(api, discover(api), Admission(mode=mode), patches=True))
        eventually(lambda: spared(found.api, job()), "a Job that is changed")
        yield found


def spared(api: Api, item: Json) -> bool:
    """Whether a Job that is made now is told to ignore disruptions."""
    made = api.create(f"{JOBS}?dryRun=All&x=", item)
    return bool(made["spec"].get("podFailurePolicy") == POLICY)


@pytest.fixture(scope="module", params=MODES)
def cluster(new_plane, request) -> Iterator[Judged]:
    new_plane.wipe()
    with serving(new_plane.api, request.param) as found:
        yield found


@pytest.mark.parametrize(("item", "changed"), SPARED)
def test_a_server_says_the_same_of_jobs(cluster: Judged, item: Json, changed: bool) -> None:
    assert spared(cluster.api, item) == changed


@pytest.mark.parametrize("given", [None, 5, 600, 900])
def test_a_server_says_the_same_of_grace(cluster: Judged, given: int | None) -> None:
    item = gpu_pod() if given is None else gpu_pod(terminationGracePeriodSeconds=given)
    want = patched(item, granting(item, NOTICE_S))["spec"]["terminationGracePeriodSeconds"]
    assert cluster.trial(item)["spec"]["terminationGracePeriodSeconds"] == want


# --- evictions ---


@pytest.fixture
def bare(new_kube) -> Api:
    """A namespace where nobody changes anything: it is no slice's."""
    plain = {"metadata": {"name": "vision-train"}}
    eventually(lambda: judging.create(new_kube.api, "/api/v1/namespaces", plain), "the namespace")
    accounts = "/api/v1/namespaces/vision-train/serviceaccounts/default"
    eventually(lambda: new_kube.api.find(accounts), "an account for pods")
    return new_kube.api


@pytest.fixture(params=MODES)
def ours(new_kube, request) -> Iterator[Api]:
    """A cluster where Jobs and pods of slices are changed."""
    with serving(new_kube.api, request.param) as found:
        yield found.api


def running(api: Api, **more: object) -> list[Json]:
    """Two pods of a Job that runs, on a node each."""
    api.create(JOBS, job("train", pods=2, **more))
    found = eventually(lambda: two if len(two := list(api.items(PODS))) == 2 else None, "its pods")
    for number, item in enumerate(found):
        name = item["metadata"]["name"]
        api.create("/api/v1/nodes", gpu_node(f"n{number}"))
        target = {"apiVersion": "v1", "kind": "Node", "name": f"n{number}"}
        meta = {"name": name, "namespace": "vision-train"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        api.create(f"{PODS}/{name}/binding", body)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.merge(f"{PODS}/{name}/status", {"status": status}, "strategic-merge-patch")
    eventually(lambda: api.get(f"{JOBS}/train")["status"].get("ready") == 2, "both run")
    return list(api.items(PODS))


def evict(api: Api, item: Json) -> None:
    """As at the notice before a strict end."""
    now, found = SystemClock().now(), read_pod(item)
    assert found is not None
    by = now + timedelta(seconds=NOTICE_S)
    assert pod_exits.ask(api, [found], by, now, discover(api).eviction).blocked == ()


def grace(api: Api, item: Json) -> int | None:
    """Of a pod that is being deleted."""
    found: int | None = api.get(f"{PODS}/{item['metadata']['name']}")["metadata"].get(
        "deletionGracePeriodSeconds"
    )
    return found


def ends(api: Api, item: Json) -> None:
    """Its kubelet ends it, and then nothing of it is left."""
    name = item["metadata"]["name"]
    api.merge(f"{PODS}/{name}/status", {"status": {"phase": "Failed"}}, "strategic-merge-patch")
    api.delete(f"{PODS}/{name}", grace_s=0)


def test_without_us_an_eviction_fails_a_job_and_cuts_the_others_short(bare: Api) -> None:
    """What the rest is there for: five seconds instead of ten minutes to write a checkpoint."""
    first, second = running(bare, backoffLimit=0)
    evict(bare, first)
    assert grace(bare, first) in {NOTICE_S, NOTICE_S - 1}
    eventually(lambda: grace(bare, second) == 5, "the other pod is deleted with its own grace")


@pytest.mark.parametrize("limit", [0, 6])
def test_an_evicted_job_goes_on_and_every_pod_has_the_whole_notice(ours: Api, limit: int) -> None:
    first, second = running(ours, backoffLimit=limit)
    evict(ours, first)
    evict(ours, second)
    for item in (first, second):
        assert grace(ours, item) in {NOTICE_S, NOTICE_S - 1}
        ends(ours, item)
    gone = {first["metadata"]["name"], second["metadata"]["name"]}
    eventually(lambda: fresh(ours, gone) == 2, "its pods are made again")
    status = ours.get(f"{JOBS}/train")["status"]
    assert not status.get("failed")
    assert not status.get("conditions")


def fresh(api: Api, gone: set[str]) -> int:
    """Pods beside those."""
    return sum(item["metadata"]["name"] not in gone for item in api.items(PODS))


def test_a_suspended_job_gives_its_pods_the_notice_too(ours: Api) -> None:
    """Whoever suspends it, a queue for instance: pods then get their own grace."""
    first, second = running(ours, backoffLimit=0)
    ours.merge(f"{JOBS}/train", {"spec": {"suspend": True}})
    eventually(lambda: grace(ours, first) and grace(ours, second), "both are told")
    assert {grace(ours, first), grace(ours, second)} == {NOTICE_S}
    assert not ours.get(f"{JOBS}/train")["status"].get("failed")
