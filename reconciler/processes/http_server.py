"""A small HTTP server beside the loops: for webhooks, Prometheus and the kubelet.

It decides nothing and blocks nothing: requests are limited in size, time and number, and a hook only triggers
an early look. For a private network, or behind a proxy with TLS; nothing that it shows is secret.

Held by tests/reconciler/processes/test_http_server.py.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from threading import Lock, Thread
from typing import Any, NamedTuple

from reconciler.clock import monotonic_s
from reconciler.processes.probes import Health
from reconciler.processes.webhooks import HEADERS, refusal, secrets_of
from schemas.errors import UserError

log = logging.getLogger(__name__)

MOST_BODY = 2 << 20
"""Bytes of a hook's body. A larger push is seen at the next poll."""
MOST_DIGITS = 10
"""Digits of a Content-Length."""
READ_S = 5.0
"""Read timeout of a client."""
REQUEST_S = 15.0
"""Time limit of a whole request; a slower one is cut off."""
MOST_REQUESTS = 32
"""Concurrent requests; one more cuts off the oldest, so that a flood of slow ones never blocks a probe."""
HOOK = "/hooks/push"


class Answer(NamedTuple):
    """An HTTP answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"


class Service(NamedTuple):
    """The server's callbacks; each is called from many threads."""

    wake: Mapping[str, Callable[[], None]]  # by repository
    alive: Callable[[], Health]
    ready: Callable[[], Health]
    page: Callable[[str], tuple[bytes, str]]  # the metrics, in the requested format
    hooked: Callable[[str], None]  # called with the answer to a hook
    secrets: Path | None  # without it webhooks are disabled


def address(listen: str) -> tuple[str, int]:
    """`HOST:PORT`, `:PORT` for every address, `[::1]:PORT`. Raises UserError `WrongUse`."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UserError(f"--listen {listen}: give HOST:PORT, or :PORT to listen on every address", "WrongUse")
    return host.removeprefix("[").removesuffix("]"), int(port)


class Server(ThreadingHTTPServer):
    """The server on its own threads, from `start` to `stop`. Raises UserError `ListenFailed` at construction."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_REQUESTS

    def __init__(self, listen: str, service: Service) -> None:
        host, port = address(listen)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.service = service
        self._open: dict[socket.socket, float] = {}  # since when, oldest first
        self._opening = Lock()
        try:
            super().__init__((host, port), _Request)
        except OSError as error:
            raise UserError(
                f"--listen {listen}: {error.strerror or error}; choose an address of this machine and a free port",
                "ListenFailed",
            ) from error

    def server_bind(self) -> None:
        """Binds without a DNS lookup of the host name, which may be slow."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def port(self) -> int:
        """The port in use, also if 0 was given."""
        return int(self.server_address[1])

    def start(self) -> None:
        """Starts; returns at once."""
        Thread(target=self.serve_forever, name="http", daemon=True).start()
        log.info("listening host=%s port=%d", self.server_address[0], self.port)

    def stop(self) -> None:
        """Accepts no more requests; running ones are not waited for."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own; if there are too many, the oldest is cut off."""
        with self._opening:
            self._open[request] = monotonic_s()
            surplus = list(self._open)[: max(0, len(self._open) - MOST_REQUESTS)]
            for oldest in surplus:
                del self._open[oldest]
        for oldest in surplus:
            _cut(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """The request is finished."""
        with self._opening:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Twice a second: cuts off slow requests, even active ones."""
        late = monotonic_s() - REQUEST_S
        with self._opening:
            slow = [request for request, since in self._open.items() if since < late]
        for request in slow:
            _cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        """A disconnecting client is normal; other failures are bugs, and cost one request."""
        if isinstance(sys.exception(), OSError):
            log.debug("request broke client=%s", client_address[0], exc_info=True)
        else:
            log.exception("request broke; please report it")


def _cut(request: socket.socket) -> None:
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("connection gone already")


class _Request(BaseHTTPRequestHandler):
    timeout = READ_S
    server: Server
    server_version = "egs"
    sys_version = ""

    def do_GET(self) -> None:
        service, path = self.server.service, self.path.partition("?")[0]
        match path:
            case "/metrics":
                self._send(Answer(HTTPStatus.OK, *service.page(self.headers.get("Accept", ""))))
            case "/healthz":
                self._send(_health(service.alive()))
            case "/readyz":
                self._send(_health(service.ready()))
            case _:
                self._send(_refused(HTTPStatus.NOT_FOUND, "NoSuchPath", "use /metrics, /healthz or /readyz"))

    def do_POST(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if path != HOOK and not path.startswith(f"{HOOK}/"):
            self._send(_refused(HTTPStatus.NOT_FOUND, "NoSuchPath", f"hooks are sent to {HOOK}[/REPOSITORY]"))
            return
        reason, answer = self._hook(path.removeprefix(HOOK).removeprefix("/"))
        self.server.service.hooked(reason)
        self._send(answer)

    def _hook(self, repository: str) -> tuple[str, Answer]:
        service = self.server.service
        if service.secrets is None:
            return _no(HTTPStatus.NOT_FOUND, "HooksOff", "give the controller --hook-secrets FILE")
        try:
            secrets = secrets_of(service.secrets.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, UserError) as error:
            log.warning(
                "webhook secrets not read file=%s error=%s; their admin should check", service.secrets, error
            )
            return _no(
                HTTPStatus.SERVICE_UNAVAILABLE, "HookSecretMissing", "the secrets cannot be read; see the log"
            )
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or len(length) > MOST_DIGITS:
            return _no(HTTPStatus.LENGTH_REQUIRED, "LengthRequired", "send a Content-Length")
        if int(length) > MOST_BODY:
            return _no(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "BodyTooLarge", f"at most {MOST_BODY} bytes are read"
            )
        given = {name: self.headers[name] for name in HEADERS if name in self.headers}
        why = refusal(given, self.rfile.read(int(length)), secrets)
        if why is not None:
            return _no(HTTPStatus.UNAUTHORIZED, why, "sign the body with a secret of --hook-secrets")
        return _woken(service, repository)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        log.debug("request client=%s said=%s", self.client_address[0], format % args)


def _woken(service: Service, repository: str) -> tuple[str, Answer]:
    if repository and repository not in service.wake:
        return _no(HTTPStatus.NOT_FOUND, "NoSuchRepository", "no repository of this controller has that name")
    names = sorted([repository] if repository else service.wake)
    for name in names:
        service.wake[name]()
    return "Accepted", Answer(HTTPStatus.ACCEPTED, _json({"woken": names}))


def _health(health: Health) -> Answer:
    status = HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, _json(health.document()))


def _no(status: HTTPStatus, reason: str, message: str) -> tuple[str, Answer]:
    return reason, _refused(status, reason, message)


def _refused(status: HTTPStatus, reason: str, message: str) -> Answer:
    return Answer(status, _json({"reason": reason, "message": message}))


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"
