"""A portal over a real repository: a small fleet, the real controller in simulated time, keys for every role.

`Site(folder)` makes a bare repository with two embedded clusters (east, west), slices `vision` and `nlp`, the admin
ada, the owner olga, the members bo (vision) and cy (nlp), and the controller that decides; nothing passes until
`settle()` (until there is nothing left to do now) or `pass_time(minutes)`. Whatever the clock
says, answers are as old as the remote has not been asked in `silent_s`.

`with site.client("bo-editor") as client:` is a `TestClient` that asks as somebody; `with site.server() as url:` is
uvicorn on loopback, for the SDK and the command line. KEYS has the text of every API key.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from portal.compose import portal
from portal.http.app import create_app
from portal.http.rate_limits import Rate, Rates
from portal.identity.callers import Caller
from portal.identity.key_lookup import caller_by_key
from portal.settings import PortalSettings
from portal.views.view import View
from reconciler.clock import Clock, ManualClock, monotonic_s
from reconciler.compose import controller
from reconciler.cycle import Cycle
from reconciler.settings import Settings
from schemas.documents.apikey import digest_of
from schemas.reading.yaml_text import dump
from tests.support import repos
from tests.support.running import SimulatedFleet
from tests.support.world import START, cluster, gpr, gpr_path, project, slice_

HEAD = {"apiVersion": "egs.dev/v1alpha1"}
GENEROUS = Rates(*(Rate(10**6, 10**6) for _ in range(4)))
"""Simulated time fills no buckets while it stands still."""


@cache
def openapi_document() -> dict[str, Any]:
    """The portal's OpenAPI document; making it takes seconds."""
    return create_app(cast("Any", None)).openapi()


def key_text(name: str) -> str:
    """The secret of the API key of that name: 43 letters, as real ones have."""
    return f"egs_{name}_".ljust(43, "x").replace("-", "0")


PEOPLE: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "ada-owner": ("ada@example.com", "Owner", ()),
    "ada-editor": ("ada@example.com", "Editor", ()),
    "ada-viewer": ("ada@example.com", "Viewer", ()),
    "ada-vision": ("ada@example.com", "Owner", ("vision",)),
    "olga-owner": ("olga@example.com", "Owner", ()),
    "bo-owner": ("bo@example.com", "Owner", ()),
    "bo-editor": ("bo@example.com", "Editor", ("vision",)),
    "bo-viewer": ("bo@example.com", "Viewer", ("vision",)),
    "cy-editor": ("cy@example.com", "Editor", ()),
    "eve-editor": ("eve@example.com", "Editor", ()),
    "bo-expired": ("bo@example.com", "Editor", ()),
    "bo-revoked": ("bo@example.com", "Editor", ()),
}
"""Keys by name: whose, role, scope (empty: the whole project). eve is nobody's member; two keys open nothing."""
KEYS = {name: key_text(name) for name in PEOPLE}


