"""The drivers that the contracts of stores and clusters are run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from reconciler.credentials import Credentials
from reconciler.model.cluster_port import Done, SliceTerms
from reconciler.store.git.git_store import GitStore
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Sign, Store
from tests.egs.remote import Shell
from tests.reconciler.clusters.rig import FIRST, NOW, RIGS, Rig, open_rig
from tests.support import repos, servers
from tests.support.memory_remote import MemoryRemote
from tests.support.portal import Site
from tests.support.short_way import short_way


class Opens(Protocol):
    """Makes stores."""

    def __call__(self, sign: Sign | None = None) -> Store: ...


@dataclass(frozen=True)
class World:
    """A remote: `store(sign=…)` opens one more store on it, `delete` and `forbid_rewinds` act at the server."""

    store: Opens
    delete: Callable[[str], None]
    forbid_rewinds: Callable[[], None]
    go_down: Callable[[], None]


@pytest.fixture(params=["memory", "file", "http", "ssh", "the short way"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        if request.param == "memory":
            yield _in_memory()
            return
        repo = repos.bare(tmp_path / "served" / "repo.git")
        url = str(repo)
        if request.param == "http":
            url = stack.enter_context(repos.serve(repo.parent)) + "/repo.git"
        credentials = None
        if request.param == "the short way":
            stack.enter_context(short_way())
        if request.param == "ssh":
            server: servers.Sshd = request.getfixturevalue("sshd")
            url, credentials = (
                f"{server.url}{repo}",
                Credentials(None, ssh_key=server.key, known_hosts=server.known_hosts),
            )
        yield _on_git(repo, url, tmp_path, stack, credentials)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Sshd]:
    if servers.SSHD is None:
        pytest.skip("sshd is not installed (openssh-server)")
    with servers.sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


def _in_memory() -> World:
    remote = MemoryRemote()

    def forbid() -> None:
        remote.forbids_rewinds = True

    def go_down() -> None:
        remote.down = True

    return World(lambda sign=None: MemoryStore(remote, sign), remote.delete, forbid, go_down)


def _on_git(repo: Path, url: str, folder: Path, stack: ExitStack, credentials: Credentials | None) -> World:
    mirrors = iter(range(100))

    def store(sign: Sign | None = None) -> Store:
        opened = GitStore(url, folder / f"mirror-{next(mirrors)}", credentials=credentials, sign=sign)
        stack.callback(opened.close)
        return opened

    return World(
        store,
        lambda branch: repos.git(repo, "branch", "-D", branch) and None,
        lambda: repos.git(repo, "config", "receive.denyNonFastForwards", "true") and None,
        lambda: repo.rename(repo.with_name("away.git")) and None,
    )


@pytest.fixture(params=RIGS)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """A cluster with the namespaces of two slices and nothing leased."""
    made = open_rig(request.param, tmp_path, lambda: request.getfixturevalue("kube"))
    made.driver.ensure_slice(SliceTerms("vision", ("vision-train",)), FIRST, NOW)
    made.driver.ensure_slice(SliceTerms("speech", ("speech-dev",)), FIRST, NOW)
    assert made.driver.ensure_fleet(FIRST, NOW) == Done()
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    """A server of the module's own site."""
    with site.server() as found:
        yield found


@pytest.fixture
def shell(site: Site, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Commands on the module's site, with its repository and with its server."""
    return Shell(site, url, tmp_path, capsys)
