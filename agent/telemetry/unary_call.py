"""One gRPC call over a unix socket: a request, a response, a deadline. HTTP/2 by `h2`, without grpcio.

grpcio takes 20 MB of memory and threads of its own; an agent asks the kubelet one question in ten seconds.
"""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

from reconciler.clock import monotonic_s
from schemas.errors import Fault

MOST_BYTES = 16 << 20
"""A longer response is refused; that of 250 pods has some 100 kB."""
READ_BYTES = 65_536
PREFIX = 5
"""Before each gRPC message: whether it is compressed, and its length in four bytes."""


def unary(path: Path, method: str, request: bytes, deadline_s: float) -> bytes:
    """The response to `method`, as `/package.Service/Method`. Raises `Fault` (`CallFailed`)."""
    call = _Call(method, request)
    ends_s = monotonic_s() + deadline_s
    try:
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as peer:
            peer.settimeout(deadline_s)
            peer.connect(str(path))
            peer.sendall(call.begin())
            while not call.ended:
                left_s = ends_s - monotonic_s()
                if left_s <= 0:
                    raise TimeoutError("it took too long")
                peer.settimeout(left_s)
                data = peer.recv(READ_BYTES)
                if not data:
                    break
                peer.sendall(call.received(data))
    except (OSError, ProtocolError) as error:
        raise Fault(f"{path} did not answer {method}: {error}", "CallFailed") from error
    return call.response()


class _Call:
    """The protocol without the socket."""

    def __init__(self, method: str, request: bytes) -> None:
        self._method, self._request = method, request
        self._http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._body = bytearray()
        self._headers: dict[str, str] = {}
        self.ended = False

    def begin(self) -> bytes:
        self._http.initiate_connection()
        headers = {
            ":method": "POST",
            ":scheme": "http",
            ":path": self._method,
            ":authority": "localhost",
            "content-type": "application/grpc",
            "te": "trailers",
            "user-agent": "egs-agent",
        }
        self._http.send_headers(1, list(headers.items()))
        self._http.send_data(
            1, b"\0" + len(self._request).to_bytes(4, "big") + self._request, end_stream=True
        )
        return self._http.data_to_send()

    def received(self, data: bytes) -> bytes:
        """Take bytes from the peer; the bytes to send back."""
        for event in self._http.receive_data(data):
            self._take(event)
        return self._http.data_to_send()

    def response(self) -> bytes:
        """The message of a call that succeeded."""
        status = self._headers.get("grpc-status", "")
        if status != "0":
            text = self._headers.get("grpc-message") or self._headers.get(":status", "no answer")
            raise Fault(
                f"{self._method} failed with status {status or 'unknown'}: {text[:200]}", "CallFailed"
            )
        size = int.from_bytes(self._body[1:PREFIX], "big")
        if len(self._body) != PREFIX + size or self._body[0] != 0:
            raise Fault(f"{self._method} did not answer with one plain message", "CallFailed")
        return bytes(self._body[PREFIX:])

    def _take(self, event: Event) -> None:
        if isinstance(event, ResponseReceived | TrailersReceived):
            self._headers |= {str(key): str(value) for key, value in event.headers or ()}
        elif isinstance(event, DataReceived):
            self._body += event.data or b""
            if len(self._body) > MOST_BYTES:
                raise ProtocolError(f"more than {MOST_BYTES >> 20} MB")
            self._http.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 1)
        elif isinstance(event, StreamEnded | StreamReset | ConnectionTerminated):
            self.ended = True
