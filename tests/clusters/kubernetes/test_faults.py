"""Whatever goes wrong between us and an API server has a plain message, and harms nobody else (issue 3 §2).

What a server can be made to do is done by the real one; what no server does on demand is said in its place, by
`tests.support.faulty`, and what no server should say comes from a script on the loopback.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from reconciler.clusters.kubernetes import api as api_module
from reconciler.clusters.kubernetes.api import Api, Limiter, Rate, Rejected
from reconciler.clusters.kubernetes.connect import from_text
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.informer import Informer
from reconciler.clusters.kubernetes.marks import Marks, marks_of
from reconciler.clusters.kubernetes.names import EXIT, LEASE, SLICE, STAMP
from reconciler.clusters.open import Ground, open_cluster
from reconciler.clusters.port import Busy, Done, Refused, SliceTerms
from schemas.cluster import Access, Admission, ClientRate
from schemas.errors import Fault
from tests.clusters.kubernetes.living import (
    HOME,
    MINUTE,
    NODES,
    SPEC,
    SPEECH,
    TERMS,
    VISION,
    A,
    B,
    h100,
    prepared,
)
from tests.clusters.kubernetes.tenants import FIRST, NOW, namespace, pod
from tests.clusters.rig import placed
from tests.support.faulty import Canned, Wire, client, lost, scripted, send
from tests.support.kube import FAST, Plane, eventually, gpu_node

LONGER = replace(VISION, end=VISION.end + MINUTE)
OBSERVED = SPEC.model_copy(update={"admission": Admission(mode="none")})


@dataclass
class Site:
    """A driver of a prepared cluster, and what stands between the two."""

    plane: Plane
    driver: KubernetesCluster
    wire: Wire

    def touch(self, node: str) -> None:
        """Somebody else changes it."""
        self.plane.api.merge(f"{NODES}/{node}", {"metadata": {"annotations": {"touched": str(id(object()))}}})


@pytest.fixture
def site(kube) -> Iterator[Site]:
    prepared(kube)
    api = kube.connect()
    found = Site(kube, KubernetesCluster("east", OBSERVED, api, HOME), Wire(api))
    found.driver.observe(NOW)
    yield found
    found.driver.close()


# --- a server that answers, in its own way ---


@pytest.mark.parametrize(
    ("canned", "reason", "words"),
    [
        pytest.param(
            Canned.refusal(401, "Unauthorized"),
            "ClusterUnauthorized",
            "give the controller new ones",
            id="a token that expired",
        ),
        pytest.param(
            Canned.refusal(
                403, 'nodes is forbidden: User "egs" cannot list resource "nodes" in API group ""'
            ),
            "ClusterForbidden",
            'cannot list resource "nodes" in API group ""; grant the controller this verb',
            id="a right that is missing",
        ),
        pytest.param(
            Canned.refusal(429, "slow down"), "ClusterThrottled", "busy, tried again", id="throttled"
        ),
        pytest.param(Canned(200, b"<html>"), "ClusterUnreachable", "with no JSON", id="HTML with 200"),
        pytest.param(
            Canned(200, b"[1]"), "ClusterUnreachable", "with no object", id="JSON that is no object"
        ),
        pytest.param(
            Canned(502, b"<html>bad gateway"),
            "ClusterRejected",
            "Bad Gateway; tried again",
            id="a proxy's HTML",
        ),
        pytest.param(
            Canned(500, b'["no"]'), "ClusterRejected", "tried again", id="a refusal that is no object"
        ),
        pytest.param(
            Canned(302, b"", {"Location": "/login"}),
            "ClusterRejected",
            "refused GET",
            id="sent to a login page",
        ),
        pytest.param(
            Canned(200, b"[" * 100_000), "ClusterUnreachable", "no JSON", id="JSON that is bottomless"
        ),
    ],
)
def test_every_bad_answer_has_a_plain_message(canned, reason, words):
    with scripted(lambda request: send(request, canned)) as api, pytest.raises(Fault) as caught:
        api.get(NODES)
    assert caught.value.reason == reason
    assert words in str(caught.value)
    assert "cluster east" in str(caught.value)
    assert "html" not in str(caught.value)


def test_a_throttled_call_waits_as_long_as_it_is_told(monkeypatch):
    """And not a moment longer; a write that was throttled did nothing, so it is sent again too."""
    slept: list[float] = []
    monkeypatch.setattr(api_module.time, "sleep", slept.append)
    answers = iter([Canned.refusal(429, "busy", Retry_After="2"), Canned(200, b'{"kind": "Node"}')])
    with scripted(lambda request: send(request, next(answers))) as api:
        assert api.patch(f"{NODES}/a", []) == {"kind": "Node"}
    assert slept == [2.0]


@pytest.mark.parametrize(
    ("retry_after", "tries"),
    [
        pytest.param("1", 4, id="asked again a few times"),
        pytest.param("600", 1, id="a long pause is left to the next cycle"),
    ],
)
def test_a_server_that_throttles_forever_is_left_alone(monkeypatch, retry_after, tries):
    monkeypatch.setattr(api_module.time, "sleep", lambda _: None)
    busy = Canned.refusal(429, "busy", Retry_After=retry_after)
    with scripted(lambda request: send(request, busy)) as api:
        with pytest.raises(Rejected) as caught:
            api.get(NODES)
        assert api.calls == tries
    assert caught.value.reason == "ClusterThrottled"


# --- a server that cannot be reached ---


def test_a_refused_connection_says_so():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    assert "the connection was refused; check that it runs" in unreachable(client(url))


def test_an_unknown_host_says_so():
    assert "host name is not known" in unreachable(client("http://nowhere.invalid"))


def test_a_server_that_never_answers_says_so(monkeypatch):
    monkeypatch.setattr(api_module, "READ_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "no answer in time" in unreachable(client(url))


def test_an_untrusted_certificate_says_so(kube, tmp_path):
    """The real server's, looked at with no authority that knows it."""
    server = kube.api._client.configuration.host
    said = unreachable(client(server, token="secret-token"))
    assert "its certificate is not trusted" in said
    assert "secret-token" not in said


