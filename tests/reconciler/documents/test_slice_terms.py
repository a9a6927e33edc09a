"""What a slice is in a cluster: members, the bound on its GPUs, a pause, the MIG profile of a lease (C1, C6, D12)."""

from __future__ import annotations

import pytest

from reconciler.documents.slice_terms import terms_in
from reconciler.model.facts import Facts, Wanted
from reconciler.model.holdings import lease_ref
from reconciler.model.pools import manifest_pools
from schemas.documents.cluster import Cluster
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.status.gpr_status import GPRStatus, Phase
from tests.reconciler.acting.test_actions import request
from tests.support.world import at, cluster, parsed, project, slice_

HOLDING = {"a/x": request("a/x", Phase.PROVISIONED, ("h100-1", "h100-2"), 0)}


def wanted(slice_spec: dict[str, object], **east: object) -> Wanted:
    manifest, admin, document = (
        parsed("clusters/east.yaml", cluster("east", 4, **east)),
        parsed("project.yaml", project()),
        parsed("slices/a/slice.yaml", slice_("a", **slice_spec)),  # type: ignore[arg-type]
    )
    assert isinstance(manifest, Cluster)
    assert isinstance(admin, Project)
    assert isinstance(document, Slice)
    clusters = {"east": manifest.spec}
    return Wanted("c0", admin.spec, clusters, {"a": document.spec}, {}, {}, manifest_pools(clusters))


@pytest.mark.parametrize(
    ("quota", "requests", "want"),
    [
        pytest.param({}, {}, None, id="no quota, no bound"),
        pytest.param({"quota": {"gpus": 0}}, {}, None, id="a quota of 0 would have pods refused"),
        pytest.param({"quota": {"gpus": 0}}, HOLDING, None, id="also while it holds nodes"),
        pytest.param({"quota": {"gpus": 32}}, {}, 32, id="the quota"),
        pytest.param({"quota": {"gpus": 32}}, HOLDING, 32, id="the quota, when less is held"),
        pytest.param({"quota": {"gpus": 8}}, HOLDING, 16, id="what was approved beyond the quota"),
    ],
)
def test_the_bound_on_gpus(
    quota: dict[str, object], requests: dict[str, GPRStatus], want: int | None
) -> None:
    (terms,) = terms_in("east", wanted(quota), Facts(at(1), "c0", requests), None)
    assert terms.gpus == want


def test_who_reaches_the_servers_of_endpoints() -> None:
    """J2: the Gateway's proxies, and what reads their metrics."""
    metrics = {"prometheus": {"url": "https://prometheus.example.com", "namespace": "monitoring"}}
    east = {"gateway": {"name": "public", "namespace": "gateways", "proxies": "envoy"}, "metrics": metrics}
    (terms,) = terms_in("east", wanted({}, **east), Facts(at(1)), None)
    assert terms.callers == ("envoy", "monitoring")
    (terms,) = terms_in("east", wanted({}), Facts(at(1)), None)
    assert terms.callers == ()


def test_members_are_named_by_their_address() -> None:
    (terms,) = terms_in("east", wanted({}), Facts(at(1)), None)
    assert (terms.name, terms.namespaces, terms.members) == ("a", ("a",), ("bo@example.com",))


@pytest.mark.parametrize(
    ("of_slice", "of_cluster", "want"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_a_pause_of_either_counts(of_slice: bool, of_cluster: bool, want: bool) -> None:
    (terms,) = terms_in("east", wanted({"paused": of_slice}, paused=of_cluster), Facts(at(1)), None)
    assert terms.paused is want


def test_a_slice_that_left_the_cluster_belongs_there_while_it_holds_nodes() -> None:
    elsewhere = wanted({"clusters": ["west"]})
    assert terms_in("east", elsewhere, Facts(at(1)), None) == ()
    assert [terms.name for terms in terms_in("east", elsewhere, Facts(at(1), "c0", HOLDING), None)] == ["a"]


@pytest.mark.parametrize(("sharing", "want"), [("dedicated", ""), ("mig:1g.10gb", "1g.10gb")])
def test_a_lease_carries_its_mig_profile(sharing: str, want: str) -> None:
    """D17."""
    status = HOLDING["a/x"]
    spec = status.accepted_spec.model_copy(update={"sharing": sharing})
    lease = lease_ref("a/x", status.model_copy(update={"accepted_spec": spec}))
    assert lease is not None
    assert lease.mig == want
