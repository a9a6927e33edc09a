"""Our admission webhook: an HTTPS server that API servers call about pods, Jobs, Secrets and GPR objects.

It only transports: `pod_review` judges a slice's pod, `closed_nodes` any other pod, `disruptions` a Job,
`token_secrets` a Secret, and `object_authors` finds a GPR object's author. An invalid request gets 400 with a
sentence; one that cannot be answered now gets 500, and the API server applies its failure policy. Requests
are neither stored nor logged.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
import tempfile
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event, Thread
from typing import Any

from reconciler.bounded_http import Bounds, HttpServer
from reconciler.clock import Clock
from reconciler.clusters.kubernetes.admission.admission_policies import (
    AUTHORS_PATH,
    SECRETS_PATH,
    FailurePolicy,
    rules,
)
from reconciler.clusters.kubernetes.admission.closed_nodes import ClosedNodes, broken
from reconciler.clusters.kubernetes.admission.closing_objects import NODES_PATH, read_closed_nodes
from reconciler.clusters.kubernetes.admission.object_authors import authored
from reconciler.clusters.kubernetes.admission.pod_review import placing, refusals, subject
from reconciler.clusters.kubernetes.admission.webhook_certificates import Certificate, shared
from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import CLOSED_NODES, MANAGED_BY, MANAGER, NAMESPACE_SLICE
from reconciler.clusters.kubernetes.tenancy.disruptions import JOBS_PATH, granting, sparing
from reconciler.clusters.kubernetes.tenancy.token_secrets import REFUSAL, is_refused
from schemas.errors import Fault, UserError
from schemas.export.crds import GROUP, PLURAL, VERSION

log = logging.getLogger(__name__)

SliceOf = Callable[[str], str | None]
"""The slice of a namespace; may raise `Fault`."""
KnownClosedNodes = Callable[[], Iterable[ClosedNodes]]
"""What each project closes to pods outside slices."""
Answered = Callable[[Json, str], Json]
"""From a review's request and the slice to the response's fields except its uid."""

LONGEST_NUMBER = 9
"""Digits of the seconds in a path."""
LONGEST_BODY = 8 * 1024 * 1024
"""A pod is at most 1.5 MB in the API, and an update carries two."""
BOUNDS = Bounds(idle_s=90.0, whole_s=None, connections=512)
"""API servers, of which there are few, keep connections open; one silent for this long is gone."""
RENEWAL_S = 3600.0
SERVICE = "egs-admission"


class NotAReviewError(UserError):
    """The posted body is not a review that this server answers."""

    reason = "NotAReview"


def mutated(question: Json, slice_: str) -> Json:
    """A GPU pod gets its slice's nodes and the grace period given in the path; other pods stay as they are."""
    pod = question["object"]
    return _patched([*placing(pod, slice_), *granting(pod, question.get(GRACE) or 0)])


def spared(question: Json, _slice: str) -> Json:
    """A GPU Job ignores disruptions."""
    return _patched(sparing(question["object"]))


def signed(question: Json) -> Json:
    """A GPR object gets its sender's name, in any namespace."""
    try:
        return _patched(authored(question))
    except UserError as forged:
        return _denied(f"{forged.reason}: {forged}")


def validated(question: Json, slice_: str, failure_policy: FailurePolicy) -> Json:
    """All rules that the pod violates, in one answer."""
    before = question.get("oldObject") if question["operation"] == "UPDATE" else None
    broken = refusals(subject(question["object"], slice_, before), rules(failure_policy))
    if not broken:
        return {"allowed": True}
    return _denied("; ".join(str(rule) for rule in broken))


def kept_empty(question: Json, _slice: str) -> Json:
    """A member's Secret must be empty."""
    before = question.get("oldObject") if question["operation"] == "UPDATE" else None
    return _denied(REFUSAL) if is_refused(question["object"], before) else {"allowed": True}


def kept_out(question: Json, slice_of: SliceOf, closed: KnownClosedNodes) -> Json:
    """A pod outside slices cannot run on a managed node."""
    subject(question["object"], "")  # raises for anything that is not a pod
    found = broken(question, closed())
    if not found or slice_of(question["namespace"]) is not None:  # `validated` judges these
        return {"allowed": True}
    return _denied("; ".join(str(rule) for rule in found))


