"""The portal of the demo: on loopback over the demo's repository, for its admin."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from demo.system import System
from portal import local_server
from portal.settings import PortalSettings
from portal.vendor.key_models import document
from reconciler.clock import Clock
from reconciler.queries.running.reach import sources_of
from reconciler.settings import Settings
from reconciler.store.store_port import Person
from schemas.documents.apikey import ApiKeySpec
from schemas.rules.view import key_path

ADMIN = Person("Ada", "ada@example.com")
"""The example's admin, who owns the key."""
NAME = "demo"
POLL = timedelta(seconds=1)
SESSION_LIFE = timedelta(days=60)
"""Of simulated time: a real day at the demo's pace."""


@dataclass(frozen=True, slots=True)
class Served:
    """Address, API key, and a link that opens the pages as the admin."""

    url: str
    key: str = field(repr=False)
    link: str = field(repr=False)


@contextmanager
def served(system: System, clock: Clock, port: int) -> Iterator[Served]:
    """Serve on that loopback port (0: any free port) until the end of the block."""
    key = f"egs_{secrets.token_urlsafe(32)}"
    spec = ApiKeySpec(sha256="0" * 64, email=ADMIN.email, role="Owner", description="Of this demo.")
    system.push({key_path(NAME): document(NAME, spec, key)}, "A key for the demo's API", ADMIN, clock.now())
    state: Path = system.root / "portal"
    base = Settings(repo=str(system.repository), state=state, poll=POLL)
    settings = PortalSettings(base, session_life=SESSION_LIFE)
    sources = sources_of(base, system.readers, None, system.clusters.get)
    with local_server.served(settings, clock, port, sources) as local:
        yield Served(local.url, key, local.link(ADMIN))
