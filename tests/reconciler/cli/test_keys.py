"""`egs key …`: keys of the HTTP API, made and revoked by changing files (B7, K2, A1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.changes.keys import new_text
from schemas.documents.apikey import ApiKey, digest_of
from schemas.reading.reader import read_document
from tests.reconciler.cli.rig import (
    ADA,
    BO,
    NOW,
    Answer,
    egs,
    fleet,
    folder,
    main_file,
    repository,
    worktree,
)
from tests.support.repos import git, tip
from tests.support.world import project

TEXT = re.compile(r"egs_[A-Za-z0-9_-]{43}")
PATH = "keys/nightly.yaml"


def _key(repo: Path, *args: object, author: str = BO) -> Answer:
    return egs("key", *args, "--repo", repo, "--author", author)


def _made(repo: Path, *args: object, author: str = BO) -> str:
    done = _key(repo, "create", "nightly", "--role", "Editor", *args, author=author)
    assert done.code == 0, done.err
    return done.out.rstrip("\n")


def _manifest(text: str) -> ApiKey:
    found = read_document(PATH, text.encode())
    assert isinstance(found, ApiKey)
    return found


def test_a_key_is_shown_once_and_the_repository_has_its_digest_alone(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    done = _key(repo, "create", "nightly", "--role", "Editor", "--slice", "a", "--description", "training")
    text = done.out.rstrip("\n")
    assert done.code == 0, done.err
    assert TEXT.fullmatch(text), "stdout has the key and nothing else"
    assert "Create API key nightly for bo@example.com: committed to main as" in done.err
    spec = _manifest(main_file(repo, PATH)).spec
    assert (spec.sha256, spec.email, spec.role, spec.slices) == (
        digest_of(text),
        "bo@example.com",
        "Editor",
        ("a",),
    )
    assert spec.description == "training"
    everything = git(repo, "log", "--all", "--patch", "--format=fuller") + done.err
    assert text not in everything
    assert text[4:] not in everything


def test_no_two_keys_are_alike() -> None:
    texts = {new_text() for _ in range(100)}
    assert len(texts) == 100
    assert all(TEXT.fullmatch(text) for text in texts)


def test_its_end_its_person_and_its_scope_are_as_asked(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    _made(repo, "--slice", "a", "--slice", "b", "--for", "robot@example.com", "--expires", "2h", author=ADA)
    spec = _manifest(main_file(repo, PATH)).spec
    assert (spec.email, spec.slices) == ("robot@example.com", ("a", "b"))
    ago = egs("key", "list", "--repo", repo, "-o", "json", "--now", "2026-01-01T00:00:00Z").json
    late = egs("key", "list", "--repo", repo, "-o", "json", "--now", "2199-01-01T00:00:00Z").json
    assert [(row["state"], row["notAfter"] is None) for row in (*ago, *late)] == [
        ("Active", False),
        ("Expired", False),
    ]


def test_one_that_never_ends_has_no_end(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    _made(repo, "--expires", "never")
    assert _manifest(main_file(repo, PATH)).spec.not_after is None


def test_a_revoked_key_stays_on_record(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    _made(repo, "--slice", "a")
    before = main_file(repo, PATH)
    done = _key(repo, "revoke", "nightly")
    assert done.code == 0, done.err
    assert main_file(repo, PATH) == f"{before}\n  revoked: true"
    (row,) = egs("key", "list", "--repo", repo, "-o", "json", "--now", NOW).json
    assert (row["name"], row["state"]) == ("nightly", "Revoked")
    assert "sha256" not in row
    again = _key(repo, "revoke", "nightly")
    assert (again.code, "revoked already" in again.err) == (1, True)
    taken = _key(repo, "create", "nightly", "--role", "Viewer")
    assert (taken.code, taken.out) == (1, "")
    assert "choose another name" in taken.err


def test_revoking_does_not_wait_where_changes_are_pull_requests(tmp_path: Path) -> None:
    """Whoever lost a key ends it now."""
    repo = repository(tmp_path / "r.git", fleet(**{"project.yaml": project(changes="pull-request")}))
    _made(repo, "--push")
    before = tip(repo)
    asked = _key(repo, "create", "second", "--role", "Viewer")
    assert (asked.code, tip(repo)) == (0, before)
    assert TEXT.fullmatch(asked.out.rstrip("\n"))
    assert "once the change is on main" in asked.err
    assert _key(repo, "revoke", "nightly").code == 0
    assert tip(repo) != before


def test_the_table_says_what_each_key_is_good_for(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    empty = egs("key", "list", "--repo", repo)
    assert (empty.out, "there are no keys" in empty.err) == ("", True)
    _made(repo, "--expires", "never")
    head, row = egs("key", "list", "--repo", repo).out.splitlines()
    assert head.split() == ["NAME", "STATE", "EMAIL", "ROLE", "SLICES", "UNTIL", "DESCRIPTION"]
    assert row.split() == ["nightly", "Active", "bo@example.com", "Editor", "all"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        pytest.param(("create", "No", "--role", "Editor"), 2, "is not a valid name", id="a name that is none"),
        pytest.param(("create", "x", "--role", "Admin"), 2, "Admin", id="a role that is none"),
        pytest.param(("create", "x", "--role", "Editor", "--slice", "zz"), 1, "there is no slice zz", id="a slice"),
        pytest.param(("create", "x", "--role", "Editor", "--expires", "soon"), 2, "--expires soon", id="an end"),
        pytest.param(("create", "x", "--role", "Editor", "--for", "bo"), 2, "text like", id="no address"),
        pytest.param(("revoke", "zz"), 1, "there is no key zz", id="a key that is not there"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_and_nothing_is_written(
    tmp_path: Path, args: tuple[str, ...], code: int, said: str
) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    before = tip(repo)
    done = _key(repo, *args)
    assert (done.code, done.out, tip(repo)) == (code, "", before)
    assert said in done.err


def test_a_trial_makes_no_key(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    before = tip(repo)
    done = _key(repo, "create", "nightly", "--role", "Editor", "--dry-run")
    assert (done.code, tip(repo)) == (0, before)
    assert "sha256: …" in done.out
    assert not TEXT.search(done.out)
    assert not re.search(r"[0-9a-f]{64}", done.out)


def test_in_a_folder_it_is_a_file_to_commit(tmp_path: Path) -> None:
    tree = worktree(tmp_path / "w", fleet())
    text = _made(tree)
    assert _manifest((tree / PATH).read_text()).spec.sha256 == digest_of(text)
    plain = folder(tmp_path / "f", fleet())
    assert _key(plain, "create", "nightly", "--role", "Viewer", author=ADA).code == 0


def test_a_slice_that_a_key_names_is_not_deleted_under_it(tmp_path: Path) -> None:
    """Its binding goes with the slice, for it is of that slice alone."""
    binding = (
        "apiVersion: egs.dev/v1alpha1\nkind: GPRTemplateBinding\nmetadata: {name: a}\n"
        "spec: {clusters: [{cluster: east, templates: [t]}]}\n"
    )
    template = "apiVersion: egs.dev/v1alpha1\nkind: GPRTemplate\nmetadata: {name: t}\nspec: {nodes: 1, duration: 1h}\n"
    files = {"bindings/a.yaml": binding, "templates/t.yaml": template}
    repo = repository(tmp_path / "r.git", fleet(**files))
    _made(repo, "--slice", "a")
    refused = egs("slice", "delete", "a", "--yes", "--repo", repo, "--author", ADA)
    assert (refused.code, "keys/nightly.yaml: there is no slice a" in refused.err) == (1, True)
    git(repo, "update-ref", "refs/heads/main", "main~1")
    done = egs("slice", "delete", "a", "--yes", "--repo", repo, "--author", ADA)
    assert done.code == 0, done.err
    assert "bindings/a.yaml" not in git(repo, "ls-tree", "-r", "--name-only", "main")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(
            ("--role", "Viewer", "--slice", "a", "--for", "ada@example.com"), "is an admin", id="an admin's"
        ),
        pytest.param(
            ("--role", "Owner", "--for", "robot@example.com"), "only robot@example.com can create", id="Owner"
        ),
    ],
)
def test_no_key_is_made_that_nobody_may_make_for_another(
    tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    done = _key(repo, "create", "nightly", *words)
    assert (done.code, sentence in done.err) == (1, True), done.err
    assert git(repo, "ls-tree", "--name-only", "main", PATH) == ""
