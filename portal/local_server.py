"""A portal on loopback in this process: for `egs portal` on a repository, and for the demo."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread

import uvicorn

from portal.compose import Portal, portal
from portal.identity.sessions import Session, ticket
from portal.settings import PortalSettings
from reconciler.clock import Clock
from reconciler.queries.running.sight import Sources
from reconciler.store.store_port import Person
from schemas.errors import UserError

HOST = "127.0.0.1"
START_S = 0.05
"""Pause between two checks whether the server answers."""


@dataclass(frozen=True, slots=True)
class LocalPortal:
    """A portal that is being served."""

    url: str
    _portal: Portal = field(repr=False)
    _settings: PortalSettings = field(repr=False)
    _clock: Clock = field(repr=False)

    def link(self, person: Person) -> str:
        """A link that logs the person in as often as it is opened, for as long as a session lasts."""
        until = self._clock.now() + self._settings.session_life
        session = Session(person.email, person.name, until)
        logins = self._portal.parts.logins
        return f"{self.url}/login/with?ticket={logins.shortened(ticket(logins.signer, session, until))}"


@contextmanager
def served(
    settings: PortalSettings, clock: Clock, port: int, sources: Sources | None = None
) -> Iterator[LocalPortal]:
    """Serve on that port (0: any free one) until the end of the block. UserError: the port is taken."""
    with _listening(port) as listening:
        made = portal(settings, clock, sources=sources)
        made.start()
        server = uvicorn.Server(uvicorn.Config(made.app, lifespan="off", log_config=None, access_log=False))
        thread = Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            thread.join(START_S)
        try:
            yield LocalPortal(f"http://{HOST}:{listening.getsockname()[1]}", made, settings, clock)
        finally:
            made.reader.end()
            server.should_exit = True
            thread.join()
            made.stop()


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((HOST, port))
        except OSError as error:
            text = f"--port {port}: {error.strerror}; choose a free port, or 0 for any"
            raise UserError(text, "ListenFailed") from error
        yield found
