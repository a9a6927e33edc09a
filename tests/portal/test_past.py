"""Time travel over the status branch: the state of then, the rights of now; what is gone is said to be gone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from schemas.reading.units import format_instant
from tests.support.portal import Site
from tests.support.world import slice_

PEOPLE = {"owners": [{"email": "olga@example.com"}], "quota": {"gpus": 64}}
PATHS = (
    "gpr/list", "queue", "plan", "tables/gprs", "tables/slices", "tables/clusters", "tables/nodes",
    "tables/capacity?hours=3", "tables/gpr?name=vision/runs", "gpr?gprId=vision/runs", "tables/slice?name=vision",
    "tables/cluster?name=east", "tables/node?name=east/h100-1",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One runs and one of another workspace waits; six hours later both are over, and another runs."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/runs", nodes=4, duration="2h", clusters=["east"])
    made.settle()
    made.file("nlp/waits", nodes=4, duration="1h")
    made.pass_time(20)
    yield made
    made.close()


@pytest.fixture(scope="module")
def then(site: Site) -> dict[str, Any]:
    """All answers of that time for an admin, the commit that they name, and when; afterwards it is six hours later."""
    client = site.client()
    found = {path: client.get(f"/api/v1/{path}") for path in PATHS}
    assert {answer.status_code for answer in found.values()} == {200}
    told = {"at": site.now, "commit": found["queue"].headers["EGS-Status-Commit"]}
    told |= {path: answer.json()["data"] for path, answer in found.items()}
    site.pass_time(350)
    site.file("nlp/later", nodes=1, duration="12h")
    site.pass_time(10)
    return told


def ask(site: Site, path: str, at: str, who: str | None = "ada-owner") -> Any:
    return site.client(who).get(f"/api/v1/{path}{'&' if '?' in path else '?'}at={at}")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", ["commit", "instant", "ago"])
def test_the_state_of_then_is_as_it_was_then(site: Site, then: dict[str, Any], path: str, how: str) -> None:
    """A permalink opens the same state."""
    ago = int((site.now - then["at"]).total_seconds())
    at = {"commit": then["commit"], "instant": format_instant(then["at"]), "ago": f"{ago // 60}m"}[how]
    answer = ask(site, path, at)
    assert answer.status_code == 200, answer.text
    assert answer.headers["EGS-Status-Commit"] == then["commit"]
    if how == "commit" and path not in ("tables/clusters", "tables/nodes", "tables/capacity?hours=3"):
        return  # shown as of its commit, a little earlier than we asked: waits and costs differ
    assert without_clock(answer.json()["data"]) == without_clock(then[path])


def without_clock(data: Any) -> Any:
    """Without the time at which a plan was asked."""
    return {name: value for name, value in data.items() if name != "now"}


def test_now_is_another_state(site: Site, then: dict[str, Any]) -> None:
    answer = site.client().get("/api/v1/queue")
    assert answer.headers["EGS-Status-Commit"] != then["commit"]
    assert answer.json()["data"] != then["queue"]
    assert ask(site, "queue", site.view.status).json()["data"] == answer.json()["data"]


def test_a_state_that_is_gone_is_410_with_a_sentence(site: Site, then: dict[str, Any]) -> None:
    """24: it says that it is gone, never shows another state."""
    for at in ("f" * 40, "2020-01-01T00:00:00Z", "4000d", "abcdef1"):
        answer = ask(site, "queue", at)
        assert (answer.status_code, answer.json()["error"]["errorKey"]) == (410, "StateGone"), answer.text
        assert "kept" in answer.json()["message"]
    assert "2026-" in ask(site, "queue", "2020-01-01T00:00:00Z").json()["message"]


def test_the_future_is_not_a_state(site: Site, then: dict[str, Any]) -> None:
    answer = ask(site, "queue", format_instant(site.now + timedelta(hours=1)))
    assert (answer.status_code, answer.json()["error"]["errorKey"]) == (422, "BadParameters")


@pytest.mark.parametrize("at", ["yesterday", "2026-13-01T00:00:00Z", "HEAD~3", "abc"])
def test_what_names_no_state_is_refused_with_what_would(site: Site, then: dict[str, Any], at: str) -> None:
    answer = ask(site, "queue", at)
    assert (answer.status_code, answer.json()["error"]["errorKey"]) == (422, "BadParameters")
    assert "like 2h" in answer.json()["message"]


def test_a_stranger_reads_no_past_state(site: Site, then: dict[str, Any]) -> None:
    assert ask(site, "queue", then["commit"], None).status_code == 401


def test_members_see_their_own_in_the_past_too(site: Site, then: dict[str, Any]) -> None:
    rows = ask(site, "tables/gprs", then["commit"], "bo-viewer").json()["data"]["items"]
    assert {row["slice"] for row in rows} == {"vision"}
    nodes = ask(site, "tables/nodes", then["commit"], "cy-editor").json()["data"]["items"]
    assert "vision/runs" not in str(nodes)
    assert ask(site, "gpr?gprId=vision/runs", then["commit"], "cy-editor").status_code == 404


def test_the_rights_are_those_of_now_and_not_of_then(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Trap 10: whoever has left a workspace sees nothing of it, not even of when they were in it."""
    site = Site(tmp_path_factory.mktemp("site"))
    site.file("vision/runs", nodes=1, duration="2h")
    site.pass_time(20)
    commit = site.view.status
    assert ask(site, "tables/gprs", commit, "bo-editor").json()["data"]["items"]
    west = ask(site, "tables/nodes", commit, "bo-editor").json()["data"]["items"]
    assert {row["cluster"] for row in west} == {"east", "west"}
    site.commit({"slices/vision/slice.yaml": slice_("vision", ("east",), **PEOPLE)})
    site.pass_time(5)
    east = ask(site, "tables/nodes", commit, "bo-editor").json()["data"]["items"]
    assert {row["cluster"] for row in east} == {"east"}
    shapes = ask(site, "tables/capacity?hours=1", commit, "bo-editor").json()["data"]["items"]
    assert sum(row["nodes"] for row in shapes) == 4
    gone = {"members": [{"email": "cy@example.com"}], **PEOPLE}
    site.commit({"slices/vision/slice.yaml": slice_("vision", ("east",), **gone)})
    site.pass_time(5)
    assert ask(site, "tables/gprs", commit, "bo-editor").json()["data"]["items"] == []
    assert ask(site, "gpr?gprId=vision/runs", commit, "bo-editor").status_code == 404
    site.close()


