"""Put the parts of a portal together; the one place that knows all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import FastAPI

from portal.http.app import create_app
from portal.http.context import Parts
from portal.identity.logins import Logins
from portal.settings import PortalSettings
from portal.views.past.past_views import PastViews
from portal.views.reader import Reader
from portal.writes.writer import GroupWriter
from reconciler.clock import Clock, monotonic_s
from reconciler.queries.running.reach import sources_of
from reconciler.queries.running.sight import Sources
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.trust.machines import own_key, signing
from schemas.reading.reader import READER_VERSION


@dataclass(frozen=True, slots=True)
class Portal:
    """One process. Call `start` before it serves."""

    app: FastAPI
    parts: Parts
    reader: Reader
    writer: GroupWriter
    store: GitStore

    def start(self) -> None:
        """Start reading and writing in the background; returns at once."""
        self.reader.start()
        self.writer.start()

    def stop(self) -> None:
        """Push pending changes, then end."""
        self.writer.stop()
        self.reader.stop()
        self.parts.costly.stop()
        self.parts.sources.close()
        self.store.close()


def portal(
    settings: PortalSettings,
    clock: Clock,
    monotonic: Callable[[], float] = monotonic_s,
    sources: Sources | None = None,
) -> Portal:
    """Over a real repository, with its mirror and caches in `settings.base.state`. `monotonic` dates its answers.

    `sources`: of pods and values of GPUs; None: those that the settings reach.

    UserError for what an operator must fix first: keys, credentials, certificates, a mirror in use by another process.
    """
    base = settings.base
    base.state.mkdir(parents=True, exist_ok=True)
    sign = signing(own_key(base.trust))
    store = GitStore(base.repo, base.state / "mirror.git", credentials=base.credentials, sign=sign)
    # One file, but a connection per thread: what one thread has parsed, the other finds.
    read, written = (DocumentCache(base.state / "documents.sqlite", READER_VERSION) for _ in range(2))
    reader = Reader(store, read, base, clock, monotonic)
    writer = GroupWriter(store, written, settings, reader, clock)
    logins = Logins(settings, clock.now)
    parts = Parts(
        reader,
        writer,
        logins,
        clock.now,
        store,
        settings,
        sources or sources_of(base, store, settings.metrics_files),
        PastViews(store, base, monotonic),
    )
    prefix = urlsplit(settings.public_url).path.rstrip("/")
    return Portal(create_app(parts, prefix), parts, reader, writer, store)
