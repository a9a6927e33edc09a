"""One cluster's API as plain JSON, over the official client.

The client provides credentials, TLS, proxies and connection pools. Objects stay dictionaries: its typed
models of 20,000 pods would take a minute and a gigabyte, and lose unknown fields.

Every call is limited in time and rate. A refusal by the server is `Rejected` with its HTTP status; a missing
answer is a `Fault` (`ClusterUnreachable`), and then it is unknown whether the server acted.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from reconciler.clock import monotonic_s
from reconciler.clusters.kubernetes.names import MANAGER
from reconciler.model.clock_reading import Heard
from reconciler.model.cluster_port import Refused
from reconciler.timekeeping.date_header import heard_in
from schemas.errors import Fault

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from urllib3.response import BaseHTTPResponse

T = TypeVar("T")
Json = dict[str, Any]
Patch = Sequence[Mapping[str, Any]]
"""Operations of a JSON Patch (RFC 6902)."""

CONNECT_S, READ_S = 5.0, 30.0
"""Timeouts for connecting and between bytes of an answer."""
PAGE = 500
"""Objects per page of a listing, as in kubectl."""
THROTTLED_TRIES = 4
LONGEST_THROTTLE_S = 5.0
"""A busy server names a pause; a longer one than this is left to the next cycle."""


class Rejected(Fault):
    """The server refused. `status` is HTTP's, `kind` the server's reason."""

    def __init__(
        self,
        text: str,
        status: int,
        kind: str = "",
        retry_after_s: float | None = None,
        body: Json | None = None,
    ) -> None:
        reasons = {401: "ClusterUnauthorized", 403: "ClusterForbidden", 429: "ClusterThrottled"}
        super().__init__(text, reasons.get(status, "ClusterRejected"))
        self.status, self.kind, self.retry_after_s, self.body = status, kind, retry_after_s, body or {}


_OF_ONE_OBJECT = ("failed calling webhook", "failed to create typed patch object")


def refused(no: Rejected) -> Refused:
    """A refusal concerning one object is an answer, so that other objects do not wait for it.

    Raises `no` itself if the whole server has a problem, or rejects our credentials.
    """
    # A foreign webhook concerns some objects only; an older server answers 500 to an apply with a wrong type.
    of_one = no.status < 500 or any(sign in str(no) for sign in _OF_ONE_OBJECT)
    if not of_one or no.status in {401, 429}:
        raise no
    return Refused(no.reason, str(no))


def answered(act: Callable[[], T]) -> T | Refused:
    """A problem with one object or permission is an answer; a failing or unreachable server is a fault."""
    try:
        return act()
    except Rejected as no:
        return refused(no)


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests per second to one API server, and the burst after a pause."""

    qps: float = 50.0
    burst: int = 100


DEFAULT_RATE = Rate()


class Limiter:
    """A token bucket; thread-safe."""

    def __init__(self, rate: Rate) -> None:
        self._rate, self._lock = rate, Lock()
        self._tokens, self._at = float(rate.burst), monotonic_s()

    def take(self) -> None:
        """Waits for its turn."""
        with self._lock:
            now = monotonic_s()
            self._tokens = min(self._rate.burst, self._tokens + (now - self._at) * self._rate.qps)
            self._at = now
            self._tokens -= 1
            wait_s = max(0.0, -self._tokens / self._rate.qps)
        if wait_s:
            time.sleep(wait_s)