def test_a_token_that_is_wrong_says_so(kube):
    config = json.loads(json.dumps(kubeconfig(kube)))
    config["users"][0]["user"] = {"token": "wrong-token"}
    with pytest.raises(Rejected) as caught:
        from_text("east", json.dumps(config)).get(NODES)
    assert caught.value.reason == "ClusterUnauthorized"
    assert "wrong-token" not in str(caught.value)


def kubeconfig(plane: Plane) -> dict:
    import yaml

    return yaml.safe_load(plane.kubeconfig.read_text())


def unreachable(api: Api) -> str:
    with pytest.raises(Fault) as caught:
        api.get("/version")
    assert caught.value.reason == "ClusterUnreachable"
    return str(caught.value)


# --- a node that others write, too ---


def test_a_node_that_changes_once_is_written_all_the_same(site):
    site.wire.rule("PATCH", f"{NODES}/{A}", times=2, before=lambda: site.touch(A))
    assert site.driver.add(A, VISION, FIRST, NOW) == Done()


def test_a_node_that_never_rests_is_refused_and_others_go_on(site):
    site.wire.rule("PATCH", f"{NODES}/{A}", before=lambda: site.touch(A))
    answer = site.driver.add(A, VISION, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert (answer.reason, "h100-1 changed under 5 writes" in answer.message) == ("NodeContended", True)
    assert site.driver.add(B, SPEECH, FIRST, NOW) == Done()


@pytest.mark.parametrize(
    ("call", "want"),
    [
        pytest.param(lambda d: d.add(A, LONGER, FIRST, NOW), "NodeGone", id="add"),
        pytest.param(lambda d: d.isolate(A, "Xid79", FIRST, NOW), "NodeGone", id="isolate"),
        pytest.param(lambda d: d.evict(A, VISION.uid, NOW, FIRST, NOW), "NodeGone", id="evict"),
        pytest.param(lambda d: d.remove(A, VISION.uid, FIRST, NOW), Done(), id="remove"),
    ],
)
def test_a_node_deleted_under_a_write(site, call, want):
    """What is gone serves nobody."""
    site.driver.add(A, VISION, FIRST, NOW)
    site.wire.rule("PATCH", NODES, times=1, before=lambda: site.plane.api.delete(f"{NODES}/{A}"))
    answer = call(site.driver)
    assert getattr(answer, "reason", answer) == want


def test_a_node_deleted_under_its_checks_fails_them(site):
    assert isinstance(site.driver.check(A, "pre", VISION, FIRST, NOW), Busy)
    site.plane.api.delete(f"{NODES}/{A}")
    eventually(lambda: A not in site.driver._nodes.items(), "it is gone")
    results = site.driver.check(A, "pre", VISION, FIRST, NOW + MINUTE)
    assert isinstance(results, tuple)
    assert not any(result.passed for result in results)


# --- answers that never came ---


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda d: d.add(A, VISION, FIRST, NOW), id="add"),
        pytest.param(lambda d: d.isolate(A, "Xid79", FIRST, NOW), id="isolate"),
        pytest.param(lambda d: d.ensure_slice(TERMS, FIRST, NOW), id="ensure_slice"),
        pytest.param(lambda d: d.ensure_fleet(FIRST, NOW), id="ensure_fleet"),
    ],
)
def test_a_lost_answer_is_a_fault_and_a_repeat_settles_it(site, call):
    """Each first write of its kind was done although nobody heard of it."""
    rules = [site.wire.rule(method, "", times=1, after=lost) for method in ("PATCH", "POST", "PUT")]
    told: list[object] = []
    for _ in range(4):
        told.append(answered(call, site.driver))
        if told[-1] == Done():
            break
    assert told[-1] == Done()
    assert {getattr(fault, "reason", "") for fault in told[:-1]} == {"ClusterUnreachable"}
    assert all("no answer in time" in str(fault) for fault in told[:-1])
    assert any(rule.met for rule in rules)


