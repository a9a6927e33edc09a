"""An API server that serves custom resources, and doors from it into a repository, for the tests that need them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.door import Rig
from tests.support.kube import Plane, control_plane
from tests.support.requests import CUSTOM, WHY, admission, install, namespace


@pytest.fixture(scope="session")
def custom_plane() -> Iterator[Plane]:
    """One for all tests of this process."""
    with control_plane(CUSTOM, WHY) as running:
        yield running


@pytest.fixture(scope="module")
def served(custom_plane, tmp_path_factory):
    """The custom resource and the webhook, for all tests of this module."""
    custom_plane.wipe()
    install(custom_plane)
    for name, slice_name in (("vision-train", "vision"), ("vision-eval", "vision"), ("nobodys", None)):
        namespace(custom_plane, name, slice_name)
    with admission(custom_plane, tmp_path_factory.mktemp("tls")):
        yield custom_plane


@pytest.fixture
def clean(served):
    """No object of another test."""
    for name in ("vision-train", "vision-eval", "nobodys"):
        served.api.delete(f"/apis/egs.dev/v1alpha1/namespaces/{name}/gprs")
    return served


@pytest.fixture
def rig(clean, tmp_path):
    found = Rig(clean, tmp_path)
    yield found
    found.close()
