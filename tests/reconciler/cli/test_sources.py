"""Where commands read: environment, cache, HTTP, locked mirrors, and what a preview makes of it all."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.deciding.preview import preview
from reconciler.model.facts import Facts, Filed, Wanted
from reconciler.sources.open_source import opened
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import SliceSpec
from schemas.status.gpr_status import Phase
from tests.reconciler.cli.rig import NOW, Control, egs, fleet, folder, minutes, repository, request
from tests.support.repos import commit, git, serve, tip
from tests.support.world import START


def _starts(*args: object) -> list[str]:
    done = egs("plan", "--now", NOW, "-o", "json", *args)
    assert done.code == 0, done.err
    return [row["name"] for row in done.json["requests"]]


def test_the_environment_names_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/x")))
    monkeypatch.setenv("EGS_REPO", str(repo))
    assert _starts() == ["x"]
    assert _starts("--repo", folder(tmp_path / "f", fleet(**request("b/y")))) == ["y"], "--repo counts more"


def test_a_url_is_read_and_written(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/x")))
    with serve(tmp_path) as url:
        assert _starts("--repo", f"{url}/r.git") == ["x"]
        wish = ("--nodes", 1, "--duration", "1h", "--repo", f"{url}/r.git", "--author", "Bo <bo@example.com>")
        assert egs("gpr", "create", "a/y", *wish).code == 0
    assert "slices/a/gprs/y.yaml" in git(repo, "ls-tree", "-r", "--name-only", "main")
    assert _starts("--repo", f"file://{repo}") == ["x", "y"]


def test_a_remote_that_is_away_is_a_fault_and_no_secret_is_told(tmp_path: Path) -> None:
    done = egs("plan", "--repo", "http://bo:hunter22@127.0.0.1:9/r.git")
    assert (done.code, done.out) == (3, "")
    assert "hunter22" not in done.err


@pytest.mark.parametrize("repo", ["ssh://forge/r.git", "bo:hunter22@forge:r.git", "/nowhere/at/all"])
def test_what_cannot_be_read_is_wrong_use(repo: str) -> None:
    done = egs("plan", "--repo", repo)
    assert (done.code, done.err.count("\n"), "hunter22" in done.err) == (2, 1, False)


def test_an_empty_repository_says_how_to_begin(tmp_path: Path) -> None:
    from tests.support.repos import bare

    done = egs("plan", "--repo", bare(tmp_path / "r.git"))
    assert (done.code, "egs init" in done.err) == (1, True)


def test_a_second_command_at_the_same_time_has_a_mirror_of_its_own(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/x")))
    with opened(str(repo)) as first:
        assert first.commit_of(None) == tip(repo)
        assert _starts("--repo", repo) == ["x"]
    assert len(list((tmp_path / "cache" / "mirrors").iterdir())) == 1


def test_the_mirror_follows_the_repository(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/x")))
    assert _starts("--repo", repo) == ["x"]
    old = tip(repo)
    commit(repo, request("a/y"))
    assert _starts("--repo", repo) == ["x", "y"]
    assert _starts("--repo", repo, "--ref", old) == ["x"], "a commit is named by its full id"


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EGS_CACHE", str(tmp_path / "file" / "cache"))
    assert _starts("--repo", repository(tmp_path / "r.git", fleet(**request("a/x")))) == ["x"]


def test_what_was_filed_first_is_remembered_by_the_status(tmp_path: Path) -> None:
    """E3: among equals the first filed is first, whatever its name; a plain folder knows only names."""
    repo = repository(tmp_path / "r.git", fleet(**request("a/old")))
    Control(repo, tmp_path / "state").run(minutes(0))
    commit(repo, request("a/new"))
    assert _starts("--repo", repo) == ["old", "new"]
    assert _starts("--repo", folder(tmp_path / "f", fleet(**request("a/old"), **request("a/new")))) == [
        "new",
        "old",
    ]


# -- preview ---------------------------------------------------------------------------------------------------------


def _wanted(*names: str) -> Wanted:
    slice_ = SliceSpec.model_validate_json(
        '{"members":[{"email":"b@x"}],"clusters":["c"],"namespaces":["n"]}'
    )
    project = ProjectSpec.model_validate_json('{"admins":[{"email":"a@x"}],"limits":{"deletionsAtOnce":1}}')
    spec = RequestSpec.model_validate_json('{"slice":"a","nodes":1,"duration":"1h"}')
    return Wanted("", project, {}, {"a": slice_}, {f"a/{name}": Filed(spec) for name in names}, {}, {})


def test_a_preview_files_what_is_new_and_forgets_what_is_gone() -> None:
    facts = preview(Facts(START), _wanted("x", "y"), START)
    assert {key: (s.phase, s.filed_at) for key, s in facts.requests.items()} == {
        "a/x": (Phase.QUEUED, START),
        "a/y": (Phase.QUEUED, START),
    }
    assert list(preview(facts, _wanted("y"), minutes(1)).requests) == ["a/y"]


def test_a_preview_cancels_nobody_when_too_many_files_vanish() -> None:
    """As the controller, which waits for an admin."""
    facts = preview(Facts(START), _wanted("x", "y"), START)
    assert list(preview(facts, _wanted(), minutes(1)).requests) == ["a/x", "a/y"]