def answered(call, driver: KubernetesCluster) -> object:
    """Its answer, or the fault that it met."""
    try:
        return call(driver)
    except Fault as fault:
        return fault


def test_a_lost_answer_to_an_eviction_asks_no_pod_twice(site):
    site.driver.ensure_slice(TERMS, FIRST, NOW)
    space = "/api/v1/namespaces/speech"
    eventually(lambda: site.plane.api.find(f"{space}/serviceaccounts/default"), "an account for pods")
    site.driver.add(A, SPEECH, FIRST, NOW)
    site.plane.api.create(f"{space}/pods", pod("train", 8, nodeName=A, **placed("speech")))
    eventually(lambda: site.driver._gpu_pods(A), "the pod")
    rule = site.wire.rule("POST", "/eviction", times=1, after=lost)
    with pytest.raises(Fault):
        site.driver.evict(A, SPEECH.uid, NOW + MINUTE, FIRST, NOW)
    eventually(lambda: site.driver._gpu_pods(A)[0].ends, "it was told to stop")
    assert site.driver.evict(A, SPEECH.uid, NOW + MINUTE, FIRST, NOW) == Done()
    assert rule.met == 1


def test_an_eviction_that_is_denied_stops_neither_the_others_nor_other_nodes(site):
    """Somebody's webhook may say no to one pod."""
    site.driver.ensure_slice(TERMS, FIRST, NOW)
    space = "/api/v1/namespaces/speech"
    eventually(lambda: site.plane.api.find(f"{space}/serviceaccounts/default"), "an account for pods")
    site.driver.add(A, SPEECH, FIRST, NOW)
    for name in ("one", "two"):
        site.plane.api.create(f"{space}/pods", pod(name, 4, nodeName=A, **placed("speech")))
    eventually(lambda: len(site.driver._gpu_pods(A)) == 2, "the pods")
    site.wire.rule("POST", "/one/eviction", instead=Canned.refusal(403, "admission webhook x denied it"))
    answer = site.driver.evict(A, SPEECH.uid, NOW + MINUTE, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert "admission webhook x denied it" in answer.message
    two = site.plane.api.get(f"{space}/pods/two")
    assert two["metadata"].get("deletionTimestamp")


# --- watches ---


@pytest.fixture
def watched(kube) -> Iterator[tuple[Informer, Wire]]:
    kube.api.create(NODES, gpu_node("gpu-1"))
    api = kube.connect()
    wire = Wire(api)
    found = Informer(api, NODES, lambda node: node["metadata"]["name"])
    yield found, wire
    found.stop()


@pytest.mark.parametrize(
    ("canned", "lists"),
    [
        pytest.param(Canned(200, b'{"type": "ADDED", "obj'), 1, id="cut in the middle of a line"),
        pytest.param(Canned(200, b"<html>\n"), 1, id="a line that is no JSON"),
        pytest.param(Canned.refusal(410, "too old resource version"), 2, id="expired before it began"),
        pytest.param(
            Canned(
                200, b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}\n'
            ),
            2,
            id="expired while it ran",
        ),
        pytest.param(Canned.refusal(500, "etcd is away"), 1, id="a server in trouble"),
    ],
)
def test_a_watch_that_breaks_goes_on(kube, watched, canned, lists):
    """Where it was, unless the server has forgotten that place: then everything is listed anew."""
    informer, wire = watched
    broken = wire.rule("GET", "watch=true", times=1, instead=canned)
    listed = wire.rule("GET", r"nodes\?limit")
    informer.start()
    eventually(lambda: broken.met, "the broken watch")
    kube.api.create(NODES, gpu_node("gpu-2"))
    eventually(lambda: "gpu-2" in informer.items(), "what changed meanwhile")
    assert listed.met == lists


