"""The page of one request: D8, D9, D15, B10. What it says in each state, and to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.pages.user.request_choices import choices_of
from portal.vendor.gpr_answers import found_in
from schemas.reading.units import format_instant
from tests.support.page_reader import HTML, page
from tests.support.portal import Site
from tests.support.world import cluster, gpr_path

STRANGE = "<script>alert(1)</script> \u05e9\u05dc\u05d5\u05dd"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision/next was promised a start that a request of nlp moved."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/done", duration="10m")
    made.pass_time(20)
    made.file("vision/train", nodes=2, duration="6h", displayName=STRANGE)
    made.settle()
    made.file("vision/next", nodes=4, duration="3h")
    made.pass_time(5)
    made.file("nlp/urgent", nodes=3, duration="2h", priority=250)
    made.settle()
    made.file("vision/fresh", nodes=1, duration="90m")
    yield made
    made.close()


def test_a_waiting_request_says_when_why_and_how_it_moved(site: Site) -> None:
    """Countdown, promise, every slip with its cause and its commit, what would start it earlier; no name of another."""
    found = page(site.client("bo-viewer"), "/requests/vision/next")
    status = site.view.facts.requests["vision/next"]
    assert status.estimated_start_time is not None
    assert f'data-until="{status.estimated_start_time:%Y-%m-%dT%H:%M:%SZ}"' in found.html
    assert "Promised start" in found.text
    assert "a more urgent request came (another workspace's request) · commit" in found.text
    assert f"<code>{site.view.status[:7]}</code>" in found.html
    assert "What would start it earlier" in found.text
    assert "nlp" not in found.html.replace("/nlp", "nlp")


def test_a_running_request_says_its_end_its_checks_and_its_cost(site: Site) -> None:
    found = page(site.client("bo-viewer"), "/requests/vision/train")
    assert "Provisioned ends" in found.text
    checks = [row for row in found.rows if row[0].startswith("Node health")]
    assert [row[1:3] for row in checks] == [["h100-1", "passed"], ["h100-2", "passed"]]
    assert "Log" in checks[0][3]
    assert "Kept so far" in found.text
    assert "h100-1, h100-2" in found.text
    assert "USD" in found.text


def test_a_running_request_says_when_it_was_warned_and_last_saved_its_work(tmp_path: Path) -> None:
    """J4: one line."""
    made = Site(tmp_path, {"clusters/east.yaml": cluster("east", nodes=4, warning="0d0h30m")})
    try:
        made.file("vision/train", duration="2h")
        made.pass_time(3)
        assert "checkpoint" not in page(made.client("bo-viewer"), "/requests/vision/train").text
        made.running.submit("east", "vision", "main", 8, made.now)
        made.running.cluster("east").save("vision", "main", made.now, made.now)
        made.settle()
        found = page(made.client("bo-viewer"), "/requests/vision/train")
        assert "Last checkpoint" in found.text
        made.pass_time(95)
        found = page(made.client("bo-viewer"), "/requests/vision/train")
        assert re.search(r"Warned at .*; last checkpoint ", found.text)
        shown = found_in(made.view, "vision/train").status
        answer = made.client("bo-viewer").get("/api/v1/gpr", params={"gprId": shown.uid if shown else ""})
        standing = answer.json()["data"]["status"]
        assert standing["warnedAt"] == format_instant(shown.warned.at) if shown and shown.warned else False
        assert standing["checkpointedAt"]
    finally:
        made.close()


def test_a_new_request_says_that_nobody_has_read_it_yet(site: Site) -> None:
    found = page(site.client("bo-owner"), "/requests/vision/fresh")
    assert "Its file is on main. The controller reads it in its next cycle" in found.text
    assert "No start was promised yet" in found.text


def test_a_request_that_is_over_can_only_be_filed_again(site: Site) -> None:
    found = page(site.client("bo-owner"), "/requests/vision/done")
    assert "Completed Over" in found.text
    assert found.links["File again"] == "/requests/new?from=vision%2Fdone"
    assert set(found.forms) == {"/logout"}


def test_names_are_text(site: Site) -> None:
    """Browser check 14: whatever a name says, it is shown, and runs nothing."""
    for path in ("/requests", "/requests/vision/train"):
        found = page(site.client("bo-owner"), path)
        assert "<script>alert" not in found.html
        assert STRANGE in found.text


def test_the_page_of_another_workspace_does_not_exist(site: Site) -> None:
    """B10: the same answer as for a name that there never was."""
    for path in ("/requests/nlp/urgent", "/requests/nlp/never-was"):
        answer = site.client("bo-owner").get(path, headers=HTML)
        assert answer.status_code == 404
    assert page(site.client("ada-owner"), "/requests/nlp/urgent").status == 200


def test_who_may_only_look_gets_no_form(site: Site) -> None:
    for name in ("next", "train", "fresh"):
        assert set(page(site.client("bo-viewer"), f"/requests/vision/{name}").forms) == {"/logout"}


def test_which_commit_set_it_is_told(site: Site) -> None:
    found = page(site.client("bo-owner"), "/requests/vision/next")
    oid = site.portal.store.last_change(site.view.main, gpr_path("vision/next"))
    assert oid is not None
    assert f"<code>{oid[:7]}</code>" in found.html


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("next", {"again", "edit", "cancel"}, id="a waiting one"),
        pytest.param("fresh", {"again", "edit", "cancel"}, id="a new one"),
        pytest.param("train", {"again", "edit", "extend", "release", "stop"}, id="a running one"),
        pytest.param("done", {"again"}, id="one that is over"),
    ],
)
def test_what_can_be_done_depends_on_the_state(site: Site, name: str, want: set[str]) -> None:
    """D16: as the API would decide."""
    found = found_in(site.view, f"vision/{name}")
    assert found is not None
    assert choices_of(site.view, site.portal.caller("bo-owner"), found) == want
    assert choices_of(site.view, site.portal.caller("bo-viewer"), found) == frozenset()
