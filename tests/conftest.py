"""What every test has: one Hypothesis profile, and a control plane for those that ask for one."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from contextlib import nullcontext

import pytest

from reconciler.machine_code import make_ready
from tests.support import profile
from tests.support.budget import Budget
from tests.support.in_memory import memory_folder
from tests.support.kube import NEW, ON_NEW, ON_OLD, WHY_NEW, Lent, Plane, control_plane
from tests.support.short_way import goes_short, short_way

profile.load()
SELDOM = (20_000, 20, 20)
"""New objects, and collections of younger ones, before the garbage collector looks: it took one second in twenty."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this project's tests."""
    parser.addoption("--budget", action="store_true", help="print where the time went, by folder of tests")


def pytest_configure(config: pytest.Config) -> None:
    """The budget is kept where all reports arrive: in the process that was started, not in its workers.

    The files of tests are in memory where there is room.
    """
    make_ready()
    folder = memory_folder()
    if folder is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    if config.getoption("--budget") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Budget(config))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Ten thousand collected tests live to the end: the garbage collector need not visit them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*SELDOM)
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of one control plane, or of one module's fixture, in one process: the others make none.

    `--dist loadgroup` does so by these marks.
    """
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "plane" in names:
            item.add_marker(ON_OLD)
        if "new_plane" in names:
            item.add_marker(ON_NEW)
        if _shares(item) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def _shares(item: pytest.Item) -> bool:
    """True if it uses a fixture of its module that is made once for all of the module's tests."""
    assert isinstance(item, pytest.Function)
    known = item._fixtureinfo.name2fixturedefs.values()
    return any(found[-1].scope == "module" and found[-1].baseid for found in known)


@pytest.fixture(scope="module", autouse=True)
def _short_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Repositories on this machine without a process for each fetch and push, where that is not the point."""
    with short_way() if goes_short(request.path) else nullcontext():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """A control plane ends with the last test of its group: an idle one takes a twentieth of a core."""
    yield
    group = _group(item)
    if group in RUNNING and nextitem is not None and _group(nextitem) != group:
        RUNNING.pop(group).end_soon()


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark and hasattr(item.config, "workerinput") else ""


def _check_group(request: pytest.FixtureRequest, group: str) -> None:
    """A test that names the fixture in a parameter has to mark it: its control plane may have ended."""
    is_in_it = any(group in mark.args for mark in request.node.iter_markers("xdist_group"))
    assert is_in_it, f"{request.node.name}: mark the parameter ON_OLD or ON_NEW (tests.support.kube)"


RUNNING: dict[str, Lent] = {}
"""Control planes of this process, by the group of tests that use them."""


@pytest.fixture(scope="session")
def plane() -> Iterator[Plane]:
    """One control plane for all tests of this process; see `tests.support.kube`."""
    with Lent(control_plane()) as RUNNING["plane"]:
        yield RUNNING["plane"].running


@pytest.fixture
def kube(plane: Plane, request: pytest.FixtureRequest) -> Plane:
    """That control plane, empty."""
    _check_group(request, "plane")
    plane.wipe()
    return plane


@pytest.fixture(scope="session")
def new_plane() -> Iterator[Plane]:
    """Another one, of a Kubernetes that serves what the oldest does not; see `tests.support.kube`."""
    with Lent(control_plane(NEW, WHY_NEW)) as RUNNING["new_plane"]:
        yield RUNNING["new_plane"].running


@pytest.fixture
def new_kube(new_plane: Plane, request: pytest.FixtureRequest) -> Plane:
    """That control plane, empty."""
    _check_group(request, "new_plane")
    new_plane.wipe()
    return new_plane
