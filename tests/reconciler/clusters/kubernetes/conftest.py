"""What several pages of tests stand on: doors into a repository, checks, slices, a driver of a prepared cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from tests.reconciler.clusters.kubernetes.checking import Bench, node, spec
from tests.reconciler.clusters.kubernetes.living import HOME, OBSERVED, Site, prepared
from tests.reconciler.clusters.kubernetes.tenants import NOW, opened
from tests.support.door import Rig
from tests.support.faulty import Wire
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


@pytest.fixture
def bench(request, kube):
    """One node h100-1; the parameter, if any, is `spec.checks`."""
    made = Bench(kube, spec(**getattr(request, "param", {})))
    made.add(node())
    yield made
    made.stop()


@pytest.fixture
def slices(kube):
    """A controller of an empty cluster."""
    found = opened(kube.api)
    yield found
    found.stop()


@pytest.fixture
def site(kube) -> Iterator[Site]:
    prepared(kube)
    api = kube.connect()
    found = Site(kube, KubernetesCluster("east", OBSERVED, api, HOME), Wire(api))
    found.driver.observe(NOW)
    yield found
    found.driver.close()
