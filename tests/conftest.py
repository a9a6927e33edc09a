"""One Hypothesis profile for everybody: the same examples in every run, so that a red build is a red change.

`EGS_TEST_RANDOM=1` draws new ones, for nightly runs and for hunting.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.kube import Plane, control_plane

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
