"""One cluster's API as plain JSON, over the official client.

The client brings what is hard to get right: credentials, TLS, proxies, connection pools. Objects stay dictionaries:
making its typed models of 20,000 pods takes a minute and a gigabyte, and drops fields it does not know.

Every call is bounded in time and in rate. What the server refuses is `Rejected` with its HTTP status; what it does
not answer is a `Fault` (`ClusterUnreachable`), and then nobody knows whether it acted.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
"""Longest wait for a connection and for a byte of an answer."""
PAGE = 500
"""Objects of one page of a listing, as kubectl asks for."""
THROTTLED_TRIES = 4
LONGEST_THROTTLE_S = 5.0
"""A server that is busy names a pause; one longer than this is left to the next cycle."""


class Rejected(Fault):
    """The server answered, and said no. `status` is HTTP's, `kind` the server's own word for why."""

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


def refused(no: Rejected) -> Refused:
    """What the server refuses of one object is an answer, so that no other object waits for it.

    Raises `no` itself where the whole server is in trouble, or knows us no more.
    """
    of_one = no.status < 500 or "failed calling webhook" in str(no)  # somebody's, and of some objects only
    if not of_one or no.status in {401, 429}:
        raise no
    return Refused(no.reason, str(no))


def answered(act: Callable[[], T]) -> T | Refused:
    """One object or right in trouble is an answer; a server that is in trouble, or out of reach, is a fault."""
    try:
        return act()
    except Rejected as no:
        return refused(no)


@dataclass(frozen=True, slots=True)
class Rate:
    """Most requests a second to one API server, and how many at once after a pause."""

    qps: float = 50.0
    burst: int = 100


DEFAULT_RATE = Rate()


class Limiter:
    """A token bucket; thread-safe."""

    def __init__(self, rate: Rate) -> None:
        self._rate, self._lock = rate, Lock()
        self._tokens, self._at = float(rate.burst), monotonic_s()

    def take(self) -> None:
        """Wait for one's turn."""
        with self._lock:
            now = monotonic_s()
            self._tokens = min(self._rate.burst, self._tokens + (now - self._at) * self._rate.qps)
            self._at = now
            self._tokens -= 1
            wait_s = max(0.0, -self._tokens / self._rate.qps)
        if wait_s:
            time.sleep(wait_s)


