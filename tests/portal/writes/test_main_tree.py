"""Main as the writer stands on it: what others push is followed at the cost of what changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.writes.main_tree import MainTree
from portal.writes.parsed_files import cached_text, read_document
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_objects import blob_oid
from reconciler.store.git.git_store import GitStore
from schemas.reading import reader
from schemas.reading.reader import READER_VERSION
from tests.support import repos
from tests.support.world import cluster, gpr, gpr_path, project, slice_

FLEET = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(),
    "slices/a/slice.yaml": slice_("a"),
    "slices/b/slice.yaml": slice_("b"),
    gpr_path("a/one"): gpr("a", "one"),
}
GOOD, BAD = gpr("a", "one", duration="2h"), gpr("a", "one", nodes=0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, GitStore]]:
    folder = tmp_path_factory.mktemp("standing")
    repo = repos.bare(folder / "repo.git", FLEET)
    store = GitStore(str(repo), folder / "mirror.git")
    yield repo, store
    store.close()


def main_tree_at(store: GitStore) -> MainTree:
    """On main as it is now."""
    return MainTree.at(store, DocumentCache(None, READER_VERSION), store.fetch(["main"])["main"])


def known(main_tree: MainTree) -> object:
    """All that is known of the documents."""
    repository = main_tree.documents.repository
    return dict(repository.documents), dict(repository.refused), repository.findings()


def test_it_follows_what_others_push(place: tuple[Path, GitStore]) -> None:
    """Commit by commit: whose each change was, and the same documents as for one who begins there."""
    repo, store = place
    main_tree = main_tree_at(store)
    first = repos.commit(repo, {gpr_path("a/new"): gpr("a", "new")}, author="Bo <bo@example.com>")
    second = repos.commit(repo, {gpr_path("a/new"): gpr("a", "new", nodes=2), "README.md": "x"})
    turn = main_tree.turn
    main_tree.follow(store.fetch(["main"])["main"])
    assert main_tree.last[gpr_path("a/new")].commit == second != first
    assert main_tree.last["README.md"].email == "ada@example.com"
    assert main_tree.turn == turn + 2
    assert known(main_tree) == known(main_tree_at(store))
    assert main_tree.content(gpr_path("a/new")) == gpr("a", "new", nodes=2).encode()
    assert main_tree.content("nothing") is None
    repos.commit(repo, {gpr_path("a/new"): None, "README.md": None})
    main_tree.follow(store.fetch(["main"])["main"])
    assert main_tree.content(gpr_path("a/new")) is None


def test_a_history_that_was_replaced(place: tuple[Path, GitStore]) -> None:
    """All that differs counts as changed by its tip."""
    repo, store = place
    main_tree = main_tree_at(store)
    tree = repos.git(repo, "rev-parse", "main^{tree}")
    old = repos.tip(repo)
    repos.commit_tree(repo, tree, "main")
    repos.commit(repo, {gpr_path("a/other"): gpr("a", "other")})
    main_tree.follow(store.fetch(["main"])["main"])
    assert main_tree.last[gpr_path("a/other")].commit == repos.tip(repo) != old


def test_parsed_once_is_parsed_alike() -> None:
    """The same reading as everywhere, and what a cache has of it."""
    for text in (GOOD, BAD, "nonsense: ["):
        path = gpr_path("a/one")
        assert read_document(path, text.encode()) == reader.read_document(path, text.encode())
    kept = cached_text(gpr_path("a/one"), GOOD.encode())
    assert kept is not None
    assert kept[0] == blob_oid(GOOD.encode())
    assert reader.from_json(gpr_path("a/one"), kept[1]) == read_document(gpr_path("a/one"), GOOD.encode())
