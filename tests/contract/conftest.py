"""The drivers that the store's contract is run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.store.git import GitStore
from reconciler.store.memory import MemoryRemote, MemoryStore
from reconciler.store.port import Store
from tests.support import repos


@dataclass(frozen=True)
class World:
    """A remote: `store()` opens one more store on it, `delete` and `forbid_rewinds` act at the server."""

    store: Callable[[], Store]
    delete: Callable[[str], None]
    forbid_rewinds: Callable[[], None]
    go_down: Callable[[], None]


@pytest.fixture(params=["memory", "file", "http"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        if request.param == "memory":
            yield _in_memory()
            return
        repo = repos.bare(tmp_path / "served" / "repo.git")
        url = str(repo)
        if request.param == "http":
            url = stack.enter_context(repos.serve(repo.parent)) + "/repo.git"
        yield _on_git(repo, url, tmp_path, stack)


def _in_memory() -> World:
    remote = MemoryRemote()

    def forbid() -> None:
        remote.forbids_rewinds = True

    def go_down() -> None:
        remote.down = True

    return World(lambda: MemoryStore(remote), remote.delete, forbid, go_down)


def _on_git(repo: Path, url: str, folder: Path, stack: ExitStack) -> World:
    mirrors = iter(range(100))

    def store() -> Store:
        opened = GitStore(url, folder / f"mirror-{next(mirrors)}")
        stack.callback(opened.close)
        return opened

    return World(
        store,
        lambda branch: repos.git(repo, "branch", "-D", branch) and None,
        lambda: repos.git(repo, "config", "receive.denyNonFastForwards", "true") and None,
        lambda: repo.rename(repo.with_name("away.git")) and None,
    )
