"""GPR objects on a real API server: the custom resource, slices' namespaces, and admission that names authors.

`EGS_TEST_KUBE_NEW` is a script as `EGS_TEST_KUBE` is (see `tests.support.kube`), whose API server serves custom
resources and admission policies that change objects: `tests/support/controlplane/kube` is one. It is a variable of its
own because the oldest API servers cannot, and tests of the rest should see one of those.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from reconciler.clusters.kubernetes.api import Api, Rejected
from reconciler.clusters.kubernetes.authors import WEBHOOK_PATH, author_webhooks, authored
from schemas.crds import gpr_crd
from schemas.errors import UserError
from tests.support.kube import Plane, eventually

Json = dict[str, Any]
CUSTOM = "EGS_TEST_KUBE_NEW"
WHY = f"needs an API server with custom resources: set {CUSTOM} to tests/support/controlplane/kube, after `kube build`"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GPRS = "/apis/egs.dev/v1alpha1"


def install(kube: Plane) -> None:
    """The custom resource, ready to use; one that is still going is waited for."""
    name = gpr_crd()["metadata"]["name"]
    eventually(lambda: kube.api.find(f"{CRDS}/{name}") is None, "the old custom resource is gone")
    kube.api.create(CRDS, gpr_crd())

    def serves() -> bool:
        with contextlib.suppress(Rejected):
            return "items" in kube.api.get(f"{GPRS}/gprs")
        return False

    eventually(serves, "the custom resource is served")


def namespace(kube: Plane, name: str, slice_: str | None) -> None:
    """A namespace, of a slice or of nobody."""
    labels = {} if slice_ is None else {"egs.dev/slice": slice_}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}

    def made() -> bool:
        with contextlib.suppress(Rejected):
            kube.api.create("/api/v1/namespaces", body)
            return True
        return False

    eventually(made, f"namespace {name}")


class Objects:
    """GPR objects of one namespace, as a pipeline handles them."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.path = api, f"{GPRS}/namespaces/{namespace}/gprs"

    def apply(self, name: str, annotations: dict[str, str] | None = None, **spec: object) -> Json:
        """As `kubectl apply` does: create it, or make its spec this."""
        meta: Json = {"name": name} | ({"annotations": annotations} if annotations else {})
        body = {"apiVersion": "egs.dev/v1alpha1", "kind": "GPR", "metadata": meta, "spec": spec}
        there = self.api.find(f"{self.path}/{name}")
        if there is None:
            return self.api.create(self.path, body)
        there["spec"] = spec
        return self.api.replace(f"{self.path}/{name}", there)

    def annotate(self, name: str, key: str, value: str) -> None:
        """As `kubectl annotate` does."""
        self.api.merge(f"{self.path}/{name}", {"metadata": {"annotations": {key: value}}})

    def delete(self, name: str) -> None:
        """As `kubectl delete` does."""
        assert self.api.delete(f"{self.path}/{name}")

    def get(self, name: str) -> Json:
        """The object."""
        return self.api.get(f"{self.path}/{name}")

    def status(self, name: str) -> Json:
        """Its status; empty before anybody wrote one."""
        found: Json = self.get(name).get("status", {})
        return found


@contextlib.contextmanager
def admission(kube: Plane, folder: Path) -> Iterator[None]:
    """Our webhook as the API server calls it, over TLS, in force when this begins."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=127.0.0.1",
    ]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Reviews)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        bundle = base64.b64encode(certificate.read_bytes()).decode()
        client = {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": bundle}
        kube.api.create(WEBHOOK_PATH.rpartition("/")[0], author_webhooks(client))
        yield
    finally:
        kube.api.delete(WEBHOOK_PATH)
        server.shutdown()
        server.server_close()


class _Reviews(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Tests are quiet."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer: Json = {"uid": review["request"]["uid"], "allowed": True}
        try:
            patch = authored(review["request"])
            if patch:
                encoded = base64.b64encode(json.dumps(list(patch)).encode()).decode()
                answer |= {"patchType": "JSONPatch", "patch": encoded}
        except UserError as error:
            answer |= {"allowed": False, "status": {"message": str(error), "code": 403}}
        body = json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