def api_key(name: str) -> str:
    """The manifest of one of KEYS."""
    email, role, slices = PEOPLE[name]
    spec: dict[str, Any] = {"sha256": digest_of(KEYS[name]), "email": email, "role": role}
    if slices:
        spec["slices"] = list(slices)
    if name.endswith("-expired"):
        spec["notAfter"] = (START - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    if name.endswith("-revoked"):
        spec["revoked"] = True
    return dump({**HEAD, "kind": "ApiKey", "metadata": {"name": name}, "spec": spec})


def template(name: str, **spec: object) -> str:
    """A GPRTemplate of one H100 node for an hour."""
    base = {"gpuShape": "H100-80GB", "nodes": 1, "duration": "1h"} | spec
    return dump({**HEAD, "kind": "GPRTemplate", "metadata": {"name": name}, "spec": base})


def fleet() -> dict[str, str]:
    """The files of main to begin with."""
    people = {"owners": [{"email": "olga@example.com"}], "quota": {"gpus": 64}}
    return {
        "project.yaml": project(),
        "clusters/east.yaml": cluster("east", nodes=4, pricePerGpuHour=2.5),
        "clusters/west.yaml": cluster("west", nodes=2),
        "slices/vision/slice.yaml": slice_("vision", ("east", "west"), **people),
        "slices/nlp/slice.yaml": slice_("nlp", members=[{"email": "cy@example.com"}]),
        "templates/small.yaml": template("small"),
        **{f"keys/{name}.yaml": api_key(name) for name in PEOPLE},
    }


class Site:
    """One repository, one controller, one portal. Files are changed with `commit`, as people with Git do."""

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str | None] | None = None,
        portal: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        """`portal`: settings of each replica; the others are the controller's. `clock`: one that runs by itself."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.clock: Any = clock or ManualClock(START)
        self.silent_s = 0.0
        self.monotonic = monotonic_s if clock else lambda: self.silent_s
        secret = folder / "sessions"
        secret.write_text("0123456789abcdef" * 2)
        self.portal_settings = {"rates": GENEROUS, "session_secret": secret} | dict(portal or {})
        start = {**fleet(), **(files or {})}
        self.repo = repos.bare(
            folder / "repo.git", {p: text for p, text in start.items() if text is not None}
        )
        self.portal_poll: timedelta = settings.get("poll", timedelta(seconds=5))
        given: dict[str, Any] = {"pushes_per_minute": None, "poll": timedelta(minutes=10)} | settings
        self.settings = Settings(repo=str(self.repo), state=folder / "controller", **given)
        self.controller = controller(self.settings, adopt=True)
        self.running = SimulatedFleet(folder / "controller" / "clusters", lambda: self.view.wanted.manifests)
        self.replicas: list[Replica] = []
        self.portal = self.replica()

    @property
    def now(self) -> datetime:
        """The simulated instant."""
        return self.clock.now()

    @property
    def view(self) -> View:
        """What the portal has read."""
        return self.portal.reader.view()

    def replica(self) -> Replica:
        """Another process of the portal on the same repository."""
        made = Replica(self, f"portal-{len(self.replicas)}")
        self.replicas.append(made)
        return made

    def commit(self, files: Mapping[str, str | None], who: str = "Ada <ada@example.com>") -> str:
        """Somebody pushes files (None deletes) to main; the portal has read it then."""
        oid = repos.commit(self.repo, files, author=who)
        self.refresh()
        return oid

    def file(self, key: str, **spec: Any) -> None:
        """Somebody files or edits a request by Git."""
        slice_name, _, name = key.partition("/")
        self.commit({gpr_path(key): gpr(slice_name, name, **spec)}, "Bo <bo@example.com>")

    def settle(self) -> Cycle:
        """The controller does all that there is to do now; the portal has read it then."""
        for _ in range(50):
            cycle = self.controller.cycle(self.now)
            if cycle.wake > self.now:
                break
        else:
            raise AssertionError("no rest after 50 cycles")
        self.refresh()
        return cycle

    def pass_time(self, minutes: float) -> Cycle:
        """So much time passes, and the controller does what comes in it when it comes."""
        until = self.now + timedelta(minutes=minutes)
        cycle = self.settle()
        while cycle.wake <= until:
            self.clock.set(cycle.wake)
            cycle = self.settle()
        self.clock.set(until)
        return self.settle()

    def refresh(self) -> None:
        """Every replica asks the remote."""
        for each in self.replicas:
            each.reader.refresh()

    def main(self, path: str) -> str | None:
        """A file of main as it is at the remote."""
        return repos.file(self.repo, f"main:{path}")

    def log(self, branch: str = "main") -> list[str]:
        """`author|committer|subject` of the branch's commits, newest first."""
        return repos.git(self.repo, "log", "--format=%an <%ae>|%cn <%ce>|%s", branch).splitlines()

    def client(self, key: str | None = "ada-owner") -> TestClient:
        """Asks as the owner of that API key; None: as nobody."""
        return self.portal.client(key)

    def server(self, port: int = 0) -> contextlib.AbstractContextManager[str]:
        """A real server on loopback; gives its URL."""
        return serving(self.portal.app, port)

    def close(self) -> None:
        """End every process."""
        for each in self.replicas:
            each.close()


class Replica:
    """One portal process."""

    def __init__(self, site: Site, name: str) -> None:
        state = site.folder / name
        state.mkdir()
        base = replace(site.settings, state=state, poll=site.portal_poll)
        self.settings = PortalSettings(base, **site.portal_settings)
        made = portal(self.settings, site.clock, site.monotonic, site.running.sources)
        self.store, self.reader, self.writer = made.store, made.reader, made.writer
        self.parts, self.app = made.parts, made.app
        self.reader.refresh()
        self.writer.start()

    def client(self, key: str | None = "ada-owner") -> TestClient:
        """Asks as the owner of that API key; None: as nobody."""
        headers = {} if key is None else {"Authorization": f"Bearer {KEYS[key]}"}
        return TestClient(self.app, headers=headers)

    def caller(self, key: str = "ada-owner") -> Caller:
        """The caller that the API key of that name shows."""
        return caller_by_key(self.reader.view(), digest_of(KEYS[key]), self.reader.fetched)

    def close(self) -> None:
        """End it."""
        self.writer.stop()
        self.reader.stop()
        self.store.close()


@contextlib.contextmanager
def serving(app: FastAPI, port: int = 0) -> Iterator[str]:
    """uvicorn on loopback, in a thread; port 0: a free one."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        # Streams of clients that a test leaves open end with the server.
        config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            while not server.started and thread.is_alive():
                thread.join(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
