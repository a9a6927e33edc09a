"""What exports a slice's Services, and what its controller says of them: pure (C7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.clusters.kubernetes.services.export_objects import (
    NO_CONTROLLER,
    Served,
    export_objects,
    shown,
)
from reconciler.clusters.kubernetes.tenancy.slice_objects import objects
from reconciler.model.service_port import MOST_EXPORTS, ExportView, Peer
from tests.reconciler.clusters.kubernetes.tenants import NOW, terms

WEST = Peer("west", "west-1")
TERMS = replace(terms("vision", "vision", "vision-dev"), peers=(WEST, Peer("north", "north")))
CILIUM = Served("v1beta1", has_cilium=True)
SERVICES = {"vision": ["b", "a"], "vision-dev": ["c"], "speech": ["d"]}


def test_only_the_slice_s_own_services_are_exported() -> None:
    """With the policies first: who may come in is known before anything can be reached."""
    made = export_objects(TERMS, "default", CILIUM, SERVICES)
    assert [(body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]) for body in made] == [
        ("CiliumNetworkPolicy", "vision", "egs-peers"),
        ("CiliumNetworkPolicy", "vision-dev", "egs-peers"),
        ("ServiceExport", "vision", "a"),
        ("ServiceExport", "vision", "b"),
        ("ServiceExport", "vision-dev", "c"),
    ]
    assert {body["apiVersion"] for body in made} == {"cilium.io/v2", "multicluster.x-k8s.io/v1beta1"}


def test_peers_are_the_same_slice_of_the_same_project_in_clusters_by_name() -> None:
    policy = export_objects(TERMS, "default", CILIUM, {})[0]["spec"]
    pods = {
        "matchLabels": {
            "k8s:io.cilium.k8s.namespace.labels.egs.dev/slice": "vision",
            "k8s:io.cilium.k8s.namespace.labels.egs.dev/project": "default",
        },
        "matchExpressions": [
            {"key": "k8s:io.cilium.k8s.policy.cluster", "operator": "In", "values": ["north", "west-1"]}
        ],
    }
    assert policy == {
        "endpointSelector": {},
        "ingress": [{"fromEndpoints": [pods]}],
        "egress": [{"toEndpoints": [pods]}],
    }


@pytest.mark.parametrize(
    ("wanted", "served", "kinds"),
    [
        pytest.param(replace(TERMS, peers=None), CILIUM, set(), id="not asked for"),
        pytest.param(TERMS, Served("v1alpha1"), {"ServiceExport"}, id="no Cilium"),
        pytest.param(replace(TERMS, peers=()), CILIUM, {"ServiceExport"}, id="no other cluster"),
    ],
)
def test_nothing_more_than_is_asked_for(wanted: Any, served: Served, kinds: set[str]) -> None:
    assert {body["kind"] for body in export_objects(wanted, "default", served, SERVICES)} == kinds


def test_a_slice_exports_no_more_than_the_bound() -> None:
    many = {"vision": [f"s-{number:03}" for number in range(MOST_EXPORTS + 5)]}
    made = export_objects(TERMS, "default", Served("v1beta1"), many)
    assert [body["metadata"]["name"] for body in made] == many["vision"][:MOST_EXPORTS]


@pytest.mark.parametrize(
    ("addresses", "want"),
    [
        pytest.param((), {}, id="no address is known: nothing is let in"),
        pytest.param(
            ("10.8.0.0/14",),
            {
                "egs-peers-in": {
                    "podSelector": {"matchLabels": {"egs.dev/export": "true"}},
                    "policyTypes": ["Ingress"],
                    "ingress": [{"from": [{"ipBlock": {"cidr": "10.8.0.0/14"}}]}],
                },
                "egs-peers-out": {
                    "podSelector": {},
                    "policyTypes": ["Egress"],
                    "egress": [{"to": [{"ipBlock": {"cidr": "10.8.0.0/14"}}]}],
                },
            },
            id="only exported pods are open to them",
        ),
    ],
)
def test_policies_by_address(addresses: tuple[str, ...], want: dict[str, object]) -> None:
    """C7: what can be done without Cilium."""
    made = objects(replace(TERMS, peers=(replace(WEST, addresses=addresses),)), "default", "vision")
    found = {body["metadata"]["name"]: body["spec"] for body in made if body["kind"] == "NetworkPolicy"}
    assert {name: spec for name, spec in found.items() if name.startswith("egs-peers")} == want


def condition(kind: str, status: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": "Any", "message": message}


@pytest.mark.parametrize(
    ("conditions", "age_s", "want"),
    [
        ([], 59, ("Waiting", "")),
        ([], 60, ("Unanswered", NO_CONTROLLER)),
        ([condition("Valid", "True")], 60, ("Exported", "")),
        ([condition("Valid", "True"), condition("Ready", "True")], 60, ("Exported", "")),
        ([condition("Valid", "True"), condition("Ready", "False", "soon")], 60, ("Waiting", "soon")),
        ([condition("Valid", "False", "no such Service")], 60, ("Refused", "no such Service")),
        (
            [condition("Valid", "True"), condition("Conflict", "True", "other ports")],
            0,
            ("Conflict", "other ports"),
        ),
        ([condition("Valid", "True"), condition("Conflict", "False")], 0, ("Exported", "")),
        ([condition("Valid", "False")], 0, ("Refused", "Any")),
        ([condition("Valid", "False", "a\n\x1b[31mb\u202ec")], 0, ("Refused", "a [31mb c")),
        ([condition("Valid", "False", "x" * 301)], 0, ("Refused", "x" * 299 + "…")),
    ],
)
def test_what_a_controller_says(conditions: list[object], age_s: int, want: tuple[str, str]) -> None:
    """As the API's conditions mean it; a controller that says nothing is missed after a minute."""
    body = {"status": {"conditions": conditions}} if conditions else {}
    made = NOW - timedelta(seconds=age_s)
    assert shown("vision", "db", body, made, NOW) == ExportView("vision", "db", *want)  # type: ignore[arg-type]
