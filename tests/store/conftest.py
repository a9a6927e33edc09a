"""A bare repository with one file, and stores on it that are closed in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from reconciler.store.git import GitStore
from reconciler.store.mirror import Limits
from tests.support import repos

Open = Callable[..., GitStore]


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
