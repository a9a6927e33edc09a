"""The agent's HTTP server: `/metrics` and the ring's two routes. It reads only, and is off by default."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple
from urllib.parse import parse_qsl

from agent.telemetry.exporter import Exporter
from agent.telemetry.openmetrics import CONTENT_TYPE
from reconciler.bounded_http import Bounds, HttpServer
from reconciler.clock import Clock
from reconciler.telemetry.ring_format import LATEST, RANGE, asked
from reconciler.telemetry.telemetry_port import NodeKey
from schemas.errors import UserError

log = logging.getLogger(__name__)

METRICS = "/metrics"
JSON = "application/json"
BOUNDS = Bounds(idle_s=5.0, whole_s=15.0, connections=16)
"""A Prometheus, and some portals behind an API server."""


class Answer(NamedTuple):
    status: HTTPStatus
    body: bytes
    content_type: str = JSON


class TelemetryServer(HttpServer):
    """Raises UserError `ListenFailed` when made."""

    def __init__(self, listen: str, exporter: Exporter, node: NodeKey, clock: Clock) -> None:
        super().__init__(listen, _Request, BOUNDS)
        self.exporter, self.node, self.clock = exporter, node, clock


class _Request(BaseHTTPRequestHandler):
    server: TelemetryServer
    server_version = "egs"
    sys_version = ""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        answer = self._answer(path, dict(parse_qsl(query)))
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(answer.body)

    def _answer(self, path: str, parameters: dict[str, str]) -> Answer:
        server = self.server
        if path == METRICS:
            text = server.exporter.metrics(server.clock.now())
            return Answer(HTTPStatus.OK, text.encode(), CONTENT_TYPE)
        if path == LATEST:
            return Answer(HTTPStatus.OK, server.exporter.latest(server.clock.now()))
        if path == RANGE:
            return self._range(parameters)
        return _refused(HTTPStatus.NOT_FOUND, "NoSuchPath", f"use {METRICS}, {LATEST} or {RANGE}")

    def _range(self, parameters: dict[str, str]) -> Answer:
        try:
            query = asked(parameters, self.server.node)
        except UserError as error:
            return _refused(HTTPStatus.BAD_REQUEST, error.reason, str(error))
        return Answer(HTTPStatus.OK, self.server.exporter.range(query))

    def log_message(self, format: str, *args: object) -> None:
        log.debug("request client=%s said=%s", self.client_address[0], format % args)


def _refused(status: HTTPStatus, reason: str, message: str) -> Answer:
    return Answer(status, json.dumps({"reason": reason, "message": message}).encode())
