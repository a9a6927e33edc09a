"""A change as a pull request: branch, signature, title and text, on a forge and on plain Git; straight where it may."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.sshsig import canonical_key
from tests.reconciler.cli.rig import (
    BO,
    NOW,
    Answer,
    Control,
    egs,
    fleet,
    main_file,
    minutes,
    repository,
    request,
    shell,
    worktree,
)
from tests.support import forge as fake
from tests.support.repos import bare, git, tip
from tests.support.world import project

MINE = "slices/a/gprs/mine.yaml"
BY_PULL = {"project.yaml": project(changes="pull-request")}
KINDS = ("github", "gitlab", "gitea")


def create(repo: Path, *more: object) -> Answer:
    wish = ("--nodes", 1, "--duration", "6h", "--now", NOW)
    return egs("gpr", "create", "a/mine", *wish, "--repo", repo, "--author", BO, *more)


@pytest.fixture(params=KINDS)
def forge(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fake.Forge]:
    """A forge that has the repository, and a person whose environment names it."""
    found = fake.Forge(repository(tmp_path / "r.git", fleet(**BY_PULL)), request.param)
    token = tmp_path / "token"
    token.write_text(fake.TOKEN + "\n")
    with fake.serve(found) as api:
        for name, value in (
            ("", request.param),
            ("_API", api),
            ("_REPOSITORY", fake.REPOSITORY),
            ("_TOKEN_FILE", token),
        ):
            monkeypatch.setenv(f"EGS_FORGE{name}", str(value))
        yield found


def test_a_request_opens_its_pull_request_with_title_and_text(forge: fake.Forge) -> None:
    before = tip(forge.repo)
    done = create(forge.repo, "-o", "json")
    assert (done.code, tip(forge.repo)) == (0, before), done.err
    (pull,) = forge.pulls.values()
    assert (pull.branch, pull.base, pull.title) == ("requests/a-mine", "main", "Create a/mine")
    assert (
        "Files the request `a/mine`: 1 node with at least 1 GPU (any shape) for 0d6h0m, priority 101."
        in pull.body
    )
    assert (
        f"Would start at 2026-11-21T08:02:00Z in east/h100, as seen at {NOW} from {before[:12]}." in pull.body
    )
    assert done.json["pullRequest"]["number"] == pull.number
    assert (done.json["branch"], done.json["commit"]) == ("requests/a-mine", pull.head)
    assert f"Create a/mine: opened pull request #{pull.number}" in done.err
    assert git(forge.repo, "log", "-1", "--format=%an <%ae> %P", pull.head) == f"{BO} {before}"
    assert git(forge.repo, "diff", "--name-only", before, pull.head) == MINE


def test_a_table_says_that_the_start_needs_the_merge(forge: fake.Forge) -> None:
    done = create(forge.repo)
    assert done.out == "a/mine: starts at 2026-11-21 08:02:00+0000 (2m) in east/h100, once it is merged\n"


def test_a_forge_that_does_not_answer_leaves_the_branch_and_says_where_to_go_on(forge: fake.Forge) -> None:
    forge.down = 500
    done = create(forge.repo)
    assert done.code == 3
    assert "the branch requests/a-mine is pushed, but opening the pull request failed" in done.err
    assert fake.TOKEN not in done.err
    assert git(forge.repo, "rev-parse", "--verify", "requests/a-mine")


def test_two_changes_of_one_name_are_two_branches(forge: fake.Forge) -> None:
    assert (create(forge.repo).code, create(forge.repo).code) == (0, 0)
    assert [pull.branch for pull in forge.pulls.values()] == ["requests/a-mine", "requests/a-mine-2"]


def test_a_release_goes_straight_to_main_whatever_the_project_says(forge: fake.Forge, tmp_path: Path) -> None:
    """D11: idle GPUs cost, and no review is needed."""
    assert create(forge.repo, "--push").code == 0
    control = Control(forge.repo, tmp_path / "state")
    control.run(minutes(5))
    done = egs("gpr", "release", "a/mine", "--repo", forge.repo, "--author", BO)
    assert (done.code, list(forge.pulls)) == (0, []), done.err
    assert "earlyRelease: true" in main_file(forge.repo, MINE)
    control.run(minutes(6))
    assert egs("get", "gprs", "--repo", forge.repo, "-o", "json").json[0]["phase"] in {
        "Releasing",
        "Completed",
    }


def test_a_push_that_is_refused_becomes_a_pull_request(forge: fake.Forge) -> None:
    """A protected main: the change is not lost, and the person is told what became of it."""
    assert create(forge.repo, "--push").code == 0
    protect(forge.repo)
    done = egs("gpr", "release", "a/mine", "--repo", forge.repo, "--author", BO)
    assert done.code == 0, done.err
    assert "the server refused the push to main" in done.err
    assert [pull.title for pull in forge.pulls.values()] == ["Release a/mine"]
    wanted = egs("gpr", "release", "a/mine", "--push", "--repo", forge.repo, "--author", BO)
    assert (wanted.code, len(forge.pulls)) == (1, 1)
    assert "use --pull-request" in wanted.err


def protect(repo: Path) -> None:
    hook = repo / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" != refs/heads/main ]\n')
    hook.chmod(0o755)


def test_plain_git_gets_a_branch_and_the_next_step(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    done = create(repo, "--pull-request")
    assert done.code == 0, done.err
    assert done.err.splitlines() == [
        "egs: Create a/mine: pushed as branch requests/a-mine; it counts once it is merged into main",
        "egs: next: a person with the right to merge runs: git fetch origin requests/a-mine && git merge "
        "--no-ff FETCH_HEAD "
        "&& git push",
    ]
    edited = egs("gpr", "create", "b/x", "--nodes", 1, "--duration", "1h", "--repo", repo, "--author", BO)
    assert (edited.code, "committed to main" in edited.err) == (0, True), (
        "as it always was, where nobody asks"
    )


def test_a_forge_without_a_token_is_a_page_to_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    monkeypatch.setenv("EGS_FORGE", "gitlab")
    monkeypatch.setenv("EGS_FORGE_API", "https://forge.example.com/api/v4")
    monkeypatch.setenv("EGS_FORGE_REPOSITORY", "acme/fleet")
    done = create(repo, "--pull-request")
    assert done.code == 0, done.err
    page = "https://forge.example.com/acme/fleet/-/merge_requests/new?merge_request%5Bsource_branch%5D=requests/a-mine"
    assert f"next: open a pull request at {page}" in done.err


def test_a_forge_of_no_known_kind_is_wrong_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    monkeypatch.setenv("EGS_FORGE", "bazaar")
    done = create(repo, "--pull-request")
    assert done.code == 2
    assert "EGS_FORGE is 'bazaar'; write github, gitlab, gitea" in done.err


def cloned(tmp_path: Path) -> tuple[Path, Path]:
    tree = worktree(tmp_path / "tree", fleet(**BY_PULL))
    origin = bare(tmp_path / "o.git", {})
    git(tree, "remote", "add", "origin", str(origin))
    git(tree, "push", "--quiet", "--force", "origin", "HEAD:main")
    return tree, origin


def test_in_a_work_tree_files_are_written_unless_somebody_says_how_to_push(tmp_path: Path) -> None:
    tree, origin = cloned(tmp_path)
    before = tip(origin)
    done = create(tree)
    assert (done.code, tip(origin), (tree / MINE).exists()) == (0, before, True)
    assert "--pull-request does all of this" in done.err
    (tree / MINE).unlink()
    asked = create(tree, "--pull-request")
    assert (asked.code, tip(origin), (tree / MINE).exists()) == (0, before, False), asked.err
    assert git(origin, "show", f"requests/a-mine:{MINE}")
    pushed = create(tree, "--push")
    assert (pushed.code, (tree / MINE).exists()) == (0, False), pushed.err
    assert main_file(origin, MINE)


def test_a_plain_folder_has_nowhere_to_push(tmp_path: Path) -> None:
    from tests.reconciler.cli.rig import folder

    done = create(folder(tmp_path / "f", fleet()), "--push")
    assert done.code == 2
    assert "no repository to push to" in done.err


# -- signatures ---------------------------------------------------------------------------------------------------


def configure(repo: Path, **settings: str) -> None:
    for name, value in settings.items():
        git(repo, "config", name.replace("_", "."), value)


@pytest.mark.parametrize(
    "way", [pytest.param((), id="on main"), pytest.param(("--pull-request",), id="on a branch")]
)
def test_commits_are_signed_with_the_ssh_key_that_git_signs_with(
    tmp_path: Path, way: tuple[str, ...]
) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    key = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bo", "-f", key], check=True)
    configure(repo, gpg_format="ssh", user_signingkey=str(key))
    assert create(repo, *way).code == 0
    branch = "requests/a-mine" if way else "main"
    assert _signer(repo, branch) == canonical_key((tmp_path / "id.pub").read_text())
    lines = shell(repo, "git", "cat-file", "commit", branch).stdout
    assert lines.count("gpgsig ") == 1


def _signer(repo: Path, branch: str) -> str | None:
    from reconciler.store.git.git_objects import parse_commit

    raw = subprocess.run(
        ["git", "cat-file", "commit", branch], cwd=repo, capture_output=True, check=True
    ).stdout
    found = parse_commit("0" * 40, raw)
    return SystemVerifier(None).key_of("git", found.payload, found.signature)


def test_commits_are_signed_with_gpg_where_git_is_configured_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    quick = [
        "gpg",
        "--batch",
        "--passphrase",
        "",
        "--quick-generate-key",
        "Bo <bo@example.com>",
        "ed25519",
        "sign",
    ]
    subprocess.run(quick, check=True, capture_output=True)
    repo = repository(tmp_path / "r.git", fleet())
    configure(repo, user_signingkey="bo@example.com")
    assert create(repo).code == 0
    checked = shell(repo, "git", "verify-commit", "main")
    assert checked.returncode == 0, checked.stderr


def test_a_key_that_cannot_sign_is_told_and_stops_only_who_wants_signatures_always(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    configure(repo, gpg_format="ssh", user_signingkey=str(tmp_path / "gone"))
    before = tip(repo)
    done = create(repo)
    assert done.code == 0
    assert "the commit is not signed" in done.err
    configure(repo, commit_gpgsign="true")
    refused = egs("gpr", "edit", "a/mine", "nodes=2", "--repo", repo, "--author", BO)
    assert (refused.code, tip(repo) != before) == (1, True)
    assert "nothing was signed" in refused.err


def test_whoever_is_faster_is_built_upon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pull request's commit lies on the tip of main as it is when the branch is pushed."""
    repo = repository(tmp_path / "r.git", fleet(**request("b/other")))
    assert create(repo, "--pull-request").code == 0
    assert git(repo, "merge-base", "main", "requests/a-mine") == tip(repo)