class Api:
    """Calls to one API server; thread-safe. `paths` are the server's, such as /api/v1/nodes."""

    def __init__(self, client: ApiClient, cluster: str, rate: Rate = DEFAULT_RATE) -> None:
        self._client, self._cluster, self._limiter = client, cluster, Limiter(rate)
        self.calls = 0
        self._user = ""  # impersonated; empty: no account
        self.heard: Heard | None = None
        """The server's clock in its last answer."""

    def acting_as(self, namespace: str, account: str) -> Api:
        """The same server, with the rights of that ServiceAccount only."""
        other = copy(self)
        other._user = f"system:serviceaccount:{namespace}:{account}"
        return other

    def get(self, path: str, **params: object) -> Json:
        """One object or one listing."""
        return self._json("GET", path, params)

    def find(self, path: str) -> Json | None:
        """One object, or None where there is none."""
        try:
            return self._json("GET", path, {})
        except Rejected as no:
            if no.status == 404:
                return None
            raise

    def text(self, path: str, **params: object) -> str:
        """An answer that is not JSON: a container's log."""
        with self._answer("GET", path, params) as response:
            return response.data.decode("utf-8", "replace")

    def create(self, path: str, body: Json, *, patient: bool = True) -> Json:
        """POST; with `patient` a busy server is tried again, which must not happen for an eviction."""
        return self._json("POST", path, {"fieldManager": MANAGER} if patient else {}, body, patient=patient)

    def replace(self, path: str, body: Json) -> Json:
        """PUT; conditional on the resourceVersion in `body`."""
        return self._json("PUT", path, {"fieldManager": MANAGER}, body)

    def patch(self, path: str, operations: Patch) -> Json:
        """JSON Patch; a failed `test` is `Rejected` with status 422 or 409."""
        body = [dict(operation) for operation in operations]
        return self._json("PATCH", path, {"fieldManager": MANAGER}, body, "application/json-patch+json")

    def merge(self, path: str, body: Json, kind: str = "merge-patch") -> Json:
        """JSON Merge Patch, or with `kind` "strategic-merge-patch" Kubernetes' own."""
        return self._json("PATCH", path, {"fieldManager": MANAGER}, body, f"application/{kind}+json")

    def apply(self, path: str, body: Json, manager: str = MANAGER) -> Json:
        """Server-side apply with force: `manager` owns the fields that we set."""
        params = {"fieldManager": manager, "force": "true"}
        return self._json("PATCH", path, params, json.dumps(body).encode(), "application/apply-patch+yaml")

    def delete(
        self, path: str, *, uid: str | None = None, version: str | None = None, grace_s: int | None = None
    ) -> bool:
        """False if it did not exist. `uid` restricts it to that object, `version` to the version read."""
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        held = {"uid": uid, "resourceVersion": version}
        if uid is not None or version is not None:
            body["preconditions"] = {key: value for key, value in held.items() if value is not None}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            self._json("DELETE", path, {}, body)
        except Rejected as no:
            if no.status == 404:
                return False
            raise
        return True

    def pages(self, path: str, **params: object) -> Iterator[Json]:
        more: str | None = None
        while True:
            given = {**params, "limit": PAGE} | ({"continue": more} if more else {})
            page = self.get(path, **given)
            yield page
            more = page.get("metadata", {}).get("continue")
            if not more:
                return

    def items(self, path: str, **params: object) -> Iterator[Json]:
        for page in self.pages(path, **params):
            yield from page.get("items") or ()

    @contextmanager
    def watch(self, path: str, **params: object) -> Iterator[Iterator[Json]]:
        """Changes as they arrive, each `{"type", "object"}`; ends when the server ends it."""
        with self._answer("GET", path, {**params, "watch": "true"}) as response:
            yield self._events(response)

    def _events(self, response: BaseHTTPResponse) -> Iterator[Json]:
        rest = b""
        with self._faults("watch"):
            for chunk in response.stream(65536):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)

    def _json(
        self,
        method: str,
        path: str,
        params: Mapping[str, object],
        body: object = None,
        content: str = "application/json",
        *,
        patient: bool = True,
    ) -> Json:
        with self._answer(method, path, params, body, content, patient=patient) as response:
            data = response.data
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self._unreachable(f"answered {method} {path} without JSON") from error
        if not isinstance(parsed, dict):
            raise self._unreachable(f"answered {method} {path} without an object")
        return parsed

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        params: Mapping[str, object],
        body: object = None,
        content: str = "application/json",
        *,
        patient: bool = True,
    ) -> Iterator[BaseHTTPResponse]:
        """A successful response; its connection returns to the pool at the end."""
        call = self._call(method, path, params, body, content)
        with self._faults(f"{method} {path}"):
            response = self._patiently(call) if patient else call()
            try:
                if response.status >= 300:
                    raise self._rejected(method, path, response)
                yield response
            finally:
                response.close()
                response.release_conn()

    def _call(
        self, method: str, path: str, params: Mapping[str, object], body: object, content: str
    ) -> Callable[[], BaseHTTPResponse]:
        query = urlencode({k: str(v) for k, v in params.items() if v is not None})
        url = f"{self._client.configuration.host}{path}" + (f"?{query}" if query else "")
        read_s = READ_S + float(str(params.get("timeoutSeconds", 0)))

        def call() -> BaseHTTPResponse:
            self._limiter.take()
            self.calls += 1
            headers = {"Accept": "application/json", "User-Agent": "egs-reconciler", "Content-Type": content}
            if self._user:
                headers["Impersonate-User"] = self._user
            # Requested again for each call: tokens from files and exec plugins expire.
            self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            answer = self._client.call_api(
                method, url, header_params=headers, body=body, _request_timeout=(CONNECT_S, read_s)
            )
            response: BaseHTTPResponse = answer.response
            self.heard = heard_in(response.headers.get("Date")) or self.heard
            return response

        return partial(_twice, call) if method == "GET" else call

    def _patiently(self, call: Callable[[], BaseHTTPResponse]) -> BaseHTTPResponse:
        """A server that reports to be busy did nothing; it is called again after the pause it names."""
        for _ in range(THROTTLED_TRIES - 1):
            response = call()
            pause_s = _retry_after(response)
            if response.status not in {429, 503} or pause_s is None or pause_s > LONGEST_THROTTLE_S:
                return response
            response.close()
            response.release_conn()
            time.sleep(pause_s)
        return call()

    def _rejected(self, method: str, path: str, response: BaseHTTPResponse) -> Fault:
        status = _object(response.data)
        message = str(status.get("message") or response.reason or "")[:500]
        text = f"cluster {self._cluster} refused {method} {path}: {message or response.status}"
        if response.status == 403 and "is forbidden: User" in message and not self._user:
            text += "; grant the controller this verb (its chart and `egs install` list all verbs it needs)"
        if response.status == 401:
            text += "; its credentials are wrong or have expired: give the controller new ones"
        if response.status == 429:
            text += "; it is busy, retrying"
        if response.status >= 500 and response.status != 504:
            text += "; retrying"
        kind = str(status.get("reason") or "")
        return Rejected(text, response.status, kind, _retry_after(response), status)

    @contextmanager
    def _faults(self, doing: str) -> Iterator[None]:
        """Any connection failure means that the cluster is unreachable."""
        # Both take half a second: imported only if there is a cluster.
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            yield
        except (HTTPError, ApiException, OSError, ValueError) as error:
            raise self._unreachable(f"did not answer {doing}: {_why(error)}") from error

    def _unreachable(self, what: str) -> Fault:
        return Fault(f"the API server of cluster {self._cluster} {what}", "ClusterUnreachable")


