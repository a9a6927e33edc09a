"""Which commit set this: of a document a person's, of a status the controller's with its cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.reconciler.cli.rig import egs
from tests.support import repos
from tests.support.portal import Site
from tests.support.world import gpr, gpr_path

RUNS = gpr_path("vision/runs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A request is filed, raised by a merged pull request, overtaken; days pass until its first status is kept only."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/first", nodes=4, duration="40h", clusters=["east"])
    made.settle()
    made.commit({RUNS: gpr("vision", "runs", nodes=4, clusters=["east"], priority=60)}, "Bo <bo@example.com>")
    made.settle()
    made.pass_time(70)
    tip = repos.tip(made.repo)
    repos.git(made.repo, "branch", "raise", tip)
    repos.commit(
        made.repo, {RUNS: gpr("vision", "runs", nodes=4, clusters=["east"], priority=80)},
        author="Bo Ek <bo@example.com>", message="Raise it", branch="raise",
    )  # fmt: skip
    made.commit({"templates/small.yaml": made.main("templates/small.yaml") + "\n"})
    ours, theirs = repos.tip(made.repo), repos.tip(made.repo, "raise")
    tree = repos.git(made.repo, "merge-tree", "--write-tree", ours, theirs)
    text = "Merge pull request #12 from bo/raise"
    merge = repos.git(made.repo, "commit-tree", tree, "-p", ours, "-p", theirs, "-m", text)
    repos.point(made.repo, "refs/heads/main", merge)
    made.refresh()
    made.settle()
    made.pass_time(60)
    made.file("nlp/secret", nodes=4, priority=250, duration="1h", clusters=["east"])
    made.settle()
    yield made
    made.close()


def ask(site: Site, query: str, who: str = "ada-owner", status: int = 200) -> Any:
    answer = site.client(who).get(f"/api/v1/blame?{query}")
    assert answer.status_code == status, answer.text
    return answer.json()["data"] if status == 200 else answer.json()["message"]


def test_a_field_names_the_person_and_the_pull_request(site: Site) -> None:
    (row,) = ask(site, "gprId=vision/runs&field=spec.priority&limit=1")["main"]
    assert (row["name"], row["email"], row["subject"]) == ("Bo Ek", "bo@example.com", "Raise it")
    assert (row["was"], row["now"], row["pullRequest"]) == (60, 80, "#12")
    assert row["commit"] == repos.tip(site.repo, "raise")
    assert row["mergedBy"] is not None


def test_a_field_that_never_changed_is_of_the_commit_that_brought_it(site: Site) -> None:
    (row,) = ask(site, "gprId=vision/runs&field=spec.nodes")["main"]
    assert (row["was"], row["now"], row["mergedBy"]) == (None, 4, None)


def test_a_file_has_all_its_commits(site: Site) -> None:
    found = ask(site, f"path={RUNS}")
    assert [row["now"] for row in found["main"]] == [None, None]
    assert [row["commit"] == repos.tip(site.repo, "raise") for row in found["main"]] == [True, False]
    assert found["status"]


def test_a_status_names_the_commit_and_why(site: Site) -> None:
    """The cause of a slip is the event of its commit; `?at=` shows the state that it made."""
    row = ask(site, "gprId=vision/runs&field=status.estimatedStartTime&limit=1")["status"][0]
    assert row["was"] < row["now"]
    (event,) = [one for one in row["events"] if one["reason"] == "GPRDelayed"]
    assert "HigherRankArrived (nlp/secret)" in event["message"]
    shown = site.client().get(f"/api/v1/gpr?gprId=vision/runs&at={row['commit']}").json()["data"]
    assert row["now"] in str(shown)


def test_names_of_others_are_hidden(site: Site) -> None:
    assert "secret" not in str(ask(site, "gprId=vision/runs", "bo-viewer"))
    assert "secret" in str(ask(site, "gprId=vision/runs"))


@pytest.mark.parametrize(
    ("query", "who", "status"),
    [
        ("gprId=nlp/secret", "bo-viewer", 404),
        (f"path={gpr_path('nlp/secret')}", "bo-viewer", 404),
        ("path=project.yaml", "bo-viewer", 404),
        ("path=keys/ada-owner.yaml", "bo-viewer", 404),
        ("path=templates/small.yaml", "bo-viewer", 200),
        ("path=clusters/east.yaml", "bo-viewer", 200),
        ("path=project.yaml&field=spec.admins", "ada-owner", 200),
        ("path=keys/ada-owner.yaml", "ada-owner", 200),
        ("path=README.md", "ada-owner", 404),
        ("path=../../etc/passwd", "ada-owner", 404),
        ("path=templates/none.yaml", "ada-owner", 404),
        ("gprId=vision/runs&field=spec.nothing", "ada-owner", 404),
        ("gprId=vision/runs&field=nodes", "ada-owner", 422),
        ("gprId=vision/runs&path=project.yaml", "ada-owner", 422),
        ("", "ada-owner", 422),
    ],
)
def test_who_may_ask_about_what(site: Site, query: str, who: str, status: int) -> None:
    ask(site, query, who, status)


def test_the_command_answers_the_same(site: Site) -> None:
    for field in ("spec.priority", "status.phase"):
        there = ask(site, f"gprId=vision/runs&field={field}&limit=5")
        assert egs("blame", "vision/runs", "--field", field, "--repo", site.repo, "-o", "json").json == there
    assert "Raise it" in egs("blame", "vision/runs", "--repo", site.repo).out


def test_an_old_status_is_known_to_the_hour(tmp_path_factory: pytest.TempPathFactory) -> None:
    site = Site(tmp_path_factory.mktemp("site"))
    site.file("vision/runs", nodes=1, duration="40h")
    site.pass_time(50)
    for day in range(2):
        site.pass_time(24 * 60)
        site.file(f"vision/day{day}", nodes=1, duration="1h")
        site.settle()
    row = ask(site, "gprId=vision/runs&field=status.phase&limit=9")["status"][-1]
    assert (row["was"], row["now"], row["after"], row["at"][:13]) == (
        None,
        "Provisioned",
        None,
        "2026-11-21T08",
    )
    site.close()
