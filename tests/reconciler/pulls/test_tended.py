"""A running controller with a forge: its pull requests are told, and its loop does not wait for the forge."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from reconciler.clock import SystemClock
from reconciler.processes.metrics import Metrics
from reconciler.processes.repositories import Tending
from reconciler.settings import ForgeAddress, Settings
from tests.support import forge as fake
from tests.support import repos
from tests.support.world import cluster, gpr, gpr_path, project, slice_

FILES = {"project.yaml": project(), "clusters/east.yaml": cluster(), "slices/a/slice.yaml": slice_("a")}
PATIENCE_S = 60.0


def _there(tmp_path: Path) -> fake.Forge:
    there = fake.Forge(repos.bare(tmp_path / "fleet.git", FILES))
    there.push("ask", {gpr_path("a/llama"): gpr("a", "llama")}, "bo")
    there.open("ask", "bo")
    return there


def test_a_controller_with_a_forge_tells_open_pull_requests(tmp_path: Path) -> None:
    there = _there(tmp_path)
    there.wrote = threading.Event()
    with fake.served(there, tmp_path) as address:
        settings = Settings(str(there.repo), tmp_path / "state", forge=address, pushes_per_minute=None)
        tending = Tending({"fleet": settings}, SystemClock(), Metrics(SystemClock()))
        tending.start()
        try:
            assert there.wrote.wait(PATIENCE_S)
        finally:
            tending.stop()
    assert there.comments_of(1)


def test_a_forge_that_does_not_answer_holds_no_loop_up(tmp_path: Path) -> None:
    there = _there(tmp_path)
    token = tmp_path / "token"
    token.write_text("x")
    cycled = threading.Event()
    gone = ForgeAddress("github", "http://127.0.0.1:9", "acme/fleet", token)
    settings = Settings(str(there.repo), tmp_path / "state", forge=gone, pushes_per_minute=None)

    class Heard(Metrics):
        def attempted(self, name: str, attempt: object) -> None:
            cycled.set()

    tending = Tending({"fleet": settings}, SystemClock(), Heard(SystemClock()))
    tending.start()
    try:
        assert cycled.wait(PATIENCE_S)
    finally:
        tending.stop()


def test_nobody_posts_without_a_token_or_without_a_forge(tmp_path: Path) -> None:
    plain = Settings("x", tmp_path)
    nameless = replace(plain, forge=ForgeAddress("github", "https://api.github.com", "acme/fleet"))
    tending = Tending({"a": plain, "b": nameless}, SystemClock(), Metrics(SystemClock()))
    assert tending._attending == {}
    assert set(tending.wakers()) == {"a", "b"}
