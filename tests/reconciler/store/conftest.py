"""A bare repository with one file, and stores on it that are closed in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.store.git.git_store import GitStore
from reconciler.store.git.mirror import Limits
from reconciler.store.store_port import Draft, Outcome, Person
from tests.support import repos

Open = Callable[..., GitStore]
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
BO = Person("Bo", "bo@example.com")


def push_one(store: GitStore, branch="main", path="a", content=b"1") -> str:
    tip = store.fetch([branch]).get(branch)
    new = store.write(Draft({path: content}, "Change", BO, NOW, tip, tip))
    assert store.push(branch, new, tip) is Outcome.COMMITTED
    return new


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return repos.bare(tmp_path / "remote.git", {"project.yaml": "kind: Project\n"})


@pytest.fixture
def open_store(remote: Path, tmp_path: Path) -> Iterator[Open]:
    """Opens stores; without arguments on `remote`, each with a mirror of its own."""
    count = iter(range(100))
    with ExitStack() as stack:

        def opened(
            url: str | None = None, mirror: Path | None = None, limits: Limits | None = None
        ) -> GitStore:
            store = GitStore(url or str(remote), mirror or tmp_path / f"mirror-{next(count)}", limits)
            stack.callback(store.close)
            return store

        yield opened
