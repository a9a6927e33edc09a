"""The form for an extension (D18): how long one could be, until whose start, and what to do for more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.deciding.extension import room_for
from schemas.reading.units import format_instant
from tests.support.page_reader import page, send
from tests.support.portal import Site
from tests.support.world import START, cluster, project

RUN = "/requests/vision/run"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """One node: it runs for an hour, and 40 minutes later another workspace's request is promised it."""
    files = {"clusters/east.yaml": cluster("east", nodes=1), "project.yaml": project(maxExtension="2h")}
    made = Site(tmp_path, files)
    made.file("vision/run", nodes=1, duration="1h", clusters=["east"])
    made.settle()
    made.pass_time(5)
    later = format_instant(START + timedelta(minutes=105))
    made.file("nlp/then", nodes=1, duration="1h", clusters=["east"], notBefore=later)
    made.pass_time(1)
    yield made
    made.close()


def most(site: Site) -> timedelta:
    view = site.view
    room = room_for("vision/run", view.facts, view.wanted, view.state.snapshot)
    assert room is not None
    assert room.before == "nlp/then"
    return room.most


def minutes(length: timedelta) -> str:
    return f"{int(length.total_seconds()) // 60}m"


def test_the_page_names_the_longest_extension_and_it_is_granted(site: Site) -> None:
    longest = most(site)
    assert timedelta(minutes=20) < longest < timedelta(minutes=45)
    client = site.client("bo-owner")
    found = page(client, RUN)
    assert f"It can have an extension of {minutes(longest)} in all, until" in found.text
    assert "another workspace's request starts then, and would have to move for more" in found.text
    assert "more needs an admin (ada@example.com)" in found.text
    assert found.forms[f"{RUN}/extend"]["extend"] == minutes(longest)
    answer = send(client, found, f"{RUN}/extend")
    site.pass_time(1)
    assert site.view.facts.requests["vision/run"].extended_by == longest
    told = page(client, answer.headers["Location"])
    assert "The extension is asked for; the controller grants it if it delays no promise." in told.text
    assert "The change is on main, commit" in told.text
    assert "No longer extension is possible" in told.text


def test_one_more_minute_is_refused_and_the_next_step_is_said(site: Site) -> None:
    longest = most(site)
    client = site.client("bo-owner")
    send(client, page(client, RUN), f"{RUN}/extend", extend=minutes(longest + timedelta(minutes=1)))
    site.pass_time(1)
    found = page(client, RUN)
    assert "Extension refused since" in found.text
    assert f"It can have an extension of {minutes(longest)} in all" in found.text
    assert found.links[f"Extend by {minutes(longest)} instead"] == "#extend"
    assert "nlp" not in found.text


def test_the_projects_limit_leads_to_an_admin(site: Site) -> None:
    site.file("nlp/then", nodes=1, duration="1h", clusters=["east"], notBefore="2026-11-23T08:00:00Z")
    site.pass_time(1)
    client = site.client("bo-owner")
    send(client, page(client, RUN), f"{RUN}/extend", extend="3h")
    site.pass_time(1)
    found = page(client, RUN)
    assert "3h of extension exceeds the project's 2h" in found.text
    assert "It can have an extension of 2h in all, until" in found.text
    assert "the project's limit. For more, ask an admin." in found.text


def test_why_says_it_too_once_one_was_refused(site: Site) -> None:
    """`egs why` and `gpr/why` have the same sentence."""
    client = site.client("bo-owner")
    key = {"gprId": "vision/run"}
    assert "extension" not in str(client.get("/api/v1/gpr/why", params=key).json()["data"]["reasons"])
    send(client, page(client, RUN), f"{RUN}/extend", extend="2h")
    site.pass_time(1)
    told = client.get("/api/v1/gpr/why", params=key).json()["data"]["reasons"]
    assert any(one.startswith("It can have an extension of ") for one in told)
