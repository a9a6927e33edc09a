"""The webhook answers every question about a pod, and everything else with a sentence (F6, C3)."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.admission.admission_policies import AUTHORS_PATH, SECRETS_PATH
from reconciler.clusters.kubernetes.admission.closed_nodes import ClosedNodes
from reconciler.clusters.kubernetes.admission.closing_objects import NODES_PATH
from reconciler.clusters.kubernetes.admission.webhook import (
    SECRETS,
    SERVED,
    AdmissionServer,
    NotAReviewError,
    answer,
)
from reconciler.clusters.kubernetes.admission.webhook_certificates import Certificate, current
from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import AUTHOR
from schemas.errors import Fault, UserError
from tests.reconciler.clusters.kubernetes.judged import PLACED, gpu_pod, pod

NAMES = ["127.0.0.1"]
CLOSED_NODES = ClosedNodes(nodes=("h100-1",), values={"zone": ("a",)}, everywhere=("zone",))


def slice_of(namespace: str) -> str | None:
    """Two namespaces; a third cannot be asked about."""
    if namespace == "unknown":
        raise Fault("the API server of cluster east did not answer", "ClusterUnreachable")
    return {"vision-train": "vision"}.get(namespace)


def review(item: Json, **more: object) -> Json:
    """As an API server posts it."""
    question = {
        "uid": "u-1",
        "namespace": "vision-train",
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "object": item,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": question}


def asked(path: str, item: Json, **more: object) -> Json:
    """The response."""
    found = answer(path, json.dumps(review(item, **more)).encode(), slice_of)
    assert found["response"].pop("uid") == "u-1"
    response: Json = found["response"]
    return response


def test_a_gpu_pod_is_given_a_patch() -> None:
    found = asked("/mutate", gpu_pod())
    assert found["allowed"]
    assert [operation["path"] for operation in json.loads(base64.b64decode(found["patch"]))] == [
        "/spec/nodeSelector",
        "/spec/tolerations",
    ]


def test_a_cpu_pod_is_let_through_as_it_is() -> None:
    """C3."""
    assert asked("/mutate", pod()) == {"allowed": True}


@pytest.mark.parametrize(
    ("namespace", "allowed"),
    [
        pytest.param("ml", False, id="is refused outside of slices"),
        pytest.param("vision-train", True, id="is judged by the slice's own rules"),
    ],
)
def test_a_pod_that_names_a_managed_node(namespace: str, allowed: bool) -> None:
    body = json.dumps(review(pod(nodeName="h100-1"), namespace=namespace)).encode()
    response = answer(NODES_PATH, body, slice_of, lambda: [CLOSED_NODES])["response"]
    assert response["allowed"] is allowed
    assert allowed or "ManagedNodeNamed: " in response["status"]["message"]


def test_every_rule_that_a_pod_breaks_is_told() -> None:
    found = asked("/validate", pod(nodeName="gpu-1", hostPID=True))
    assert not found["allowed"]
    assert found["status"]["code"] == 403
    assert "NodeNameSet: " in found["status"]["message"]
    assert "HostNamespace: " in found["status"]["message"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        pytest.param("/validate", True, id="is let in where that is the policy"),
        pytest.param("/validate-strictly", False, id="is refused where that is the policy"),
    ],
)
def test_a_gpu_pod_that_nobody_gave_its_nodes(path: str, allowed: bool) -> None:
    assert asked(path, gpu_pod())["allowed"] is allowed
    assert asked(path, gpu_pod(**PLACED))["allowed"]


def test_a_change_is_judged_by_what_is_new() -> None:
    old = pod(hostPID=True)
    assert asked("/validate", old, operation="UPDATE", oldObject=old)["allowed"]


def test_a_namespace_of_no_slice_is_none_of_our_business() -> None:
    assert asked("/validate", pod(nodeName="n"), namespace="default") == {"allowed": True}
    assert asked("/mutate", gpu_pod(), namespace="default") == {"allowed": True}


REQUESTS = {"group": "egs.dev", "version": "v1alpha1", "resource": "gprs"}


def sent(item: Json, **more: object) -> Json:
    """The answer to bo, who sends this GPR object."""
    return asked(
        AUTHORS_PATH,
        item,
        **{"resource": REQUESTS, "userInfo": {"username": "bo"}, "namespace": "unknown", **more},
    )


def test_a_request_is_given_its_author() -> None:
    """A8: in every namespace, whether it is a slice's or not."""
    found = sent({"metadata": {"name": "train"}, "spec": {"nodes": 1}})
    (operation,) = json.loads(base64.b64decode(found["patch"]))
    assert operation["value"] == {AUTHOR: "bo"}


def test_a_request_in_anothers_name_is_refused() -> None:
    found = sent({"metadata": {"name": "train", "annotations": {AUTHOR: "ada"}}, "spec": {}})
    assert not found["allowed"]
    assert found["status"]["message"].startswith("AuthorForged: ")


def test_a_request_that_asks_for_nothing_new_is_let_through_as_it_is() -> None:
    item = {"metadata": {"name": "train", "annotations": {AUTHOR: "ada"}}, "spec": {}}
    assert sent(item, operation="UPDATE", oldObject=item) == {"allowed": True}


@pytest.mark.parametrize(
    ("path", "more", "about"),
    [
        pytest.param(AUTHORS_PATH, {}, "gprs", id="a pod where requests are signed"),
        pytest.param("/mutate", {"resource": REQUESTS}, "pods", id="a request where pods are placed"),
        pytest.param(AUTHORS_PATH, {"resource": REQUESTS}, "gprs", id="a request that nobody sent"),
    ],
)
def test_each_path_answers_about_its_own(path: str, more: Json, about: str) -> None:
    with pytest.raises(NotAReviewError, match=about):
        asked(path, {"metadata": {}}, **more)


