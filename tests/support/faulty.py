"""An API server in trouble: single calls of a client that go wrong on the way, and a server that answers as it is told.

`Wire` sits between one client and its real server. A rule says which calls it is about, how many of them, and what
becomes of each: something happens first (somebody else writes), another answer comes instead, or the answer is lost
after the server acted. Everything else passes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any

from urllib3 import HTTPResponse

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.api.connection import from_text

FOREVER = 1_000_000


@dataclass(frozen=True, slots=True)
class Canned:
    """An answer that no real server gives on demand."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def refusal(cls, status: int, message: str, **headers: str) -> Canned:
        """As an API server refuses; in headers' names `_` stands for a hyphen."""
        body = {"kind": "Status", "status": "Failure", "message": message, "code": status}
        return cls(status, json.dumps(body).encode(), {k.replace("_", "-"): v for k, v in headers.items()})


@dataclass(slots=True)
class Rule:
    """What becomes of calls whose method and path (a pattern) are these."""

    method: str
    path: str
    times: int = FOREVER
    before: Callable[[], object] = lambda: None
    instead: Canned | Exception | None = None
    after: Callable[[], object] = lambda: None  # may raise: then the answer is lost
    met: int = 0

    def covers(self, method: str, path: str) -> bool:
        """It is about this call."""
        return self.met < self.times and method == self.method and re.search(self.path, path) is not None


class Wire:
    """Between one client and its server; thread-safe."""

    def __init__(self, api: Api) -> None:
        self._through, self._lock = api._client.call_api, Lock()
        self._rules: list[Rule] = []
        api._client.call_api = self._call  # type: ignore[method-assign]

    def rule(self, method: str, path: str, *, first: bool = False, **more: Any) -> Rule:
        """From now on; of several the earliest counts, unless it is put first."""
        rule = Rule(method, path, **more)
        self._rules.insert(0 if first else len(self._rules), rule)
        return rule

    def clear(self) -> None:
        """All is well again."""
        self._rules.clear()

    def _call(self, method: str, url: str, **kwargs: Any) -> Any:
        path = "/" + url.split("/", 3)[3]
        with self._lock:
            rule = next((rule for rule in self._rules if rule.covers(method, path)), None)
            if rule is not None:
                rule.met += 1
        if rule is None:
            return self._through(method, url, **kwargs)
        rule.before()
        if isinstance(rule.instead, Exception):
            raise rule.instead
        answer = self._through(method, url, **kwargs) if rule.instead is None else _response(rule.instead)
        rule.after()
        return answer


def _response(canned: Canned) -> Any:
    found = HTTPResponse(BytesIO(canned.body), canned.headers, canned.status, preload_content=False)
    return SimpleNamespace(response=found)


def lost() -> None:
    """The answer never comes."""
    raise TimeoutError("lost by the test")


class Script:
    """A server on the loopback; `answer` is given each request, and the last word."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                answer(self)

            def do_PATCH(self) -> None:
                answer(self)

            def log_message(self, *_: object) -> None:
                """Not in a test's output."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """The port is free again."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def scripted(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Api]:
    """A client of such a server."""
    server = Script(answer)
    try:
        yield client(server.url)
    finally:
        server.stop()


def client(url: str, **more: object) -> Api:
    """A client of whatever listens at that address; `more` goes into the kubeconfig's user."""
    config: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "east",
        "clusters": [{"name": "east", "cluster": {"server": url}}],
        "users": [{"name": "us", "user": more}],
        "contexts": [{"name": "east", "context": {"cluster": "east", "user": "us"}}],
    }
    return from_text("east", json.dumps(config))


def send(handler: BaseHTTPRequestHandler, canned: Canned) -> None:
    """That answer, with its length."""
    handler.send_response(canned.status)
    for name, value in {"Content-Length": str(len(canned.body)), **canned.headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(canned.body)
