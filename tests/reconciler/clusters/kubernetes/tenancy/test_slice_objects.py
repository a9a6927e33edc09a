"""What a slice's terms ask for, and the pauses between repairs: pure, so tables."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.clusters.kubernetes.tenancy import slice_objects
from reconciler.clusters.kubernetes.tenancy.namespaces import is_protected
from reconciler.clusters.kubernetes.tenancy.object_repair import (
    Quarrel,
    Quarrels,
    _others,
    repaired,
)
from reconciler.model import backoff
from tests.reconciler.clusters.kubernetes.tenants import BO, CY, NOW, SECOND, terms

HOUR = timedelta(hours=1)


def rules(body):
    """Every (group, resource, verb) that a role grants."""
    return {
        (group, resource, verb)
        for rule in body["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_members_role_grants_nothing_that_moves_a_wall():
    """B10: the reference's list of what a user's role must not have."""
    granted = rules(slice_objects.member_role())
    assert not {(group, resource) for group, resource, _ in granted} & {
        ("", "secrets"),
        ("", "serviceaccounts"),
        ("", "serviceaccounts/token"),
        ("", "limitranges"),
        ("", "nodes"),
        ("", "pods/binding"),
        ("", "pods/eviction"),
        (slice_objects.RBAC, "roles"),
        (slice_objects.RBAC, "rolebindings"),
    }
    readable = {"resourcequotas", "namespaces", "networkpolicies", "events", "pods/log"}
    assert {verb for _, resource, verb in granted if resource in readable} == {"get", "list", "watch"}
    assert not {word for right in granted for word in right if "*" in word}


def test_a_pipeline_of_the_slice_may_ask_by_an_object():
    """A8: its request as a custom resource, but not what became of it, which only the door writes."""
    granted = rules(slice_objects.member_role())
    assert {verb for group, resource, verb in granted if (group, resource) == ("egs.dev", "gprs")} == {
        *("get", "list", "watch", "create", "update", "patch", "delete"),
    }
    assert {resource for group, resource, _ in granted if group == "egs.dev"} == {"gprs"}


def test_every_binding_is_to_the_fixed_role_or_to_a_members_own():
    """A manifest names people; it can never grant more than the one role."""
    bodies = slice_objects.objects(terms(), "default", "vision")
    bindings = [body for body in bodies if body["kind"] == "RoleBinding"]
    roles = {body["metadata"]["name"] for body in bodies if body["kind"] == "Role"}
    for body in bindings:
        ref = body["roleRef"]
        assert (ref["kind"], ref["name"]) == ("ClusterRole", slice_objects.MEMBER_ROLE) or ref[
            "name"
        ] in roles
    for body in bodies:
        if body["kind"] == "Role" and body["metadata"]["name"] != slice_objects.RENDERED:
            assert all(rule["resourceNames"] for rule in body["rules"])


def test_only_the_account_of_workloads_writes_routes_and_scalers():
    """J2: a ScaledObject, which KServe makes of an InferenceService too, sends a TriggerAuthentication's key away."""
    bodies = slice_objects.objects(terms(), "default", "vision")
    ours = {body["kind"]: body for body in bodies if body["metadata"]["name"] == slice_objects.RENDERED}
    (subject,) = ours["RoleBinding"]["subjects"]
    assert (subject["kind"], subject["name"]) == ("ServiceAccount", "egs-member-workloads")
    granted = {plural for rule in ours["Role"]["rules"] for plural in rule["resources"]}
    assert granted == {"httproutes", "inferenceservices", "scaledobjects"}
    for rule in slice_objects.member_role()["rules"]:
        if granted & {*rule["resources"]}:
            assert {*rule["verbs"]} == {"get", "list", "watch"}


def test_the_same_terms_give_the_same_objects_whatever_their_order():
    one = slice_objects.objects(terms(members=(BO, CY)), "default", "vision")
    assert one == slice_objects.objects(terms(members=(CY, BO, BO)), "default", "vision")


def test_walls_come_before_rights():
    """No pod of a member ever runs without them."""
    kinds = [body["kind"] for body in slice_objects.objects(terms(), "default", "vision")]
    assert kinds.index("NetworkPolicy") == 0
    assert kinds[-1] == "RoleBinding"


def test_nothing_leaves_for_the_clusters_own_networks():
    """C6: the world is reached, the metadata service, nodes and others' pods are not."""
    world = next(
        body
        for body in slice_objects.objects(terms(), "default", "vision")
        if body["metadata"]["name"] == "egs-world"
    )
    blocks = [peer["ipBlock"] for rule in world["spec"]["egress"] for peer in rule["to"]]
    assert [block["cidr"] for block in blocks] == ["0.0.0.0/0", "::/0"]
    assert {"10.0.0.0/8", "169.254.0.0/16"} <= set(blocks[0]["except"])


