"""An API server that serves custom resources, and doors from it into a repository, for the tests that need them."""

from __future__ import annotations

import pytest

from tests.support.door import Rig
from tests.support.requests import admission, install, namespace


@pytest.fixture(scope="module")
def served(new_plane):
    """The custom resource and the webhook, for all tests of this module."""
    new_plane.wipe()
    install(new_plane)
    for name, slice_name in (("vision-train", "vision"), ("vision-eval", "vision"), ("nobodys", None)):
        namespace(new_plane, name, slice_name)
    with admission(new_plane):
        yield new_plane


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
