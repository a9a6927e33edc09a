"""An HTTP server on threads, bounded in time and number, for probes, hooks and admission reviews.

uvicorn, which serves portals, has no limit for a peer that is slow in its request's head or its handshake. Here
each connection has a thread, and the oldest makes room if there are too many: slow ones never lock out a probe.

Held by tests/reconciler/processes/test_http_server.py and
tests/reconciler/clusters/kubernetes/admission/test_webhook.py.
"""

from __future__ import annotations

import logging
import socket
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from typing import Any, NamedTuple

from reconciler.clock import monotonic_s
from schemas.errors import UserError

log = logging.getLogger(__name__)


class Bounds(NamedTuple):
    """What one peer may use."""

    idle_s: float
    """How long it may be silent."""
    whole_s: float | None
    """How long a connection may take in all; what is slower is cut off. None: API servers keep theirs."""
    connections: int
    """Connections at a time; one more cuts off the oldest."""


def address(listen: str) -> tuple[str, int]:
    """`HOST:PORT`, `:PORT` for every address, `[::1]:PORT`. Raises UserError `WrongUse`."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UserError(f"--listen {listen}: give HOST:PORT, or :PORT to listen on every address", "WrongUse")
    return host.removeprefix("[").removesuffix("]"), int(port)


class HttpServer(ThreadingHTTPServer):
    """From `start` to `stop`. Raises UserError `WrongUse` or `ListenFailed` when made."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        listen: str,
        handler: type[BaseHTTPRequestHandler],
        bounds: Bounds,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        host, port = address(listen)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.request_queue_size = bounds.connections
        self.bounds = bounds
        self._tls = tls
        self._open: dict[socket.socket, float] = {}  # since when, oldest first
        self._opening = Lock()
        self._thread = Thread(target=self.serve_forever, name="http", daemon=True)
        try:
            super().__init__((host, port), handler)
        except OSError as error:
            raise UserError(
                f"--listen {listen}: {error.strerror or error}; choose an address of this machine and a free port",
                "ListenFailed",
            ) from error

    def server_bind(self) -> None:
        """Bind without a DNS lookup: its result is not used, and it may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def port(self) -> int:
        """The port in use, also if 0 was given."""
        return int(self.server_address[1])

    def start(self) -> None:
        self._thread.start()
        log.info("listening host=%s port=%d", self.server_address[0], self.port)

    def stop(self) -> None:
        """Takes no more connections; open ones continue."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()

    def hang_up(self) -> None:
        """Ends open connections: peers that keep them would go on asking a server that has ended."""
        with self._opening:
            connections = list(self._open)
        for connection in connections:
            _cut(connection)

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection with a limit on silence. Its own thread shakes hands, so a slow peer delays no other."""
        plain, peer = super().get_request()
        plain.settimeout(self.bounds.idle_s)
        if self._tls is None:
            return plain, peer
        return self._tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), peer

    def process_request(self, request: Any, client_address: Any) -> None:
        """Each in its own thread; the oldest makes room if there are too many."""
        with self._opening:
            self._open[request] = monotonic_s()
            surplus = list(self._open)[: max(0, len(self._open) - self.bounds.connections)]
            for oldest in surplus:
                del self._open[oldest]
        for oldest in surplus:
            _cut(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._opening:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cuts off connections that take too long; called twice a second."""
        if self.bounds.whole_s is None:
            return
        late = monotonic_s() - self.bounds.whole_s
        with self._opening:
            slow = [request for request, since in self._open.items() if since < late]
        for request in slow:
            _cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        """A client that goes away is normal; anything else is a bug of ours, and costs one request."""
        if isinstance(sys.exception(), OSError):
            log.debug("request broke client=%s", client_address[0], exc_info=True)
        else:
            log.exception("request broke; please report it")


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("connection gone already")
