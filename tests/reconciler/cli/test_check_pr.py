"""`egs check-pr` as people and CI run it: a clone, a bare repository, every form, every exit. A1, B8, D8, D9."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.reconciler.cli.rig import Answer, Control, egs, fleet, folder, minutes, repository, request, shell
from tests.support.keys import signed_by, ssh_key
from tests.support.repos import git
from tests.support.world import START, gpr, slice_

LATER = (START + timedelta(minutes=10)).isoformat().replace("+00:00", "Z")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with a status beside it: slice b holds all four nodes for three hours."""
    repo = repository(tmp_path / "fleet.git", fleet(**request("b/run", 4, "3h")))
    control = Control(repo, tmp_path / "state")
    control.run(minutes(10))
    git(tmp_path, "clone", "--quiet", str(repo), str(tmp_path / "clone"))
    git(tmp_path / "clone", "checkout", "--quiet", "-b", "pull")
    return tmp_path / "clone"


def change(tree: Path, files: dict[str, str | None], *options: str) -> str:
    """Commit files on the branch."""
    for path, text in files.items():
        if text is None:
            (tree / path).unlink()
    folder(tree, {path: text for path, text in files.items() if text is not None})
    git(tree, "add", "-A")
    git(tree, *options, "commit", "--quiet", "-m", "A pull request")
    return git(tree, "rev-parse", "HEAD")


def check(tree: Path, *args: str) -> Answer:
    return egs("check-pr", "--repo", str(tree), "--now", LATER, *args)


def test_a_good_change_says_when_it_starts(clone: Path) -> None:
    change(clone, request("a/train", 2, "1h"))
    found = check(clone)
    assert found.code == 0, found.err
    assert found.out.startswith("Good to merge: a/train starts at 21 Nov ")
    assert "no request waits longer" in found.out
    assert "and the queue of 21 Nov" in found.out


def test_json_is_stable(clone: Path) -> None:
    head = change(clone, request("a/train", 2, "1h"))
    found = check(clone, "-o", "json").json
    assert list(found) == [
        "verdict", "now", "against", "actor", "problems", "conflicts", "denials", "may", "requests", "approvals",
        "moved", "others",
    ]  # fmt: skip
    (row,) = found["requests"]
    assert (row["slice"], row["name"], row["change"], row["nodes"], row["gpus"], row["quota"]) == (
        "a", "train", "new", 2, 16, 16,
    )  # fmt: skip
    assert row["cost"] == {"amount": 40.0, "currency": "USD"}
    assert found["against"]["head"] == head
    assert found["against"]["statusAnswersBase"] is True
    assert found["may"] == [{"file": "slices/a/gprs/train.yaml", "who": "members of slice a and admins"}]


def test_waiting_for_an_admin_is_no_failure(clone: Path) -> None:
    change(clone, request("a/big", 3, "1h"))
    found = check(clone, "-o", "markdown")
    assert found.code == 0
    assert found.out.startswith("<!-- egs-check -->\n")
    assert "`egs approve a/big`" in found.out
    assert "if approved now" in found.out


def test_what_cannot_be_merged_fails(clone: Path) -> None:
    change(clone, {"slices/a/gprs/x.yaml": gpr("a", "x", priority=250)})
    found = check(clone, "-o", "github")
    assert found.code == 1
    assert "::error file=slices/a/gprs/x.yaml,line=" in found.out
    assert "It cannot be merged like this: 1 error." in found.out


@pytest.mark.parametrize(
    ("author", "code", "rule"),
    [
        pytest.param("Bo <bo@example.com>", 0, None, id="a member files a request"),
        pytest.param("ada@example.com", 0, None, id="an admin too"),
        pytest.param("Eve <eve@example.com>", 1, "NotAMember", id="a stranger does not"),
    ],
)
def test_who_may(clone: Path, author: str, code: int, rule: str | None) -> None:
    change(clone, request("a/train"))
    found = check(clone, "--author", author, "-o", "json")
    assert found.code == code
    assert [denial["rule"] for denial in found.json["denials"]] == ([] if rule is None else [rule])


