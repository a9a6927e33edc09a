"""The application as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.portal import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def test_health(site: Site) -> None:
    site.file("vision/train")
    site.settle()
    with site.client(None) as client:
        assert client.get("/healthz").json()["ok"]
        assert client.get("/readyz").json()["reason"] == "Reading"
    assert site.view.facts.requests["vision/train"].phase == "Provisioning"
    site.pass_time(3)
    assert site.view.facts.requests["vision/train"].phase == "Provisioned"


def test_server(site: Site) -> None:
    with site.server() as url:
        assert httpx.get(f"{url}/readyz").status_code == 200
        assert httpx.get(f"{url}/docs").status_code == 200
        assert httpx.get(f"{url}/nothing").json()["error"]["errorKey"] == "NoSuchPath"
