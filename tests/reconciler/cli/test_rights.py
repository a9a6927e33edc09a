"""Where main is not verified, commands ask themselves whether the person may make the change (A1, D8, E4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import ADA, BO, egs, fleet, folder, repository, request
from tests.support.repos import git, tip
from tests.support.world import slice_

CY, EVE = "Cy <cy@example.com>", "Eve <eve@example.com>"
WORLD = fleet(
    **request("a/mine"),
    **request("a/other"),
    **{"slices/b/slice.yaml": slice_("b", members=[{"email": "cy@example.com"}])},
)


@pytest.mark.parametrize(
    ("who", "words", "reason"),
    [
        pytest.param(
            CY, "gpr release a/mine", "not a member of slice a", id="another slice's request is released"
        ),
        pytest.param(
            EVE, "gpr create b/new --nodes 1 --duration 1h", "not a member of slice b", id="a stranger files"
        ),
        pytest.param(
            EVE,
            "slice create lab --cluster east --member eve@example.com",
            "neither owner",
            id="a stranger makes a slice",
        ),
        pytest.param(BO, "gpr move a/other --first", "only admins set `move`", id="a member moves a request"),
        pytest.param(BO, "slice edit a limits.maxNodes=9", "neither owner", id="a member lifts a limit"),
    ],
)
def test_what_is_not_the_person_s_to_change_is_refused(
    tmp_path: Path, who: str, words: str, reason: str
) -> None:
    repo = repository(tmp_path / "r.git", WORLD)
    before = tip(repo)
    done = egs(*words.split(), "--repo", repo, "--author", who)
    assert (done.code, tip(repo)) == (1, before), done.err
    assert reason in done.err
    assert "nothing is changed" in done.err


@pytest.mark.parametrize(
    ("who", "words"),
    [
        pytest.param(BO, "gpr release a/mine", id="a member's own"),
        pytest.param(ADA, "gpr move a/other --first", id="an admin moves"),
        pytest.param(EVE, "slice request lab --cluster east", id="anyone asks for a slice"),
        pytest.param(CY, "gpr release a/mine --pull-request", id="a merge decides about a branch"),
    ],
)
def test_what_is_theirs_goes_through(tmp_path: Path, who: str, words: str) -> None:
    repo = repository(tmp_path / "r.git", WORLD)
    done = egs(*words.split(), "--repo", repo, "--author", who)
    assert done.code == 0, done.err


def test_in_a_folder_nothing_is_asked(tmp_path: Path) -> None:
    where = folder(tmp_path / "fleet", WORLD)
    git(tmp_path, "init", "--quiet", "fleet")
    assert egs("gpr", "release", "a/mine", "--repo", where, "--author", CY).code == 0