def test_an_object_that_cannot_be_read_stops_no_other(kube):
    kube.api.create(NODES, gpu_node("gpu-1"))
    kube.api.create(NODES, gpu_node("odd", odd="yes"))
    found = Informer(
        kube.api, NODES, lambda node: {"yes": 1}.get(node["metadata"]["labels"].get("odd", "")) or 1 / 1
    )
    found = Informer(kube.api, NODES, lambda node: int(node["metadata"]["labels"].get("odd", "1")))
    found.start()
    found.wait_synced(10)
    assert list(found.items()) == ["gpu-1"]
    found.stop()


def test_a_watch_that_is_silent_makes_the_cluster_unreachable(site, monkeypatch):
    """The server answers, and yet what we know grows old: nothing new starts there."""
    later = api_module.monotonic_s() + 600
    monkeypatch.setattr("reconciler.clusters.kubernetes.informer.monotonic_s", lambda: later)
    with pytest.raises(Fault) as caught:
        site.driver.observe(NOW)
    assert caught.value.reason == "ClusterUnreachable"
    assert "a watch has been silent for" in str(caught.value)


# --- namespaces ---


def test_a_namespace_stuck_in_terminating_says_why_and_others_go_on(site):
    meta = {"finalizers": ["example.com/keeps"]}
    namespace(site.plane, "stuck", **meta)
    eventually(lambda: site.driver._slices._spaces.find("stuck"), "the namespace")
    site.plane.api.delete("/api/v1/namespaces/stuck")
    eventually(lambda: site.driver._slices._spaces.find("stuck").is_leaving, "it is leaving")
    answer = site.driver.ensure_slice(SliceTerms("odd", ("stuck",)), FIRST, NOW)
    others = site.driver.ensure_slice(TERMS, FIRST, NOW)
    site.plane.api.merge("/api/v1/namespaces/stuck", {"metadata": {"finalizers": None}})
    assert isinstance(answer, Busy)
    assert "namespace stuck is Terminating: " in answer.message
    assert "finalizer example.com/keeps" in answer.message
    assert others == Done()


