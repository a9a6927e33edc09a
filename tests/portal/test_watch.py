"""Requests followed as they change: D14, A5."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from portal.views.gpr_stream import Watch
from tests.support.portal import KEYS, Site
from tests.support.world import gpr_path


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, poll=timedelta(minutes=10))
    made.settle()
    yield made
    made.close()


def told(watch: Watch, site: Site, who: str = "bo-viewer") -> dict[str, Any]:
    """What a stream would say of the present view."""
    return {one.key: json.loads(one.text) for one in watch.tell(site.view, site.portal.caller(who), site.now)}


def test_time_alone_is_no_news(site: Site) -> None:
    """D14: what it costs by now comes with the next thing that changes."""
    watch = Watch(keys=frozenset({"vision/train"}))
    assert told(watch, site) == {}
    site.file("vision/train", duration="6m")
    assert told(watch, site)["vision/train"]["reason"] == "NotSeenYet"
    site.pass_time(3)
    runs = watch.tell(site.view, site.portal.caller("bo-viewer"), site.now)
    site.file("nlp/other", duration="1h")
    site.settle()
    assert watch.tell(site.view, site.portal.caller("bo-viewer"), site.now) == runs
    site.pass_time(12)
    assert told(watch, site)["vision/train"]["phase"] == "Completed"


def test_a_workspace_is_followed_to_the_end_of_each(site: Site) -> None:
    """A5: who lives, who is only filed, and who ends meanwhile; nobody of another workspace."""
    site.file("nlp/theirs")
    site.file("vision/train", duration="2m")
    watch = Watch(slice="vision")
    assert set(told(watch, site)) == {"vision/train"}
    site.pass_time(10)
    assert told(watch, site)["vision/train"]["phase"] == "Completed"
    assert set(told(Watch(slice="vision"), site)) == set()


def test_a_stream_tells_a_life(site: Site) -> None:
    """D14: over a real server, until it is over."""
    site.file("vision/train", duration="2m")
    site.settle()
    phases: list[str] = []
    seen = threading.Condition()

    def follow(url: str) -> None:
        headers = {"Authorization": f"Bearer {KEYS['bo-viewer']}"}
        path = f"{url}/api/v1/gpr/watch?gprId=vision/train"
        with httpx.stream("GET", path, headers=headers, timeout=30) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    with seen:
                        phases.append(json.loads(line[6:])["phase"])
                        seen.notify_all()
                    if phases[-1] == "Completed":
                        return

    with site.server() as url:
        follower = threading.Thread(target=follow, args=(url,), daemon=True)
        follower.start()
        for phase, minutes in (("Provisioning", 0), ("Provisioned", 3), ("Completed", 8)):
            site.pass_time(minutes)
            with seen:
                assert seen.wait_for(lambda wanted=phase: wanted in phases, 30), phases  # type: ignore[misc]
        follower.join(30)
    assert list(dict.fromkeys(phases)) in (
        ["Provisioning", "Provisioned", "Completed"],
        ["Provisioning", "Provisioned", "Releasing", "Completed"],
    )


def test_who_may_not_see_it_hears_nothing(site: Site) -> None:
    """B10."""
    site.file("nlp/theirs")
    client = site.client("bo-viewer")
    assert client.get("/api/v1/gpr/watch?gprId=nlp/theirs").status_code == 404
    assert client.get("/api/v1/watch?sliceName=nlp").status_code == 404
    assert site.client(None).get("/api/v1/watch?sliceName=nlp").status_code == 401


def test_one_that_is_cancelled_is_told_once_more(site: Site) -> None:
    """D14, A5: also one that the controller has not answered, or that came back under its name."""
    one, whole = Watch(keys=frozenset({"vision/waits"})), Watch(slice="vision")
    site.file("vision/waits", nodes=9)
    for settles in (True, False):
        if settles:
            site.settle()
        assert told(one, site)["vision/waits"]["phase"] == ("Queued" if settles else "Filed")
        assert set(told(whole, site)) == {"vision/waits"}
        site.commit({gpr_path("vision/waits"): None})
        if settles:
            site.settle()
        (last,) = one.tell(site.view, site.portal.caller("bo-viewer"), site.now)
        assert last.is_last
        for data in (json.loads(last.text), told(whole, site)["vision/waits"]):
            assert (data["phase"], data["status"]["provisioningStatus"]) == ("Cancelled", "Cancelled")
            assert (data["reason"], data["position"], data["estimatedStartTime"]) == ("FileGone", None, "")
        assert told(whole, site) == {}
        site.file("vision/waits", nodes=9)


def test_the_stream_of_one_ends_when_it_is_cancelled(site: Site) -> None:
    """D14: over a real server."""
    site.file("vision/waits", nodes=9)
    site.settle()
    headers = {"Authorization": f"Bearer {KEYS['bo-viewer']}"}
    phases: list[str] = []
    with (
        site.server() as url,
        httpx.stream(
            "GET", f"{url}/api/v1/gpr/watch?gprId=vision/waits", headers=headers, timeout=30
        ) as answer,
    ):
        for line in answer.iter_lines():
            assert line != "event: error"
            if line.startswith("data: "):
                phases.append(json.loads(line[6:])["phase"])
                if len(phases) == 1:
                    site.commit({gpr_path("vision/waits"): None})
                    site.settle()
    assert phases == [phases[0], "Cancelled"]