def test_states_are_found_after_the_history_was_left_behind(tmp_path_factory: pytest.TempPathFactory) -> None:
    site = Site(tmp_path_factory.mktemp("site"))
    site.file("vision/runs", nodes=1, duration="2h")
    site.pass_time(50)
    at, before = site.now, site.client().get("/api/v1/tables/gprs").json()["data"]
    for day in range(3):
        site.pass_time(24 * 60)
        site.file(f"vision/day{day}", nodes=1, duration="1h")
        site.settle()
    fresh = site.replica()  # its mirror never had that history
    fresh.reader.refresh()
    answer = fresh.client().get(f"/api/v1/tables/gprs?at={format_instant(at)}")
    assert answer.status_code == 200, answer.text
    assert without_clock(answer.json()["data"]) == before
    named = answer.headers["EGS-Status-Commit"]
    assert fresh.client().get(f"/api/v1/tables/gprs?at={named}").json()["data"]["items"][0]["name"] == "runs"
    site.close()


def test_before_the_first_decision_there_is_nothing_to_show(tmp_path_factory: pytest.TempPathFactory) -> None:
    site = Site(tmp_path_factory.mktemp("site"))
    site.settle()
    first = site.portal.store.log(site.view.status, 99)[-1].oid
    answer = ask(site, "queue", first)
    assert (answer.status_code, answer.json()["error"]["errorKey"]) == (410, "StateGone")
    assert "nothing was decided yet" in answer.json()["message"]
    site.close()


def test_a_past_state_costs_as_much_as_a_plan(tmp_path_factory: pytest.TempPathFactory) -> None:
    from portal.http.rate_limits import Rate, Rates

    site = Site(tmp_path_factory.mktemp("site"), portal={"rates": Rates(reads=Rate(0.001, 25))})
    site.settle()
    client, at = site.client(), site.view.status
    got = [client.get(f"/api/v1/queue?at={at}").status_code for _ in range(3)]
    assert got == [200, 200, 429]
    site.close()
