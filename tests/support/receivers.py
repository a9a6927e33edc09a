"""Who gets messages: a carrier that notes them, and real servers on loopback for webhooks and for mail."""

from __future__ import annotations

import contextlib
import email
import email.policy
import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from reconciler.telling.courier import Answer, Parcel


@dataclass(slots=True)
class Noted:
    """Carries nothing: notes what it was given, and answers as it is told at the next look."""

    answer: Answer | None = Answer.DELIVERED  # None: it hangs
    sent: list[tuple[datetime, Parcel]] = field(default_factory=list)
    tried: list[tuple[datetime, Parcel]] = field(default_factory=list)
    _back: dict[str, Answer] = field(default_factory=dict)

    def send(self, parcel: Parcel, now: datetime) -> bool:
        """See `Carrier.send`."""
        self.tried.append((now, parcel))
        if self.answer is Answer.DELIVERED:
            self.sent.append((now, parcel))
        if self.answer is not None:
            self._back[parcel.id] = self.answer
        return True

    def returned(self, now: datetime) -> Mapping[str, Answer]:
        """See `Carrier.returned`."""
        found, self._back = self._back, {}
        return found

    def finish(self) -> None:
        """See `Carrier.finish`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a webhook."""

    path: str
    delivery: str
    body: dict[str, Any]


@dataclass(slots=True)
class Webhook:
    """A receiver of `json://`: `status` is what it answers; while `gate` is shut it does not answer at all."""

    port: int
    calls: list[Call] = field(default_factory=list)
    status: int = 200
    location: str = ""
    gate: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/secret-path") -> str:
        """As apprise has it."""
        return f"json://user:secret-word@127.0.0.1:{self.port}{path}"


@contextlib.contextmanager
def webhook() -> Iterator[Webhook]:
    """Runs until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            hook.calls.append(Call(self.path, self.headers.get("Egs-Delivery", ""), json.loads(data)))
            hook.gate.wait()
            with contextlib.suppress(OSError):  # who asked may be gone
                self.send_response(hook.status)
                if hook.location:
                    self.send_header("Location", hook.location)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    hook = Webhook(server.server_address[1])
    hook.gate.set()
    with _running(server):
        yield hook
        hook.gate.set()


@dataclass(slots=True)
class Mailbox:
    """What a mail server took."""

    port: int
    mails: list[EmailMessage] = field(default_factory=list)


@contextlib.contextmanager
def mailbox() -> Iterator[Mailbox]:
    """A mail server that takes everything, without a password, until the end of the block."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 test")
            for line in self.rfile:
                word = line.strip().upper()
                if word == b"DATA":
                    self._say("354 go on")
                    data = b"".join(iter(self.rfile.readline, b".\r\n"))
                    message = email.message_from_bytes(data, policy=email.policy.default)
                    assert isinstance(message, EmailMessage)
                    box.mails.append(message)
                self._say("221 bye" if word == b"QUIT" else "250 ok")

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    box = Mailbox(server.server_address[1])
    with _running(server):
        yield box


@contextlib.contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
