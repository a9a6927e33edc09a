"""Heads of pull requests, which no branch leads to: brought, kept as long as they are asked for, and no further."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import UserError
from tests.reconciler.store.conftest import Open
from tests.support import repos


def _pull(remote: Path, number: int, text: str = "x\n", kind: str = "pull") -> str:
    """A pull request whose branch lies elsewhere."""
    oid = repos.commit(remote, {"a.yaml": text}, f"tmp-{number}")
    repos.git(remote, "update-ref", f"refs/{kind}/{number}/head", oid)
    repos.git(remote, "branch", "-D", f"tmp-{number}")
    return oid


def test_a_head_is_brought_and_read(remote: Path, open_store: Open) -> None:
    first, second = _pull(remote, 7), _pull(remote, 8, kind="merge-requests")
    store = open_store()
    refs = ["refs/pull/7/head", "refs/merge-requests/8/head"]
    assert store.fetch_heads(refs) == dict(zip(refs, (first, second), strict=True))
    assert store.read_path(first, "a.yaml") == b"x\n"


def test_a_head_follows_its_pull_request_also_when_it_is_forced(remote: Path, open_store: Open) -> None:
    _pull(remote, 7)
    store = open_store()
    store.fetch_heads(["refs/pull/7/head"])
    moved = _pull(remote, 7, "another history\n")
    assert store.fetch_heads(["refs/pull/7/head"]) == {"refs/pull/7/head": moved}


def test_a_head_that_is_not_named_any_more_is_dropped(remote: Path, open_store: Open, tmp_path: Path) -> None:
    _pull(remote, 7)
    kept = _pull(remote, 8)
    store = open_store(mirror=tmp_path / "mirror")
    store.fetch_heads(["refs/pull/7/head", "refs/pull/8/head"])
    assert store.fetch_heads(["refs/pull/8/head"]) == {"refs/pull/8/head": kept}
    assert "pull/7" not in repos.git(tmp_path / "mirror", "for-each-ref")
    assert store.fetch_heads([]) == {}
    assert "refs/egs" not in repos.git(tmp_path / "mirror", "for-each-ref")


def test_a_head_that_is_gone_keeps_no_other_away(remote: Path, open_store: Open) -> None:
    there = _pull(remote, 7)
    store = open_store()
    assert store.fetch_heads(["refs/pull/7/head", "refs/pull/9/head"]) == {"refs/pull/7/head": there}


def test_a_head_that_fails_gits_check_keeps_no_other_away(remote: Path, open_store: Open) -> None:
    there = _pull(remote, 7)
    blob = repos.write_object(remote, "blob", b"x")
    tree = repos.write_object(remote, "tree", repos.tree_entry("100644", b"..", blob))
    repos.commit_tree(remote, tree, "hostile")
    repos.git(remote, "update-ref", "refs/pull/8/head", repos.tip(remote, "hostile"))
    repos.git(remote, "branch", "-D", "hostile")
    assert open_store().fetch_heads(["refs/pull/8/head", "refs/pull/7/head"]) == {"refs/pull/7/head": there}


def test_heads_are_no_branches(remote: Path, open_store: Open) -> None:
    _pull(remote, 7)
    store = open_store()
    store.fetch(["main"])
    store.fetch_heads(["refs/pull/7/head"])
    assert list(store.tips()) == ["main"]


@pytest.mark.parametrize(
    "ref",
    [
        pytest.param("refs/heads/main", id="a branch"),
        pytest.param("refs/pull/../head", id="a way out"),
        pytest.param("refs/pull/0/head", id="no number"),
        pytest.param("--upload-pack=sh", id="an option"),
        pytest.param("refs/pull/7/head:refs/heads/main", id="another place"),
        pytest.param("refs/pull/7/head\n", id="a line end"),
        pytest.param("refs/pull/7/merge", id="what the forge made of it"),
    ],
)
def test_only_heads_of_pull_requests_can_be_asked_for(ref: str, open_store: Open) -> None:
    with pytest.raises(UserError):
        open_store().fetch_heads([ref])
