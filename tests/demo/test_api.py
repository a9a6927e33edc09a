"""`egs demo --port`: the HTTP API over the demo's repository (A7)."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.api import served
from demo.story import LIVE
from demo.system import System
from reconciler.clock import ManualClock
from reconciler.settings import Settings
from schemas.errors import UserError
from tests.support.kube import eventually
from tests.support.world import START


@pytest.fixture
def system(tmp_path: Path) -> System:
    """The example, not yet taken over by a controller."""
    settings = Settings(repo=str(tmp_path / "fleet.git"), state=tmp_path, poll=timedelta(minutes=1))
    found = System(tmp_path, settings)
    found.create(START)
    return found


def test_the_key_that_it_prints_opens_the_api(system: System) -> None:
    with served(system, ManualClock(START), 0) as door:
        opens = {"Authorization": f"Bearer {door.key}"}
        asked = lambda: httpx.get(f"{door.url}/api/v1/slice-workspace/list", headers=opens, timeout=60)  # noqa: E731
        eventually(lambda: asked().status_code == 200, "the API reads the repository")
        names = {each["name"] for each in asked().json()["data"]["workspaces"]}
        assert {"vision", "nlp", "robotics"} <= names
        assert httpx.get(f"{door.url}/api/v1/alerts", headers=opens, timeout=60).status_code == 200
        assert httpx.get(f"{door.url}/api/v1/slice-workspace/list", timeout=60).status_code == 401
        assert door.key not in repr(door)


def test_it_is_ready_however_fast_the_clock_of_the_demo_runs(system: System) -> None:
    clock = ManualClock(START)
    with served(system, clock, 0) as door:
        ready = lambda: httpx.get(f"{door.url}/readyz", timeout=60).status_code == 200  # noqa: E731
        eventually(ready, "the API reads the repository")
        for hours in range(1, 20):
            clock.set(START + timedelta(hours=hours))
            assert ready()
        opens = {"Authorization": f"Bearer {door.key}"}
        assert int(httpx.get(f"{door.url}/api/v1/auth", headers=opens, timeout=60).headers["Age"]) < 60


def test_it_shows_gpus_at_work_with_their_past(system: System) -> None:
    """H5: an hour of a workload in a demo that began a moment ago."""
    clock, controller, todo = ManualClock(START), system.start_controller(), list(LIVE)
    while clock.now() < START + timedelta(minutes=90):
        cycle = controller.cycle(clock.now())
        while todo and clock.now() > START:
            todo.pop(0)(system, clock.now())
        clock.set(max(cycle.wake, clock.now() + timedelta(seconds=1)))
    with served(system, clock, 0) as door:
        opens = {"Authorization": f"Bearer {door.key}"}

        def asked(path: str, **parameters: object) -> Any:
            answer = httpx.get(
                f"{door.url}/api/v1/{path}", params=parameters, headers=opens, timeout=30
            ).json()
            return answer["data"]

        eventually(lambda: (asked("metrics/gpus") or {}).get("items"), "GPUs are shown")
        rows = asked("metrics/gpus", limit=500)["items"]
        busy = next(row for row in rows if row["pods"] == ["vision-train/detector"])
        past = asked("metrics/range", gpu=busy["uuid"], metrics="power_w", since="1h")["series"]
    system.close()
    assert len({row["uuid"] for row in rows}) == len(rows) == 8 * 8 + 4 * 4 + 6 * 8 - 1, (
        "one fell off the bus"
    )
    assert busy["utilisationPercent"] > 5
    assert len(past) == 1
    assert len(past[0]["points"]) > 200
    assert all(watt > 60 for _, watt in past[0]["points"])


def test_a_port_that_is_taken_is_one_sentence(system: System) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--port {port}: "), served(system, ManualClock(START), port):
            pass