class Api:
    """Calls to one API server; thread-safe. `paths` are those of the server, as /api/v1/nodes."""

    def __init__(self, client: ApiClient, cluster: str, rate: Rate = DEFAULT_RATE) -> None:
        self._client, self._cluster, self._limiter = client, cluster, Limiter(rate)
        self.calls = 0
        self.heard: Heard | None = None
        """What the server's clock said in its last answer."""

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
        """An answer that is no JSON: a container's log."""
        with self._answer("GET", path, params) as response:
            return response.data.decode("utf-8", "replace")

    def create(self, path: str, body: Json, *, patient: bool = True) -> Json:
        """POST; with `patient` a busy server is asked again, which an eviction must not be."""
        return self._json("POST", path, {"fieldManager": MANAGER} if patient else {}, body, patient=patient)

    def replace(self, path: str, body: Json) -> Json:
        """PUT; conditional on the resourceVersion in `body`."""
        return self._json("PUT", path, {"fieldManager": MANAGER}, body)

    def patch(self, path: str, operations: Patch) -> Json:
        """JSON Patch; a `test` that does not hold is `Rejected` with status 422 or 409."""
        body = [dict(operation) for operation in operations]
        return self._json("PATCH", path, {"fieldManager": MANAGER}, body, "application/json-patch+json")

    def merge(self, path: str, body: Json, kind: str = "merge-patch") -> Json:
        """JSON Merge Patch, or with `kind` "strategic-merge-patch" Kubernetes' own."""
        return self._json("PATCH", path, {"fieldManager": MANAGER}, body, f"application/{kind}+json")

    def apply(self, path: str, body: Json) -> Json:
        """Server-side apply of what is ours, by force: the fields that we name are ours."""
        params = {"fieldManager": MANAGER, "force": "true"}
        return self._json("PATCH", path, params, json.dumps(body).encode(), "application/apply-patch+yaml")

    def delete(
        self, path: str, *, uid: str | None = None, version: str | None = None, grace_s: int | None = None
    ) -> bool:
        """False where there was none. With `uid` only that very object goes, with `version` only as it was read."""
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
        """A listing, page by page."""
        more: str | None = None
        while True:
            given = {**params, "limit": PAGE} | ({"continue": more} if more else {})
            page = self.get(path, **given)
            yield page
            more = page.get("metadata", {}).get("continue")
            if not more:
                return

    def items(self, path: str, **params: object) -> Iterator[Json]:
        """Every object of a listing."""
        for page in self.pages(path, **params):
            yield from page.get("items") or ()

    @contextmanager
    def watch(self, path: str, **params: object) -> Iterator[Iterator[Json]]:
        """Changes as they come, each `{"type", "object"}`; ends when the server ends it."""
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
            raise self._unreachable(f"answered {method} {path} with no JSON") from error
        if not isinstance(parsed, dict):
            raise self._unreachable(f"answered {method} {path} with no object")
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
        """A response that says yes; its connection goes back to the pool at the end."""
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
            # Asked for anew at each call: tokens from files and exec plugins expire.
            self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            answer = self._client.call_api(
                method, url, header_params=headers, body=body, _request_timeout=(CONNECT_S, read_s)
            )
            response: BaseHTTPResponse = answer.response
            self.heard = heard_in(response.headers.get("Date")) or self.heard
            return response

        return partial(_twice, call) if method == "GET" else call

    def _patiently(self, call: Callable[[], BaseHTTPResponse]) -> BaseHTTPResponse:
        """A server that says it is busy did nothing; it is asked again after the pause that it names."""
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
        if response.status == 403 and "is forbidden: User" in message:
            text += "; grant the controller this verb (its chart and `egs install` list all it needs)"
        if response.status == 401:
            text += "; its credentials are wrong or have expired: give the controller new ones"
        if response.status == 429:
            text += "; it is busy, tried again"
        if response.status >= 500 and response.status != 504:
            text += "; tried again"
        kind = str(status.get("reason") or "")
        return Rejected(text, response.status, kind, _retry_after(response), status)

    @contextmanager
    def _faults(self, doing: str) -> Iterator[None]:
        """Whatever the connection does wrong is the cluster's being out of reach."""
        from kubernetes.client.exceptions import (
            ApiException,
        )  # takes half a second: only who has a cluster pays it
        from urllib3.exceptions import HTTPError

        try:
            yield
        except (HTTPError, ApiException, OSError, ValueError) as error:
            raise self._unreachable(f"did not answer {doing}: {_why(error)}") from error

    def _unreachable(self, what: str) -> Fault:
        return Fault(f"the API server of cluster {self._cluster} {what}", "ClusterUnreachable")


def _twice(call: Callable[[], BaseHTTPResponse]) -> BaseHTTPResponse:
    """A connection that rested too long has been closed by the server; a read may simply be sent again."""
    from urllib3.exceptions import ProtocolError  # takes half a second: only who has a cluster pays it

    try:
        return call()
    except ProtocolError:
        return call()


def _object(data: bytes) -> Json:
    """What a server says of its refusal; a proxy in between says it in HTML, which is nothing."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _why(error: BaseException) -> str:
    """What went wrong with the connection, in a person's words; an unknown error by its name alone."""
    met: list[BaseException] = []
    cause: object = error
    while isinstance(cause, BaseException) and cause not in met:
        met.append(cause)
        inner = getattr(cause, "reason", None)  # urllib3 wraps so; others have a text there
        cause = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
    for kind, words in _CAUSES:
        for found in met:
            if isinstance(found, kind):
                return words.format(getattr(found, "verify_message", ""))
    return type(error).__name__


_CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, "its certificate is not trusted ({}); check the kubeconfig's authority"),
    (ssl.SSLError, "it does not speak TLS as it should; check the kubeconfig's server address"),
    (socket.gaierror, "its host name is not known; check the kubeconfig's server address"),
    (ConnectionRefusedError, "the connection was refused; check that it runs"),
    (TimeoutError, "no answer in time"),
    (ConnectionError, "the connection broke"),
)


def _retry_after(response: BaseHTTPResponse) -> float | None:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None