# --- hostile objects ---


@pytest.mark.parametrize(
    "notes",
    [
        pytest.param({LEASE: '{"uid": '}, id="a lease that is no JSON"),
        pytest.param({LEASE: "[" * 100_000}, id="a lease that is bottomless"),
        pytest.param({LEASE: '["uid"]'}, id="a lease that is a list"),
        pytest.param(
            {LEASE: '{"uid": "u", "request": "a/b", "slice": "A_B!", "end": "2026-11-21T09:00:00Z"}'},
            id="a slice that is no name",
        ),
        pytest.param(
            {LEASE: '{"uid": "u", "request": "a/b", "slice": "a", "end": 5}'}, id="an end that is a number"
        ),
        pytest.param({STAMP: "9" * 5000 + ".1"}, id="a stamp of 5000 digits"),
        pytest.param({EXIT: "9999-99-99"}, id="an exit that is no time"),
        pytest.param({EXIT: "2026-11-21T09:00:00Z"}, id="an exit of nobody"),
        pytest.param({"x": "y" * 200_000}, id="a gigantic annotation"),
    ],
)
def test_marks_that_somebody_made_unreadable_are_none(kube, notes):
    item = h100(A)
    item["metadata"]["annotations"] = notes
    kube.api.create(NODES, item)
    namespace(kube, "egs-system")
    driver = KubernetesCluster("east", OBSERVED, kube.connect(), HOME)
    try:
        assert marks_of(driver._known().nodes[A]) == Marks()
        assert driver.observe(NOW).nodes[A].lease is None
        assert driver.add(A, VISION, FIRST, NOW) == Done()
        assert driver.observe(NOW).nodes[A].lease == VISION
    finally:
        driver.close()


def test_labels_that_look_like_ours_on_foreign_nodes_are_left_alone(kube):
    kube.api.create(NODES, gpu_node("foreign", **{SLICE.replace("/", "__"): "vision"}))
    kube.api.create(NODES, h100(A))
    namespace(kube, "egs-system")
    driver = KubernetesCluster("east", OBSERVED, kube.connect(), HOME)
    try:
        before = kube.api.get(f"{NODES}/foreign")["metadata"]["labels"]
        view = driver.observe(NOW)
        assert "foreign" not in view.nodes
        driver.ensure_fleet(FIRST, NOW)
        assert kube.api.get(f"{NODES}/foreign")["metadata"]["labels"] == before
    finally:
        driver.close()


# --- how fast it is asked ---


def test_no_more_is_asked_than_the_rate_allows(monkeypatch):
    """A burst at once, then so many a second; a pause earns no more than the burst."""
    now, slept = [0.0], list[float]()
    monkeypatch.setattr(api_module, "monotonic_s", lambda: now[0])

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(api_module.time, "sleep", sleep)
    limiter = Limiter(Rate(qps=10, burst=5))
    for _ in range(25):
        limiter.take()
    assert now[0] == pytest.approx(2.0)
    assert slept == pytest.approx([0.1] * 20)
    now[0] += 60
    del slept[:]
    for _ in range(6):
        limiter.take()
    assert slept == pytest.approx([0.1])


def test_the_manifests_rate_is_that_of_its_client(kube):
    """spec.clientRate."""
    from reconciler.clusters.kubernetes.connect import Keys

    spec = OBSERVED.model_copy(
        update={"client_rate": ClientRate(qps=7, burst=9), "access": Access(kubeconfig=kube.kubeconfig.name)}
    )
    driver = open_cluster("east", spec, Ground(keys=Keys(kube.kubeconfig.parent)))
    assert driver._api._limiter._rate == Rate(7, 9) != FAST
