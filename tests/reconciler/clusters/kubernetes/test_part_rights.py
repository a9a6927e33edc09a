"""Webhook and election may do what is shipped for them and no more: it is enough, and each verb less is missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clock import ManualClock
from reconciler.clusters.kubernetes.admission.closed_nodes import ClosedNodes
from reconciler.clusters.kubernetes.admission.closing_objects import closed_nodes_map
from reconciler.clusters.kubernetes.admission.webhook import AdmissionService
from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.api.lease_election import Election
from reconciler.clusters.kubernetes.names import NAMESPACE_SLICE
from reconciler.clusters.kubernetes.rbac import ADMISSION_RULES, DOOR_RULES
from reconciler.deploying import part_rights
from reconciler.deploying.install_values import read
from reconciler.deploying.installed_objects import objects
from schemas.errors import Fault
from tests.deploy.cases import CASES
from tests.reconciler.clusters.kubernetes.shipped import PLACE, account, called, each
from tests.reconciler.clusters.kubernetes.tenants import namespace
from tests.support.kube import Plane, eventually

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
ELECTION_RULES = part_rights.election(PLACE, "controller")


@pytest.mark.parametrize(
    ("part", "rules"), [("door", DOOR_RULES), ("admission", ADMISSION_RULES)], ids=["door", "webhook"]
)
def test_what_is_tested_is_what_is_shipped(part, rules):
    values = read(CASES["pull mode with every part and two replicas"])
    mine = [o for o in objects(values, PLACE) if o["metadata"]["name"] == PLACE.named(part)]
    given = [row for o in mine if o["kind"] in {"Role", "ClusterRole"} for row in o["rules"]]
    assert sorted(map(str, given)) == sorted(map(str, part_rights.written(rules)))


def served(plane: Plane, api: Api) -> None:
    """A webhook's life: its certificate made and renewed, namespaces heard of and asked for."""
    clock = ManualClock(NOW)
    service = AdmissionService(api, PLACE.namespace, "127.0.0.1:0", clock, "127.0.0.1")
    service.start()
    try:
        known = service._slices._known
        known.wait_synced(10)
        assert service._slices("nobodys") is None
        namespace(plane, "vision", labels={NAMESPACE_SLICE: "vision"})
        eventually(lambda: "vision" in known.items() or known.trouble, "word of a new namespace")
        closed = service._closed_maps
        closed.wait_synced(10)
        plane.api.create(
            f"/api/v1/namespaces/{PLACE.namespace}/configmaps",
            closed_nodes_map("default", PLACE.namespace, ClosedNodes(nodes=("h100-1",))),
        )
        eventually(lambda: service._closed() or closed.trouble, "word of what is closed")
        for trouble in (known.trouble, closed.trouble):
            if trouble:
                raise trouble
        clock.set(NOW + timedelta(days=70))
        service.refresh()
    finally:
        service.stop()


def test_the_webhooks_rights_are_enough(kube):
    served(kube, account(kube, "admission", ADMISSION_RULES))


@pytest.mark.parametrize("right", each(ADMISSION_RULES), ids=called)
def test_the_webhook_misses_each_verb_and_says_which(kube, right):
    api = account(kube, "admission", ADMISSION_RULES, right)
    with pytest.raises(Fault) as caught:
        served(kube, api)
    assert f'cannot {right[1]} resource "{right[0].resource}"' in str(caught.value)
    assert "grant the controller this verb" in str(caught.value)


def led(api: Api) -> bool:
    """Whether one process leads after it took the Lease and after it renewed it."""
    wall, seconds = ManualClock(NOW), [1000.0]
    election = Election(
        api,
        PLACE.namespace,
        PLACE.named("controller"),
        "me",
        clock=wall,
        monotonic=lambda: seconds[0],
    )
    for _ in range(2):
        election.step()
        leads = election.leads()
        seconds[0] += 60
        wall.set(NOW + timedelta(minutes=1))
    return leads


def test_the_elections_rights_are_enough(kube):
    assert led(account(kube, "controller", ELECTION_RULES))


@pytest.mark.parametrize("right", each(ELECTION_RULES), ids=called)
def test_an_election_misses_each_verb_and_says_which(kube, right, caplog):
    assert not led(account(kube, "controller", ELECTION_RULES, right))
    assert f'cannot {right[1]} resource "leases"' in caplog.text
