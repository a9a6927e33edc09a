"""A small HTTP server beside the loops: for webhooks, Prometheus and the kubelet.

It decides nothing and blocks nothing: requests are limited in size, time and number, and a hook only triggers
an early look. For a private network, or behind a proxy with TLS; nothing that it shows is secret.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple

from reconciler.bounded_http import Bounds, HttpServer
from reconciler.processes.probes import Health
from reconciler.processes.webhooks import HEADERS, refusal, secrets_of
from schemas.errors import UserError

log = logging.getLogger(__name__)

MOST_BODY = 2 << 20
"""Bytes of a hook's body. A larger push is seen at the next poll."""
MOST_DIGITS = 10
"""Digits of a Content-Length."""
BOUNDS = Bounds(idle_s=5.0, whole_s=15.0, connections=32)
"""A connection is one request."""
HOOK = "/hooks/push"


class Answer(NamedTuple):
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


class Server(HttpServer):
    """What `Service` may be asked, until it is stopped. Raises UserError `ListenFailed` at construction."""

    def __init__(self, listen: str, service: Service) -> None:
        super().__init__(listen, _Request, BOUNDS)
        self.service = service


class _Request(BaseHTTPRequestHandler):
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
