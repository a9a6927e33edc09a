"""One Hypothesis profile for everybody: the same examples in every run, so that a red build is a red change.

`EGS_TEST_RANDOM=1` draws new ones, for nightly runs and for hunting.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.kube import NEW, WHY_NEW, Plane, control_plane

settings.register_profile(
    "egs",
    deadline=None,  # a loaded machine is no failure
    derandomize=not os.environ.get("EGS_TEST_RANDOM"),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("egs")


@pytest.fixture(scope="session")
def plane() -> Iterator[Plane]:
    """One control plane for all tests of this process; see `tests.support.kube`."""
    with control_plane() as running:
        yield running


@pytest.fixture
def kube(plane: Plane) -> Plane:
    """That control plane, empty."""
    plane.wipe()
    return plane


@pytest.fixture(scope="session")
def new_plane() -> Iterator[Plane]:
    """Another one, of a Kubernetes that serves what the oldest does not; see `tests.support.kube`."""
    with control_plane(NEW, WHY_NEW) as running:
        yield running


@pytest.fixture
def new_kube(new_plane: Plane) -> Plane:
    """That control plane, empty."""
    new_plane.wipe()
    return new_plane
