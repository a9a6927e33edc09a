"""The calendar for one caller: windows, filters, what is hidden, and what changes with a commit (G3, A1, G4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from portal.live.calendar_deltas import delta
from portal.live.calendar_rows import calendar
from reconciler.model.facts import Reachability
from reconciler.queries.calendars.calendar_rows import Wanted, Window
from schemas.reading.units import format_instant, seconds
from schemas.status.insights import Forecast
from schemas.status.node_status import NodeRecord, NodeState
from tests.support.portal import Site
from tests.support.world import START, cluster, gpr_path

ALL = Window(seconds(START) - 86_400, seconds(START) + 30 * 86_400)
LATER = format_instant(START + timedelta(days=2))
HIDDEN = ("nlp", "tune", "secret")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """East has four nodes, of which one is in maintenance for a while; vision and nlp hold and wait."""
    window = {"begin": LATER, "end": format_instant(START + timedelta(days=3)), "nodes": ["h100-4"]}
    made = Site(
        tmp_path_factory.mktemp("site"),
        {"clusters/east.yaml": cluster("east", nodes=12, maintenance=[window])},
    )
    made.file("vision/train", nodes=8, duration="6h")
    made.file("nlp/tune", nodes=4, duration="2h")
    made.settle()
    made.file("vision/next", nodes=8, duration="3h", clusters=["east"])
    made.file("nlp/secret", nodes=8, duration="1h", clusters=["east"])
    made.settle()
    yield made
    made.close()


def rows(site: Site, who: str = "bo-viewer", window: Window = ALL, **wanted: Any) -> dict[str, Any]:
    found = calendar(site.view, site.portal.caller(who), Wanted(**wanted), window)
    told: dict[str, Any] = found.model_dump(by_alias=True, exclude_none=True)
    return told


def test_a_member_finds_no_name_of_another_workspace(site: Site) -> None:
    """A1: nor a number that tells one of its requests from another; that the node is taken is no secret."""
    told = rows(site, cluster="east")
    assert not [name for name in HIDDEN if name in json.dumps(told)]
    taken = [bar for row in told["rows"] for bar in row["bars"] if bar["kind"] == "lease"]
    assert {bar.get("request", "") for bar in taken} == {"", "vision/train"}
    assert set(told["requests"]) == {"vision/train", "vision/next"}
    assert {bar.get("request", "") for row in rows(site, "ada-owner")["rows"] for bar in row["bars"]} >= {
        "nlp/tune",
        "nlp/secret",
    }


def test_who_waits_for_what_is_said_without_hidden_names(site: Site) -> None:
    def waits(who: str) -> list[str]:
        found = rows(site, who)["requests"]["vision/next"]["waitsFor"]
        return [one.get("request", "another") for one in found]

    assert (waits("bo-viewer"), waits("ada-owner")) == (["another"], ["nlp/secret"])
    assert rows(site)["requests"]["vision/next"]["phase"] == "Queued"


def test_rows_stand_by_cluster_pool_and_number(site: Site) -> None:
    told = rows(site)
    assert [(row["cluster"], row["node"]) for row in told["rows"]][8:] == [
        ("east", "h100-9"), ("east", "h100-10"), ("east", "h100-11"), ("east", "h100-12"),
        ("west", "h100-1"), ("west", "h100-2"),
    ]  # fmt: skip
    assert [(p["cluster"], p["first"], p["rows"], p["free"]) for p in told["pools"]] == [
        ("east", 0, 12, 0), ("west", 12, 2, 2),
    ]  # fmt: skip


def test_a_window_has_its_rows_and_its_bars_only(site: Site) -> None:
    """The whole is what its windows are together."""
    whole = rows(site, "ada-owner")
    parts = [rows(site, "ada-owner", Window(ALL.begin, ALL.end, first, 5)) for first in (0, 5, 10)]
    assert [row for part in parts for row in part["rows"]] == whole["rows"]
    assert {part["total"] for part in parts} == {14}
    first_hour = Window(seconds(START), seconds(START) + 3600)
    kinds = {bar["kind"] for row in rows(site, window=first_hour)["rows"] for bar in row["bars"]}
    assert kinds == {"lease"}


@pytest.mark.parametrize(("wanted", "want"), [
    pytest.param({"cluster": "west"}, 2, id="of a cluster"),
    pytest.param({"pool": "h100"}, 14, id="of pools of a name"),
    pytest.param({"shape": "H100-80GB"}, 14, id="of a shape"),
    pytest.param({"shape": "A100"}, 0, id="of a shape that there is not"),
    pytest.param({"is_free": True}, 2, id="free now"),
    pytest.param({"slice": "vision"}, 12, id="with a bar of a workspace"),
])  # fmt: skip
def test_filters(site: Site, wanted: dict[str, Any], want: int) -> None:
    assert rows(site, **wanted)["total"] == want


def test_maintenance_is_shown_to_everybody(site: Site) -> None:
    (row,) = [row for row in rows(site)["rows"] if row["node"] == "h100-4"]
    assert "maintenance" in {bar["kind"] for bar in row["bars"]}


def test_a_cluster_that_does_not_answer_is_told_and_a_sick_node_is_out(site: Site) -> None:
    """G4: what is shown of it may be old."""
    silent = {"west": Reachability(False, START)}
    sick = NodeRecord.model_validate(
        {
            "metadata": {"name": "h100-1"}, "cluster": "west", "pool": "h100", "state": NodeState.UNHEALTHY,
            "message": "GPU 3 is hot while nlp/secret runs", "since": START,
        }
    )  # fmt: skip
    facts = replace(site.view.facts, clusters=silent, nodes={("west", "h100-1"): sick})
    view = replace(site.view, facts=facts, _of_plan={}, _worked_out={})
    told = calendar(view, site.portal.caller("bo-viewer"), Wanted(cluster="west"), ALL)
    assert [(pool.reachable, pool.free, pool.idle) for pool in told.pools] == [(False, 1, False)]
    row = told.rows[0]
    assert (row.state, [bar.kind for bar in row.bars]) == ("Unhealthy", ["out"])
    assert row.message == "GPU 3 is hot while another workspace's request runs"


def test_expected_starts_are_told_of_ones_own(site: Site) -> None:
    """From the instant that one start in ten is before to the one that nine in ten are before."""
    p10, p50, p90 = (START + timedelta(hours=hours) for hours in (5, 6, 9))
    known = {
        key: status.edited(forecast=Forecast(p10=p10, p50=p50, p90=p90, learnt_from=50))
        for key, status in site.view.facts.requests.items()
    }
    view = replace(site.view, facts=replace(site.view.facts, requests=known), _of_plan={}, _worked_out={})
    told = calendar(view, site.portal.caller("bo-viewer"), Wanted(), ALL)
    assert told.requests["vision/next"].likely == (seconds(p10), seconds(p90))
    assert set(told.requests) == {"vision/train", "vision/next"}


def test_the_api_gives_the_same(site: Site) -> None:
    with site.client("bo-viewer") as client:
        got = client.get("/api/v1/calendar", params={"from": "2020-01-01T00:00:00Z", "hours": 1, "rows": 3})
        assert got.json()["data"]["rows"][0]["bars"] == []
        assert (len(got.json()["data"]["rows"]), got.json()["data"]["total"]) == (3, 14)
        begin = format_instant(START - timedelta(days=1))
        told = client.get("/api/v1/calendar", params={"from": begin, "hours": 31 * 24, "rows": 200}).json()
        assert told["data"] == rows(site)
        wrong = client.get("/api/v1/calendar", params={"from": "soon"})
        assert (wrong.status_code, wrong.json()["error"]["errorKey"]) == (422, "BadParameters")


def test_before_with_the_changed_rows_is_after(tmp_path: Path) -> None:
    """For a member and for an admin, through filing, starting, ending and cancelling; a delta is told of no others."""
    site = Site(tmp_path)
    site.settle()
    steps: list[Callable[[], object]] = [
        lambda: site.file("vision/train", nodes=2, duration="1h"),
        site.settle,
        lambda: site.file("nlp/secret", nodes=2, duration="2h"),
        lambda: site.file("vision/next", nodes=4, duration="3h", clusters=["east"]),
        site.settle,
        lambda: site.commit({gpr_path("vision/next"): None}),
        site.settle,
        lambda: site.pass_time(90),
    ]
    before = site.view
    for step in steps:
        step()
        for who in ("bo-viewer", "ada-owner"):
            caller = site.portal.caller(who)
            told = delta(before, site.view, caller).model_dump(by_alias=True, exclude_none=True)
            was, now = (calendar(view, caller, Wanted(), ALL) for view in (before, site.view))
            shown = {(row.cluster, row.node): row.bars for row in was.rows}
            changed = {(row["cluster"], row["node"]) for row in told["rows"]}
            for row in now.rows:
                if told["all"] or (row.cluster, row.node) in changed:
                    shown[row.cluster, row.node] = row.bars
            assert shown == {(row.cluster, row.node): row.bars for row in now.rows}
            assert who == "ada-owner" or "secret" not in json.dumps(told)
        before = site.view
    site.close()