def test_the_forges_account_is_who_acts_in_ci(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = {"email": "bo@example.com", "forge": {"login": "bo", "id": 77}}
    git(clone, "checkout", "--quiet", "main")
    change(clone, {"slices/a/slice.yaml": slice_("a", members=[member])})
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(clone, "checkout", "--quiet", "-B", "pull")
    head = change(clone, request("a/train"))
    git(clone, "checkout", "--quiet", "--detach", "main")  # a job may have anything checked out

    def event(account: int) -> Answer:
        pull = {
            "user": {"login": "bo", "id": account},
            "head": {"sha": head},
            "base": {"ref": "main", "sha": "0" * 40},
        }
        (tmp_path / "event.json").write_text(json.dumps({"pull_request": pull}))
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
        return check(clone, "-o", "json")

    assert event(77).json["denials"] == []
    assert event(77).json["actor"] == "bo@example.com"
    taken = event(78)
    assert taken.code == 1, "the name is the same, the account another's"
    assert [denial["rule"] for denial in taken.json["denials"]] == ["NotAMember"]


def test_signatures_show_who_acts_where_nobody_says(clone: Path, tmp_path: Path) -> None:
    key = ssh_key(tmp_path / "keys")
    git(clone, "checkout", "--quiet", "main")
    change(
        clone,
        {"slices/a/slice.yaml": slice_("a", members=[{"email": "bo@example.com", "keys": [key.public]}])},
    )
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(clone, "checkout", "--quiet", "-B", "pull")
    change(clone, request("a/train"), *signed_by(key), "-c", "commit.gpgsign=true")
    assert check(clone, "-o", "json").json["actor"] == "bo@example.com"
    change(clone, request("b/train"), *signed_by(key), "-c", "commit.gpgsign=true")
    found = check(clone, "-o", "json")
    assert [denial["file"] for denial in found.json["denials"]] == ["slices/b/gprs/train.yaml"]


def test_a_branch_of_a_bare_repository(clone: Path, tmp_path: Path) -> None:
    change(clone, request("a/train"))
    git(clone, "push", "--quiet", "origin", "pull")
    found = check(tmp_path / "fleet.git", "--head", "pull", "-o", "json")
    assert [row["name"] for row in found.json["requests"]] == ["train"]
    assert found.json["against"]["status"] is not None


def test_a_url_needs_the_branchs_name(clone: Path, tmp_path: Path) -> None:
    change(clone, request("a/train"))
    git(clone, "push", "--quiet", "origin", "pull")
    url = f"file://{tmp_path / 'fleet.git'}"
    assert egs("check-pr", "--repo", url, "--now", LATER, "--head", "pull").code == 0
    found = egs("check-pr", "--repo", url)
    assert (found.code, "--head" in found.err) == (2, True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        pytest.param(("--head", "nothing"), "has no nothing", id="a branch that is not there"),
        pytest.param(("--base", "--upload-pack=x"), "has no --upload-pack=x", id="an option for git"),
        pytest.param(("--author", "somebody"), "--author somebody", id="a person without an address"),
    ],
)
def test_mistakes(clone: Path, args: tuple[str, ...], words: str) -> None:
    found = check(clone, *args)
    assert found.code == 2
    assert words in found.err


def test_no_repository(tmp_path: Path) -> None:
    plain = folder(tmp_path / "plain", fleet())
    found = egs("check-pr", "--repo", plain)
    assert found.code == 2
    assert "no Git repository" in found.err


def test_a_shallow_clone_is_told_what_to_fetch(clone: Path, tmp_path: Path) -> None:
    git(clone, "checkout", "--quiet", "main")
    change(clone, request("b/more"))
    git(clone, "push", "--quiet", "origin", "main")
    git(clone, "checkout", "--quiet", "pull")
    change(clone, request("a/train"))
    git(clone, "push", "--quiet", "origin", "pull")
    url = f"file://{tmp_path / 'fleet.git'}"
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-single-branch", url, str(shallow))
    found = check(shallow, "--head", "origin/pull")
    assert found.code == 1
    assert "fetch-depth: 0" in found.err


def test_a_linked_work_tree_is_a_clone_too(clone: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    change(tmp_path / "linked", request("a/train"))
    assert check(tmp_path / "linked").out.startswith("Good to merge: a/train")


def test_nothing_of_the_pull_request_is_run(clone: Path, tmp_path: Path) -> None:
    trap = f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
    names = ("yaml.py", "sitecustomize.py", "egs.py", "schemas.py", "conftest.py")
    change(clone, {**dict.fromkeys(names, trap), ".gitattributes": "* filter=x\n", **request("a/train")})
    done = shell(clone, str(Path(sys.executable).with_name("egs")), "check-pr", "--now", LATER)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()
