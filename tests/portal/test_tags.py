"""Conditional reads of what the clock moves: 304 while nothing but time goes by, 200 after a real change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.portal import Site

PATHS = (
    "gpr?gprId=vision/waits",
    "gpr/list",
    "gpr/list?sliceName=vision&limit=1",
    "queue",
    "plan",
    "workloads",
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """One runs on all nodes of east, and one waits for it."""
    made = Site(tmp_path / "site", poll=timedelta(minutes=10))
    made.file("vision/runs", nodes=4, duration="6h", clusters=["east"])
    made.settle()
    made.pass_time(3)
    made.file("vision/waits", nodes=2, duration="1h", clusters=["east"])
    made.settle()
    yield made
    made.close()


def asked(client: TestClient, path: str) -> tuple[str, Any]:
    """Tag and data."""
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200
    return answer.headers["ETag"], answer.json()["data"]


@pytest.mark.parametrize("path", PATHS)
def test_time_alone_gives_304_and_a_change_gives_200(site: Site, path: str) -> None:
    with site.client("bo-editor") as client:
        tag, data = asked(client, path)
        assert tag.startswith('W/"')
        for minutes in (1, 10):
            site.clock.set(site.now + timedelta(minutes=minutes))
            again = client.get(f"/api/v1/{path}", headers={"If-None-Match": tag})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
        assert path.endswith("limit=1") or asked(client, path)[1] != data, "nothing of it ticks"
        released = client.put("/api/v1/gpr", json={"gprId": "vision/runs", "earlyRelease": True})
        assert released.status_code == 200
        site.settle()
        now, _ = asked(client, path)
        assert now != tag
        assert client.get(f"/api/v1/{path}", headers={"If-None-Match": tag}).status_code == 200


def test_what_a_model_calls_cost_counts(site: Site) -> None:
    """Only what the clock moves is left out, and never a name that somebody gave."""
    with site.client("bo-editor") as client:
        tag, _ = asked(client, PATHS[0])
        sent = {"gprId": "vision/waits", "model": {"name": "m", "parameters": {"cost": "low"}}}
        assert client.put("/api/v1/gpr", json=sent).status_code == 200
        site.settle()
        first, _ = asked(client, PATHS[0])
        sent["model"]["parameters"]["cost"] = "high"  # type: ignore[index]
        assert client.put("/api/v1/gpr", json=sent).status_code == 200
        site.settle()
        assert len({tag, first, asked(client, PATHS[0])[0]}) == 3