POD = pod()
BROKEN = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"\xff\xfe", id="no text"),
    pytest.param(b"[" * 100_000, id="a bottomless list"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b"{}", id="an object without a request"),
    pytest.param(
        json.dumps({**review(POD), "apiVersion": "admission.k8s.io/v1beta1"}).encode(), id="an old version"
    ),
    pytest.param(json.dumps(review(POD, uid=7)).encode(), id="a number for a uid"),
    pytest.param(json.dumps(review(POD, resource={"resource": "nodes"})).encode(), id="a node"),
    pytest.param(
        json.dumps(review({"spec": {"containers": [7]}})).encode(), id="a container that is a number"
    ),
    pytest.param(json.dumps(review({"spec": "x"})).encode(), id="a spec that is a text"),
]


@pytest.mark.parametrize("path", SERVED)
@pytest.mark.parametrize("body", BROKEN)
def test_what_is_no_review_is_refused_with_a_sentence(path: str, body: bytes) -> None:
    with pytest.raises(NotAReviewError, match=r"; send"):
        answer(path, body, slice_of)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["env", "name", "add", "limits", "key", "value"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
fields = st.sampled_from(
    [
        "containers",
        "initContainers",
        "tolerations",
        "volumes",
        "nodeSelector",
        "ephemeralContainers",
        "nodeName",
        "affinity",
        "annotations",
        "username",
        "name",
        "type",
        "data",
    ]
)


@given(
    st.sampled_from(sorted(SERVED)), st.dictionaries(fields, values), st.sampled_from(["CREATE", "UPDATE"])
)
def test_no_body_makes_it_fall(path: str, spec: Json, operation: str) -> None:
    about = {
        AUTHORS_PATH: {"resource": REQUESTS, "userInfo": spec},
        SECRETS_PATH: {"resource": SECRETS},
    }.get(path, {})
    item = {"spec": spec, "metadata": spec, **spec}
    body = json.dumps(review(item, operation=operation, oldObject=item, **about)).encode()
    with contextlib.suppress(NotAReviewError):
        assert answer(path, body, slice_of, lambda: [CLOSED_NODES])["response"]["allowed"] in {True, False}


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return current(None, NAMES, SystemClock().now())


@pytest.fixture
def server(certificate: Certificate) -> Iterator[AdmissionServer]:
    running = AdmissionServer("127.0.0.1:0", certificate, slice_of)
    running.start()
    yield running
    running.stop()


def connection(server: AdmissionServer, certificate: Certificate) -> http.client.HTTPSConnection:
    """Of a client that believes this authority only."""
    tls = ssl.create_default_context(cadata=certificate.authorities.decode())
    return http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=tls)


def test_one_connection_carries_many_reviews(server: AdmissionServer, certificate: Certificate) -> None:
    peer = connection(server, certificate)
    for item, allowed in [(pod(), True), (pod(hostIPC=True), False), (pod(), True)]:
        peer.request("POST", "/validate?timeout=5s", json.dumps(review(item)))
        assert json.load(peer.getresponse())["response"]["allowed"] is allowed


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        pytest.param("GET", "/healthz", None, 200, "ok", id="it is healthy"),
        pytest.param("GET", "/mutate", None, 404, "POST", id="nothing is shown"),
        pytest.param("POST", "/elsewhere", b"{}", 404, "POST to one of", id="nothing else is answered"),
        pytest.param("POST", "/validate", b"no", 400, "send an AdmissionReview", id="no review"),
        pytest.param(
            "POST",
            "/validate",
            json.dumps(review(POD, namespace="unknown")).encode(),
            500,
            "is unknown at the moment",
            id="nobody knows whose namespace it is",
        ),
    ],
)
def test_answers(server: AdmissionServer, certificate: Certificate, method, path, body, status, says) -> None:
    peer = connection(server, certificate)
    peer.request(method, path, body)
    found = peer.getresponse()
    assert (found.status, says in found.read().decode()) == (status, True)


def test_a_body_that_is_too_large_is_not_read(server: AdmissionServer, certificate: Certificate) -> None:
    peer = connection(server, certificate)
    peer.putrequest("POST", "/validate")
    peer.putheader("Content-Length", str(1 << 40))
    peer.endheaders()
    assert peer.getresponse().status == 413


def test_a_peer_that_stalls_or_speaks_no_tls_holds_up_nobody(
    server: AdmissionServer, certificate: Certificate
) -> None:
    with (
        socket.create_connection(("127.0.0.1", server.port)),
        socket.create_connection(("127.0.0.1", server.port)) as rude,
    ):
        rude.sendall(b"GET / HTTP/1.1\r\n\r\n")
        peer = connection(server, certificate)
        peer.request("GET", "/healthz")
        assert peer.getresponse().status == 200


def test_a_renewed_certificate_is_shown_without_a_restart(
    server: AdmissionServer, certificate: Certificate
) -> None:
    renewed = current(certificate, NAMES, SystemClock().now() + timedelta(days=70))
    assert renewed.chain != certificate.chain
    shown = ssl.get_server_certificate(("127.0.0.1", server.port))
    server.show(renewed)
    assert ssl.get_server_certificate(("127.0.0.1", server.port)) not in {shown, ""}


@pytest.mark.parametrize("listen", ["8443x", "nowhere.invalid:1", "127.0.0.1"])
def test_an_address_that_cannot_be_listened_on_is_refused(listen: str, certificate: Certificate) -> None:
    with pytest.raises(UserError, match=r"give|choose"):
        AdmissionServer(listen, certificate, slice_of)