def test_the_gateway_reaches_the_servers_of_endpoints_and_nothing_else():
    """J2: members' other pods stay closed, and without a gateway there is no hole."""
    named = {
        body["metadata"]["name"]: body
        for body in slice_objects.objects(terms(callers=("gateways", "monitoring")), "default", "vision")
    }
    spec = named["egs-endpoints"]["spec"]
    assert spec["podSelector"] == {"matchExpressions": [{"key": "egs.dev/endpoint", "operator": "Exists"}]}
    (rule,) = spec["ingress"]
    peers = [peer["namespaceSelector"]["matchLabels"] for peer in rule["from"]]
    assert peers == [{"kubernetes.io/metadata.name": name} for name in ("gateways", "monitoring")]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8000}]
    assert all(
        body["metadata"]["name"] != "egs-endpoints"
        for body in slice_objects.objects(terms(), "default", "vision")
    )


def test_an_address_is_the_same_member_in_any_case_and_fits_into_a_name():
    assert slice_objects.account_name("Bo@Example.com") == slice_objects.account_name(BO)
    assert slice_objects.account_name(BO) != slice_objects.account_name(CY)
    twice = slice_objects.objects(terms(members=(BO, BO.upper())), "default", "vision")
    assert len({slice_objects.identity(body) for body in twice}) == len(twice)
    assert len(slice_objects.account_name("x" * 64 + "@" + "y" * 189)) < 63


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        pytest.param({}, (), id="as it should be"),
        pytest.param({"spec": {"podSelector": {}}}, ("spec.policyTypes",), id="one field less"),
        pytest.param({"more": 1}, (), id="a field that is none of its content"),
        pytest.param(
            {"metadata": {"labels": {}}},
            tuple(f"metadata.labels[{k}]" for k in slice_objects.labels("vision", "default")),
            id="no labels",
        ),
    ],
)
def test_what_differs_is_named(change, fields):
    want = slice_objects.objects(terms(), "default", "vision")[0]
    assert slice_objects.differing(slice_objects.POLICY, want, {**want, **change}) == fields


@pytest.mark.parametrize(
    ("before", "after", "rests"),
    [
        pytest.param(None, Quarrel("a", 0, NOW), timedelta(), id="the first writing is no repair"),
        pytest.param(Quarrel("a", 0, NOW - HOUR), Quarrel("a", 1, NOW), 5 * SECOND, id="the first repair"),
        pytest.param(Quarrel("a", 2, NOW - 20 * SECOND), Quarrel("a", 3, NOW), 20 * SECOND, id="ever longer"),
        pytest.param(
            Quarrel("a", 99, NOW - HOUR),
            Quarrel("a", 100, NOW),
            backoff.OBJECT_REPAIRS.longest,
            id="up to an hour",
        ),
        pytest.param(Quarrel("a", 9, NOW - 3 * HOUR), Quarrel("a", 1, NOW), 5 * SECOND, id="peace ends it"),
        pytest.param(
            Quarrel("b", 9, NOW - SECOND), Quarrel("a", 0, NOW), timedelta(), id="other terms, no quarrel"
        ),
    ],
)
def test_pauses_between_repairs(before, after, rests):
    """H13."""
    assert repaired(before, "a", NOW) == after
    assert after.rests_until - NOW == rests


def test_a_quarrel_is_forgotten_when_its_object_was_left_in_peace_for_long():
    """No process grows with all the objects that it ever wrote."""
    quarrels = Quarrels()
    for hours in range(48):
        for times in range(3):
            quarrels.repaired(f"object {hours}", "a", NOW + hours * HOUR + times * 5 * SECOND)
    now = NOW + 47 * HOUR + 11 * SECOND
    assert quarrels.rests_until("object 47", "a", now) == NOW + 47 * HOUR + 20 * SECOND
    assert quarrels.rests_until("object 47", "b", now) is None
    assert len(quarrels) < 5


@pytest.mark.parametrize(
    "name", ["kube-system", "default", "egs-system", "egs-own", "openshift-config", "gpu-operator"]
)
def test_namespaces_of_the_cluster_itself_are_nobodys(name):
    assert is_protected(name, "egs-system")
    assert not is_protected("vision", "egs-system")


def test_whoever_writes_a_status_is_not_blamed_for_a_drift() -> None:
    """kubelets and controllers write statuses all the time; what was changed is of whoever changed the object."""
    entries = [
        {"manager": "kubectl-edit", "time": "2026-11-21T08:00:00Z"},
        {"manager": "kube-controller-manager", "time": "2026-11-21T09:00:00Z", "subresource": "status"},
        {"manager": "egs", "time": "2026-11-21T10:00:00Z"},
    ]
    assert _others({"managedFields": entries}) == "kubectl-edit"
    assert _others({"managedFields": entries[1:]}) == ""
    assert _others({}) == ""
