"""Undo as a pull request, its effect shown first: what is filed is what was shown, on what its caller may see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.egs.remote import Shell
from tests.support import repos
from tests.support.portal import Site
from tests.support.world import gpr, gpr_path, slice_

WAITS, RUNS = gpr_path("vision/waits"), gpr_path("vision/runs")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """One holds all of east; one waits for it, and another one behind that."""
    made = Site(tmp_path / "site")
    made.file("vision/runs", nodes=4, duration="2h", clusters=["east"])
    made.settle()
    made.file("vision/waits", nodes=4, duration="1h", clusters=["east"], priority=180)
    made.settle()
    made.file("nlp/first", nodes=4, duration="1h", clusters=["east"], priority=120)
    made.pass_time(20)
    yield made
    made.close()


def waits(**spec: object) -> str:
    return gpr(
        "vision", "waits", **{"nodes": 4, "duration": "3h", "clusters": ["east"], "priority": 180, **spec}
    )


def raised(site: Site) -> str:
    """The commit that makes vision/waits longer, so that nlp/first waits longer too."""
    commit = site.commit({WAITS: waits()}, "Bo Ek <bo@example.com>")
    site.settle()
    return commit


def show(site: Site, commit: str, who: str = "ada-owner", status: int = 200) -> Any:
    answer = site.client(who).get("/api/v1/undo", params={"commit": commit})
    assert answer.status_code == status, answer.text
    return answer.json()["data"] if status == 200 else answer.json()["message"]


def file(site: Site, body: dict[str, Any], who: str = "ada-owner", status: int = 200) -> Any:
    answer = site.client(who).post("/api/v1/undo", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()["data"] if status == 200 else answer.json()["message"]


def test_it_is_shown_with_its_effect_then_proposed(site: Site) -> None:
    commit = raised(site)
    shown = show(site, commit)
    assert shown["files"] == [{"path": WAITS, "change": "changed", "fields": ["spec.duration"]}]
    assert (shown["undoes"], shown["by"], shown["left"]) == (commit, "bo@example.com", [])
    moved = {f"{row['slice']}/{row['name']}": row["change"] for row in shown["effect"]["moved"]}
    assert moved == {"nlp/first": "earlier"}
    before = site.main(WAITS)
    done = file(site, {"commit": commit, "digest": shown["digest"]})
    assert done["change"]["way"] == "branch"
    assert site.main(WAITS) == before, "it counts once it is merged"
    branch = done["change"]["branch"]
    assert "duration: 1h" in (repos.file(site.repo, f"{branch}:{WAITS}") or "")
    assert site.log(branch)[0].endswith(f"|Undo {commit[:12]}: Change")


def test_the_effect_is_what_the_merge_then_does(site: Site) -> None:
    """19: the same requests move by the same minutes."""
    commit = raised(site)
    shown = show(site, commit)
    (moved,) = shown["effect"]["moved"]
    done = file(site, {"commit": commit})
    repos.point(site.repo, "refs/heads/main", done["change"]["commit"])
    site.refresh()
    site.settle()
    status = site.view.facts.requests["nlp/first"]
    assert status.estimated_start_time is not None
    assert f"{status.estimated_start_time:%Y-%m-%dT%H:%M:%SZ}" == moved["now"]


def test_what_was_shown_is_what_is_filed_or_nothing(site: Site) -> None:
    commit = raised(site)
    digest = show(site, commit)["digest"]
    site.commit({WAITS: waits(displayName="later")})
    assert "would now change something other than what was shown" in file(
        site, {"commit": commit, "digest": digest}, status=409
    )
    assert file(site, {"commit": commit, "digest": show(site, commit)["digest"]})["change"]["branch"]


def test_a_later_edit_of_the_same_field_refuses_it(site: Site) -> None:
    commit = raised(site)
    site.commit({WAITS: waits(duration="2h")})
    assert f"{WAITS}: spec.duration changed again since" in show(site, commit, status=409)
    assert "changed again since" in file(site, {"commit": commit}, status=409)


def test_the_file_of_a_request_with_nodes_stays(site: Site) -> None:
    commit = repos.git(site.repo, "log", "--format=%H", "main", "--", RUNS)
    assert "release it instead" in show(site, commit, status=409)


def test_a_member_undoes_in_their_own_workspace_alone(site: Site) -> None:
    commit = raised(site)
    shown = show(site, commit, "bo-editor")
    assert "nlp" not in str(shown)
    assert shown["effect"]["hidden"]["earlier"] == 1
    assert file(site, {"commit": commit}, "bo-editor")["change"]["branch"]
    theirs = site.commit({gpr_path("nlp/first"): gpr("nlp", "first", nodes=1, duration="1h")})
    both = site.commit(
        {WAITS: gpr("vision", "waits", nodes=1), gpr_path("nlp/first"): gpr("nlp", "first", nodes=2)}
    )
    for hidden in (theirs, both):
        show(site, hidden, "bo-editor", 404)
        file(site, {"commit": hidden}, "bo-editor", 404)


def test_a_viewer_and_a_member_of_no_rank_file_nothing(site: Site) -> None:
    commit = raised(site)
    file(site, {"commit": commit}, "bo-viewer", 403)
    people = {"owners": [{"email": "olga@example.com"}], "quota": {"gpus": 8}}
    rule = site.commit({"slices/vision/slice.yaml": slice_("vision", ("east", "west"), **people)})
    file(site, {"commit": rule}, "bo-editor", 403)
    assert file(site, {"commit": rule}, "olga-owner")["change"]["way"] == "branch"


@pytest.mark.parametrize("commit", ["f" * 40, "abcdef1", "main~1 main"])
def test_what_is_no_commit_of_main_is_not_found(site: Site, commit: str) -> None:
    show(site, commit, status=404)
    file(site, {"commit": commit}, status=404)


def test_the_command_shows_and_files_the_same_in_both_modes(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = raised(site)
    with site.server() as url:
        shell = Shell(site, url, tmp_path, capsys)
        there = shell.on_server(f"undo {commit[:9]} --dry-run -o json").data
        here = shell.on_repository(f"undo {commit[:9]} --dry-run -o json").data
        assert here == there
        assert [row["name"] for row in here["moves"]] == ["first"]
        assert "spec.duration" in shell.on_repository(f"undo {commit} --dry-run").out
        filed = shell.on_repository(f"undo {commit} -o json").data
        assert "duration: 1h" in (repos.file(site.repo, f"{filed['branch']}:{WAITS}") or "")
        again = shell.on_repository(f"undo {'f' * 40} --dry-run")
        assert again.code == 1