def _twice(call: Callable[[], BaseHTTPResponse]) -> BaseHTTPResponse:
    """An idle connection may have been closed by the server; a read is simply repeated."""
    from urllib3.exceptions import ProtocolError  # takes half a second: imported only if there is a cluster

    try:
        return call()
    except ProtocolError:
        return call()


def _object(data: bytes) -> Json:
    """The server's explanation of a refusal; a proxy's HTML counts as none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _why(error: BaseException) -> str:
    """The connection's failure as a sentence; an unknown error by its class name only."""
    met: list[BaseException] = []
    cause: object = error
    while isinstance(cause, BaseException) and cause not in met:
        met.append(cause)
        inner = getattr(cause, "reason", None)  # urllib3 wraps it there; others have a text there
        cause = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
    for kind, words in _CAUSES:
        for found in met:
            if isinstance(found, kind):
                return words.format(getattr(found, "verify_message", ""))
    return type(error).__name__


_CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, "its certificate is not trusted ({}); check the kubeconfig's authority"),
    (ssl.SSLError, "the TLS handshake failed; check the kubeconfig's server address"),
    (socket.gaierror, "its host name is unknown; check the kubeconfig's server address"),
    (ConnectionRefusedError, "the connection was refused; check that the API server is running"),
    (TimeoutError, "no answer in time"),
    (ConnectionError, "the connection broke"),
)


def _retry_after(response: BaseHTTPResponse) -> float | None:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None
