"""Our admission webhook: an HTTPS server that API servers ask about slices' pods, Jobs and Secrets, and GPR objects.

It only carries: what becomes of a pod of a slice is decided in `review`, of any other pod in `closing`, of a Job in
`disruptions`, of a Secret in `keys`, whose a GPR object is in `authors`. A question that is none gets 400 and a
sentence; a question that cannot be answered now gets 500, and the API server does what its failure policy says.
Nothing that is asked is kept or logged.
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
"""Which slice a namespace belongs to; may raise `Fault`."""
KnownClosedNodes = Callable[[], Iterable[ClosedNodes]]
"""What each project closes to pods outside of slices."""
Answered = Callable[[Json, str], Json]
"""A question of a review and the slice, to the answer's fields beside its uid."""

LONGEST_NUMBER = 9
"""Digits of the seconds in a path."""
LONGEST_BODY = 8 * 1024 * 1024
"""A pod is at most 1.5 MB in the API, and an update carries two."""
BOUNDS = Bounds(idle_s=90.0, whole_s=None, connections=512)
"""API servers, of which there are few, keep connections; one that says nothing for so long has gone."""
RENEWAL_S = 3600.0
SERVICE = "egs-admission"


class NotAReviewError(UserError):
    """What was posted is no question that is answered here."""

    reason = "NotAReview"


def mutated(question: Json, slice_: str) -> Json:
    """A GPU pod gets its slice's nodes, and the grace that the path names; every other one stays as it is."""
    pod = question["object"]
    return _patched([*placing(pod, slice_), *granting(pod, question.get(GRACE) or 0)])


def spared(question: Json, _slice: str) -> Json:
    """A GPU Job ignores disruptions."""
    return _patched(sparing(question["object"]))


def signed(question: Json) -> Json:
    """A GPR object bears the name of whoever sends it, in whatever namespace."""
    try:
        return _patched(authored(question))
    except UserError as forged:
        return _denied(f"{forged.reason}: {forged}")


def validated(question: Json, slice_: str, failure_policy: FailurePolicy) -> Json:
    """Every rule that the pod breaks, in one answer."""
    before = question.get("oldObject") if question["operation"] == "UPDATE" else None
    broken = refusals(subject(question["object"], slice_, before), rules(failure_policy))
    if not broken:
        return {"allowed": True}
    return _denied("; ".join(str(rule) for rule in broken))


def kept_empty(question: Json, _slice: str) -> Json:
    """A member's Secret holds nothing."""
    before = question.get("oldObject") if question["operation"] == "UPDATE" else None
    return _denied(REFUSAL) if is_refused(question["object"], before) else {"allowed": True}


def kept_out(question: Json, slice_of: SliceOf, closed: KnownClosedNodes) -> Json:
    """A pod outside of slices gets onto no managed node."""
    subject(question["object"], "")  # what is no pod is no question either
    found = broken(question, closed())
    if not found or slice_of(question["namespace"]) is not None:  # `validated` judges those
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
"""What is answered about pods, Secrets and Jobs of slices."""
GRACE = "graceSeconds"
"""What a question is given beside what the API server asks, where its path ends with a number."""
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
            f"the object under review is none of {about['resource']}; send what an API server sends"
        ) from error
    response = {"uid": question["uid"], **found}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def routed(path: str) -> tuple[str, int]:
    """One of `SERVED` as far as it may be, and the seconds that stand behind it: /mutate/60."""
    head, _, last = path.rpartition("/")
    return (head, int(last)) if head and last.isdecimal() and len(last) <= LONGEST_NUMBER else (path, 0)


def _judged(path: str, question: Json, slice_of: SliceOf) -> Json:
    slice_ = slice_of(question["namespace"])
    # A namespace that left its slice between the API server's look and ours is nobody's.
    return {"allowed": True} if slice_ is None else PATHS[path](question, slice_)


