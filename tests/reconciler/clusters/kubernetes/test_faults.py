"""Whatever goes wrong between us and an API server has a plain message, and harms nobody else (issue 3 §2).

What a server can be made to do is done by the real one; what no server does on demand is said in its place, by
`tests.support.faulty`, and what no server should say comes from a script on the loopback.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from reconciler.clusters.kubernetes.api import api_client as api_module
from reconciler.clusters.kubernetes.api.api_client import Api, Limiter, Rate, Rejected
from reconciler.clusters.kubernetes.api.connection import from_text
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.open_cluster import DriverOptions, open_cluster
from schemas.documents.cluster import Access, ClientRate
from schemas.errors import Fault
from tests.reconciler.clusters.kubernetes.living import (
    NODES,
    OBSERVED,
)
from tests.support.faulty import Canned, Wire, client, scripted, send
from tests.support.kube import FAST, Plane, eventually, gpu_node

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
        pytest.param(Canned.refusal(429, "slow down"), "ClusterThrottled", "busy, retrying", id="throttled"),
        pytest.param(Canned(200, b"<html>"), "ClusterUnreachable", "without JSON", id="HTML with 200"),
        pytest.param(
            Canned(200, b"[1]"), "ClusterUnreachable", "without an object", id="JSON that is no object"
        ),
        pytest.param(
            Canned(502, b"<html>bad gateway"),
            "ClusterRejected",
            "Bad Gateway; retrying",
            id="a proxy's HTML",
        ),
        pytest.param(Canned(500, b'["no"]'), "ClusterRejected", "retrying", id="a refusal that is no object"),
        pytest.param(
            Canned(302, b"", {"Location": "/login"}),
            "ClusterRejected",
            "refused GET",
            id="sent to a login page",
        ),
        pytest.param(
            Canned(200, b"[" * 100_000), "ClusterUnreachable", "without JSON", id="JSON that is bottomless"
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
    assert "the connection was refused; check that the API server is running" in unreachable(client(url))


def test_an_unknown_host_says_so():
    assert "host name is unknown" in unreachable(client("http://nowhere.invalid"))


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
    found = Informer(kube.api, NODES, lambda node: int(node["metadata"]["labels"].get("odd", "1")))
    found.start()
    found.wait_synced(10)
    assert list(found.items()) == ["gpu-1"]
    found.stop()


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
    from reconciler.clusters.kubernetes.api.connection import Keys

    spec = OBSERVED.model_copy(
        update={"client_rate": ClientRate(qps=7, burst=9), "access": Access(kubeconfig=kube.kubeconfig.name)}
    )
    driver = open_cluster("east", spec, DriverOptions(keys=Keys(kube.kubeconfig.parent)))
    assert driver._api._limiter._rate == Rate(7, 9) != FAST
