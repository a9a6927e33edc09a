"""GPR objects on a real API server: the custom resource, slices' namespaces, and admission that names authors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.admission.admission_policies import AUTHORS_PATH
from reconciler.clusters.kubernetes.admission.object_authors import WEBHOOK_PATH, author_webhooks
from reconciler.clusters.kubernetes.admission.object_shapes import Webhook
from reconciler.clusters.kubernetes.admission.webhook import AdmissionServer
from reconciler.clusters.kubernetes.admission.webhook_certificates import current
from reconciler.clusters.kubernetes.api.api_client import Api, Rejected
from schemas.export.crds import gpr_crd
from tests.support.kube import Plane, eventually

Json = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GPRS = "/apis/egs.dev/v1alpha1"


def install(kube: Plane) -> None:
    """The custom resource, ready to use; one that is still going is waited for."""
    name = gpr_crd()["metadata"]["name"]
    eventually(lambda: kube.api.find(f"{CRDS}/{name}") is None, "the old custom resource is gone")
    kube.api.create(CRDS, gpr_crd())

    def serves() -> bool:
        """Its predecessor may be served for another moment."""
        with contextlib.suppress(Rejected):
            found = kube.api.get(f"{CRDS}/{name}").get("status", {}).get("conditions") or ()
            is_established = any((c["type"], c["status"]) == ("Established", "True") for c in found)
            return is_established and "items" in kube.api.get(f"{GPRS}/gprs")
        return False

    eventually(serves, "the custom resource is served", 90)


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
            return eventually(lambda: self._created(body), "the kind to be served everywhere")
        there["spec"] = spec
        return self.api.replace(f"{self.path}/{name}", there)

    def _created(self, body: Json) -> Json | None:
        """None while parts of the server, as its admission, do not know the new kind yet."""
        try:
            return self.api.create(self.path, body)
        except Rejected as no:
            if "There can be a delay" in str(no):
                return None
            raise

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
def admission(kube: Plane) -> Iterator[None]:
    """Our webhook as the API server calls it, in force when this begins."""
    certificate = current(None, ["127.0.0.1"], SystemClock().now())
    server = AdmissionServer("127.0.0.1:0", certificate, lambda _namespace: None)
    server.start()
    webhook = Webhook(certificate.authorities, url=f"https://127.0.0.1:{server.port}")
    try:
        configuration = author_webhooks(webhook.client_config(AUTHORS_PATH))
        kube.api.create(WEBHOOK_PATH.rpartition("/")[0], configuration)
        yield
    finally:
        kube.api.delete(WEBHOOK_PATH)
        server.stop()
