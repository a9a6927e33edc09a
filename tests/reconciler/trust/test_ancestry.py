"""What is on a side, beside git's own answer."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.store.git.local_store import LocalStore
from reconciler.trust import ancestry
from reconciler.trust.ancestry import Reads, TooMuch, side_of
from tests.support import repos
from tests.support.profile import law

GRAPHS = st.lists(st.lists(st.integers(1, 6), max_size=3, unique=True), min_size=2, max_size=24)
"""Commits, each by how many before it lie its parents."""


def made(folder: Path, graph: list[list[int]]) -> tuple[Path, list[str]]:
    repo = repos.bare(folder / "x.git", {"a": "1"})
    tree = repos.git(repo, "rev-parse", "main^{tree}")
    oids: list[str] = []
    for number, back in enumerate(graph):
        parents = [oids[number - step] for step in back if step <= number]
        head = [f"tree {tree}", *(f"parent {oid}" for oid in parents)]
        who = "x <x@example.com> 1 +0000"
        text = "\n".join([*head, f"author {who}", f"committer {who}"]) + f"\n\n{number}\n"
        oids.append(repos.write_object(repo, "commit", text.encode()))
    return repo, oids


def listed(repo: Path, *args: str) -> set[str]:
    command = ["git", "rev-list", *args]
    done = subprocess.run(
        command, cwd=repo, env=repos.ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@law(25)
@given(GRAPHS, st.data())
def test_a_side_is_what_git_says(graph: list[list[int]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repo, oids = made(Path(folder), graph)
        old = data.draw(st.sampled_from(oids))
        starts = data.draw(st.lists(st.sampled_from(oids), min_size=1, max_size=3))
        store = LocalStore(repo)
        side = side_of(Reads(store), starts, old)
        assert set(side.commits) == listed(repo, *starts, f"^{old}")
        for oid in side.commits:
            below = listed(repo, oid) - {oid}
            assert {one for one in side.commits if side.below.has(side.below.bits[oid], one)} == (
                below & set(side.commits)
            )
            assert set(side.forks_of(oid)) <= below & listed(repo, old)
        store.close()


def chain(folder: Path, length: int) -> tuple[Path, list[str]]:
    return made(folder, [[], *([1] for _ in range(length))])


def test_a_long_row_costs_few_questions(tmp_path: Path) -> None:
    repo, oids = chain(tmp_path, 300)
    store = LocalStore(repo)
    for fork in (0, 1, 150, 298):
        reads = Reads(store)
        assert len(side_of(reads, [oids[-1]], oids[fork]).commits) == 300 - fork
        assert reads.work <= 2 * 300 + 20 * ancestry.PROCESS


def test_beyond_the_bounds_nothing_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, oids = chain(tmp_path, 20)
    store = LocalStore(repo)
    monkeypatch.setattr(ancestry, "MOST_SIDE_COMMITS", 10)
    assert len(side_of(Reads(store), [oids[-1]], oids[10]).commits) == 10
    with pytest.raises(TooMuch):
        side_of(Reads(store), [oids[-1]], oids[9])
    monkeypatch.setattr(ancestry, "MOST_SIDE_COMMITS", 1000)
    monkeypatch.setattr(ancestry, "MOST_QUESTIONS", 2)
    with pytest.raises(TooMuch):
        side_of(Reads(store), [oids[-1]], oids[9])