def _question(body: bytes, about: Json) -> Json:
    try:
        review: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAReviewError("the body is no JSON; send an AdmissionReview") from error
    question = review.get("request") if isinstance(review, dict) else None
    if not isinstance(question, dict) or review.get("apiVersion") != "admission.k8s.io/v1":
        raise NotAReviewError(
            "the body is no AdmissionReview of admission.k8s.io/v1 with a request; send one"
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
    """Which namespace is whose slice's, by a watch; one that the watch does not know yet is asked for."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known = Informer(api, "/api/v1/namespaces", _slice_label, NAMESPACE_SLICE)

    def start(self) -> None:
        """Begin to watch; returns at once."""
        self._known.start()

    def stop(self) -> None:
        """No more news."""
        self._known.stop()

    def __call__(self, namespace: str) -> str | None:
        """The slice of a namespace."""
        known = self._known.items().get(namespace)
        if known is not None:
            return known
        found = self._api.find(f"/api/v1/namespaces/{namespace}")
        return None if found is None else _slice_label(found)


def _slice_label(namespace: Json) -> str | None:
    label: str | None = (namespace["metadata"].get("labels") or {}).get(NAMESPACE_SLICE)
    return label


class AdmissionServer:
    """Answers API servers on `host:port` (port 0: any free one) with the certificate given."""

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
        """Where it listens."""
        return self._http.port

    def show(self, certificate: Certificate) -> None:
        """From the next connection on."""
        with tempfile.TemporaryDirectory(prefix="egs-admission-") as folder:
            chain, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            chain.write_bytes(certificate.chain)
            key.touch(mode=0o600)
            key.write_bytes(certificate.key)
            self._tls.load_cert_chain(chain, key)

    def start(self) -> None:
        """Begin to answer; returns at once."""
        self._http.start()

    def stop(self) -> None:
        """Answer nobody any more."""
        self._http.stop()
        self._http.hang_up()


class AdmissionService:
    """The server as one replica of a cluster's Service runs it: its certificate kept in a Secret and renewed."""

    def __init__(self, api: Api, namespace: str, listen: str, clock: Clock, host: str = "") -> None:
        """`host` is the name that API servers call, where it is not the Service's."""
        self._api, self._namespace, self._clock = api, namespace, clock
        self._names = [host or f"{SERVICE}.{namespace}.svc"]
        self._slices = Namespaces(api)
        self._shown = shared(api, namespace, self._names, clock.now())
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        # Known at the start or not: a pod is let in where nobody has said what is closed.
        self._closed_maps = Informer(
            api, maps, read_closed_nodes, f"{MANAGED_BY}={MANAGER},{CLOSED_NODES}=true"
        )
        self._server = AdmissionServer(listen, self._shown, self._slices, self._closed)
        self._ended = Event()
        self._renewal = Thread(target=self._renew, name="certificate", daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    def start(self) -> None:
        """Begin to watch, to answer and to renew; returns at once."""
        self._slices.start()
        self._closed_maps.start()
        self._server.start()
        self._renewal.start()

    def stop(self) -> None:
        """Answer nobody any more."""
        self._ended.set()
        self._server.stop()
        self._slices.stop()
        self._closed_maps.stop()

    def _closed(self) -> list[ClosedNodes]:
        return [known for _, known in sorted(self._closed_maps.items().items())]

    def refresh(self) -> None:
        """Show the certificate that all replicas show, renewed if it is due."""
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
                    "certificate of the webhook not renewed, tried again in an hour reason=%s message=%s",
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
        """Probes of the kubelet."""
        if self.path == "/healthz":
            self._send(200, b"ok\n", "text/plain")
        else:
            self._no(404, "there is nothing here; POST an AdmissionReview to /mutate or /validate")

    def do_POST(self) -> None:
        """One review; API servers add a query with their timeout."""
        path = self.path.partition("?")[0]
        length = self.headers.get("Content-Length", "")
        if routed(path)[0] not in SERVED:
            self._no(404, f"nothing is answered there; POST to one of {', '.join(sorted(SERVED))}")
        elif not length.isdigit() or int(length) > LONGEST_BODY:
            self._no(
                413, f"a review comes with its Content-Length, at most {LONGEST_BODY}; send a smaller one"
            )
        else:
            self._review(path, self.rfile.read(int(length)))

    def _review(self, path: str, body: bytes) -> None:
        try:
            found = answer(path, body, self.server.slice_of, self.server.closed)
        except NotAReviewError as error:
            self._no(400, str(error))
        except Fault as fault:
            log.warning("review not answered reason=%s message=%s", fault.reason, fault)
            self._no(500, f"whose namespace it is cannot be told now: {fault}")
        else:
            self._send(200, json.dumps(found).encode(), "application/json")

    def _no(self, status: int, text: str) -> None:
        self.close_connection = True  # what is left of the body would be read as the next request
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
        """Requests are not logged: they are the users' business, and many."""
