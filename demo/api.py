"""The HTTP API of the demo: a portal on loopback over the demo's repository, and an API key."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Thread

import uvicorn

from demo.system import System
from portal.compose import portal
from portal.settings import PortalSettings
from portal.vendor.key_models import document
from reconciler.clock import Clock
from reconciler.queries.running.reach import sources_of
from reconciler.settings import Settings
from reconciler.store.store_port import Person
from schemas.documents.apikey import ApiKeySpec
from schemas.errors import UserError
from schemas.rules.view import key_path

ADMIN = Person("Ada", "ada@example.com")
"""The example's admin, who owns the key."""
NAME = "demo"
POLL = timedelta(seconds=1)
START_S = 0.05
"""Pause between two checks whether the server answers."""


@dataclass(frozen=True, slots=True)
class Served:
    """Address and API key."""

    url: str
    key: str

    def __repr__(self) -> str:
        return f"Served({self.url})"


@contextmanager
def served(system: System, clock: Clock, port: int) -> Iterator[Served]:
    """Serve on that loopback port (0: any free port) until the end of the block."""
    key = f"egs_{secrets.token_urlsafe(32)}"
    spec = ApiKeySpec(sha256="0" * 64, email=ADMIN.email, role="Owner", description="Of this demo.")
    system.push({key_path(NAME): document(NAME, spec, key)}, "A key for the demo's API", ADMIN, clock.now())
    with _listening(port) as listening:
        settings = _settings(system)
        sources = sources_of(settings.base, system.readers, None, system.clusters.get)
        made = portal(settings, clock, sources=sources)
        made.start()
        server = uvicorn.Server(uvicorn.Config(made.app, lifespan="off", log_config=None, access_log=False))
        thread = Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            thread.join(START_S)
        try:
            yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", key)
        finally:
            made.reader.end()
            server.should_exit = True
            thread.join()
            made.stop()


def _settings(system: System) -> PortalSettings:
    state: Path = system.root / "portal"
    return PortalSettings(Settings(repo=str(system.repository), state=state, poll=POLL))


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(("127.0.0.1", port))
        except OSError as error:
            text = f"--port {port}: {error.strerror}; choose a free port, or 0 for any"
            raise UserError(text, "ListenFailed") from error
        yield found