def _patched(patch: Sequence[Json]) -> Json:
    if not patch:
        return {"allowed": True}
    encoded = base64.b64encode(json.dumps(list(patch)).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def _denied(text: str) -> Json:
    return {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": text}}


PATHS: dict[str, Answered] = {
    "/mutate": mutated,
    "/validate": lambda question, slice_: validated(question, slice_, "Ignore"),
    "/validate-strictly": lambda question, slice_: validated(question, slice_, "Fail"),
    SECRETS_PATH: kept_empty,
    JOBS_PATH: spared,
}
"""Handlers for pods, Secrets and Jobs of slices."""
GRACE = "graceSeconds"
"""The key for the number at the end of the path, added to the API server's request."""
SERVED = (*PATHS, AUTHORS_PATH, NODES_PATH)
PODS: Json = {"group": "", "version": "v1", "resource": "pods"}
SECRETS: Json = {"group": "", "version": "v1", "resource": "secrets"}
JOBS: Json = {"group": "batch", "version": "v1", "resource": "jobs"}
REQUESTS: Json = {"group": GROUP, "version": VERSION, "resource": PLURAL}


def answer(path: str, body: bytes, slice_of: SliceOf, closed: KnownClosedNodes = tuple) -> Json:
    """An AdmissionReview with its response; raises NotAReviewError, or what `slice_of` raises."""
    path, grace_s = routed(path)
    about = {AUTHORS_PATH: REQUESTS, SECRETS_PATH: SECRETS, JOBS_PATH: JOBS}.get(path, PODS)
    question = {**_question(body, about), GRACE: grace_s}
    try:
        if path == AUTHORS_PATH:
            found = signed(question)
        elif path == NODES_PATH:
            found = kept_out(question, slice_of, closed)
        else:
            found = _judged(path, question, slice_of)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotAReviewError(
            f"the object under review is not one of {about['resource']}; send what an API server sends"
        ) from error
    response = {"uid": question["uid"], **found}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def routed(path: str) -> tuple[str, int]:
    """The longest matching entry of `SERVED`, and the seconds after it: /mutate/60."""
    head, _, last = path.rpartition("/")
    return (head, int(last)) if head and last.isdecimal() and len(last) <= LONGEST_NUMBER else (path, 0)


def _judged(path: str, question: Json, slice_of: SliceOf) -> Json:
    slice_ = slice_of(question["namespace"])
    # A namespace that left its slice between the API server's read and ours belongs to none.
    return {"allowed": True} if slice_ is None else PATHS[path](question, slice_)


def _question(body: bytes, about: Json) -> Json:
    try:
        review: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAReviewError("the body is not JSON; send an AdmissionReview") from error
    question = review.get("request") if isinstance(review, dict) else None
    if not isinstance(question, dict) or review.get("apiVersion") != "admission.k8s.io/v1":
        raise NotAReviewError(
            "the body is not an AdmissionReview of admission.k8s.io/v1 with a request; send one"
        )
    fields = {"uid": str, "namespace": str, "operation": str, "object": dict}
    wrong = [name for name, kind in fields.items() if not isinstance(question.get(name), kind)]
    if wrong or question.get("resource") != about:
        kind = about["resource"]
        what = f"it lacks {', '.join(wrong)}" if wrong else f"it is about something else than {kind}"
        raise NotAReviewError(
            f"this request of an AdmissionReview cannot be judged: {what}; send one about {kind}"
        )
    return question


class Namespaces:
    """The slice of each namespace, from a watch; an unknown namespace is read directly."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known = Informer(api, "/api/v1/namespaces", _slice_label, NAMESPACE_SLICE)

    def start(self) -> None:
        self._known.start()

    def stop(self) -> None:
        self._known.stop()

    def __call__(self, namespace: str) -> str | None:
        known = self._known.items().get(namespace)
        if known is not None:
            return known
        found = self._api.find(f"/api/v1/namespaces/{namespace}")
        return None if found is None else _slice_label(found)


def _slice_label(namespace: Json) -> str | None:
    label: str | None = (namespace["metadata"].get("labels") or {}).get(NAMESPACE_SLICE)
    return label


class AdmissionServer:
    """Serves API servers on `host:port` (port 0: any free one) with the given certificate."""

    def __init__(
        self, listen: str, certificate: Certificate, slice_of: SliceOf, closed: KnownClosedNodes = tuple
    ) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self.show(certificate)
        try:
            self._http = _Server(listen, self._tls, slice_of, closed)
        except UserError as error:
            raise UserError(str(error), "BadAddress") from error

    @property
    def port(self) -> int:
        return self._http.port

    def show(self, certificate: Certificate) -> None:
        """Used from the next connection on."""
        with tempfile.TemporaryDirectory(prefix="egs-admission-") as folder:
            chain, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            chain.write_bytes(certificate.chain)
            key.touch(mode=0o600)
            key.write_bytes(certificate.key)
            self._tls.load_cert_chain(chain, key)

    def start(self) -> None:
        self._http.start()

    def stop(self) -> None:
        self._http.stop()
        self._http.hang_up()


class AdmissionService:
    """The server as one replica of a cluster's Service: its certificate is kept in a Secret and renewed."""

    def __init__(self, api: Api, namespace: str, listen: str, clock: Clock, host: str = "") -> None:
        """`host` is the name that API servers call, if it is not the Service's."""
        self._api, self._namespace, self._clock = api, namespace, clock
        self._names = [host or f"{SERVICE}.{namespace}.svc"]
        self._slices = Namespaces(api)
        self._shown = shared(api, namespace, self._names, clock.now())
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        # If unknown, nothing is closed: pods are admitted.
        self._closed_maps = Informer(
            api, maps, read_closed_nodes, f"{MANAGED_BY}={MANAGER},{CLOSED_NODES}=true"
        )
        self._server = AdmissionServer(listen, self._shown, self._slices, self._closed)
        self._ended = Event()
        self._renewal = Thread(target=self._renew, name="certificate", daemon=True)

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        self._slices.start()
        self._closed_maps.start()
        self._server.start()
        self._renewal.start()

    def stop(self) -> None:
        self._ended.set()
        self._server.stop()
        self._slices.stop()
        self._closed_maps.stop()

    def _closed(self) -> list[ClosedNodes]:
        return [known for _, known in sorted(self._closed_maps.items().items())]

    def refresh(self) -> None:
        """Uses the certificate shared by all replicas, renewed if due."""
        found = shared(self._api, self._namespace, self._names, self._clock.now())
        if found != self._shown:
            self._server.show(found)
            self._shown = found
            log.info("certificate of the webhook renewed namespace=%s", self._namespace)

    def _renew(self) -> None:
        while not self._ended.wait(RENEWAL_S):
            try:
                self.refresh()
            except Fault as fault:
                log.warning(
                    "certificate of the webhook not renewed, retrying in an hour reason=%s message=%s",
                    fault.reason,
                    fault,
                )


class _Server(HttpServer):
    def __init__(self, listen: str, tls: ssl.SSLContext, slice_of: SliceOf, closed: KnownClosedNodes) -> None:
        super().__init__(listen, _Handler, BOUNDS, tls)
        self.slice_of, self.closed = slice_of, closed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "egs", ""
    server: _Server

    def do_GET(self) -> None:
        """For the kubelet's probes."""
        if self.path == "/healthz":
            self._send(200, b"ok\n", "text/plain")
        else:
            self._no(404, "there is nothing here; POST an AdmissionReview to /mutate or /validate")

    def do_POST(self) -> None:
        """One review; API servers add a query with their timeout."""
        path = self.path.partition("?")[0]
        length = self.headers.get("Content-Length", "")
        if routed(path)[0] not in SERVED:
            self._no(404, f"nothing is served here; POST to one of {', '.join(sorted(SERVED))}")
        elif not length.isdigit() or int(length) > LONGEST_BODY:
            self._no(413, f"a review needs a Content-Length of at most {LONGEST_BODY}; send a smaller one")
        else:
            self._review(path, self.rfile.read(int(length)))

    def _review(self, path: str, body: bytes) -> None:
        try:
            found = answer(path, body, self.server.slice_of, self.server.closed)
        except NotAReviewError as error:
            self._no(400, str(error))
        except Fault as fault:
            log.warning("review not answered reason=%s message=%s", fault.reason, fault)
            self._no(500, f"the namespace's slice is unknown at the moment: {fault}")
        else:
            self._send(200, json.dumps(found).encode(), "application/json")

    def _no(self, status: int, text: str) -> None:
        self.close_connection = True  # the rest of the body would be read as the next request
        self._send(status, (text + "\n").encode(), "text/plain; charset=utf-8")

    def _send(self, status: int, body: bytes, content: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged: they are the users' business, and there are many."""
