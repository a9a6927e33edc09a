"""A member's way in: what it opens, what it does not, and when it closes (B5, B6, B10), on a real API server."""

from __future__ import annotations

from datetime import timedelta

import pytest
import yaml

from reconciler.clusters.kubernetes.api.connection import from_text
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.kubernetes.tenancy.member_tokens import Door, Whose
from reconciler.clusters.kubernetes.tenancy.slice_objects import account_name, secret_name
from reconciler.model.cluster_port import Done
from schemas.errors import UserError
from tests.reconciler.clusters.kubernetes.tenants import (
    BO,
    CY,
    NEWER,
    NOW,
    RBAC,
    as_user,
    ensured,
    finished,
    opened,
    pod,
    refused,
    terms,
)
from tests.support.kube import eventually

LIFE = timedelta(hours=1)
PODS = "/api/v1/namespaces/vision/pods"


@pytest.fixture
def slices(kube):
    """Slices `vision` of Bo and Cy in two namespaces, and `speech` of Cy."""
    found = opened(kube.api)
    ensured(found, terms("vision", "vision", "vision-dev"))
    ensured(found, terms("speech", members=(CY,)))
    eventually(
        lambda: kube.api.find("/api/v1/namespaces/vision/serviceaccounts/default"), "the default account"
    )
    yield found
    found.stop()


def entered(plane, given):
    """The API with that token alone."""
    door = Door(plane.kubeconfig, plane.kubeconfig.read_text(), None)
    users = {"vision": member_tokens.by_token(given)}
    return from_text(
        "east", yaml.safe_dump(member_tokens.document("vision", "east", member_tokens.server_of(door), users))
    )


MINE = Whose("vision", "vision", BO)


def issued(plane, api, whose=MINE):
    """A token, asked for by somebody."""
    return member_tokens.token(api, member_tokens.renewed(api, whose), LIFE)


def unused(plane, api, ticket):
    """The API with a token of the ticket that was never used; one like it works.

    An API server takes a token that it has accepted for another ten seconds without looking again.
    """
    assert allowed(entered(plane, member_tokens.token(api, ticket, LIFE)), PODS)
    return entered(plane, member_tokens.token(api, ticket, LIFE + timedelta(minutes=1)))


@pytest.fixture
def bo(kube, slices):
    """The API as Bo, by Bo's own credentials of the cluster."""
    api = as_user(kube, BO)
    eventually(lambda: allowed(api, PODS), "Bo's rights")
    return api


def allowed(api, path):
    """Whether that can be read."""
    try:
        api.get(path)
    except Exception:
        return False
    return True


def dead(api):
    """Its token is no longer known."""
    assert refused(lambda: api.get(PODS)) == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("POST", PODS, pod("p"), id="start a pod"),
        pytest.param(
            "POST",
            "/api/v1/namespaces/vision/configmaps",
            {"metadata": {"name": "c"}, "data": {"a": "b"}},
            id="make a config map",
        ),
        pytest.param(
            "POST",
            "/apis/batch/v1/namespaces/vision/jobs",
            {"metadata": {"name": "j"}, "spec": {"template": pod("x", restartPolicy="Never")}},
            id="start a job",
        ),
        pytest.param("GET", "/api/v1/namespaces/vision/events", None, id="read events"),
        pytest.param("GET", "/api/v1/namespaces/vision/resourcequotas/egs-gpus", None, id="read its bound"),
        pytest.param("GET", "/api/v1/namespaces/vision", None, id="read its namespace"),
    ],
)
def test_a_member_may_work_in_the_slice(kube, bo, method, path, body):
    """B4, B6: with the token, and with their own credentials."""
    token = entered(kube, issued(kube, bo))
    token._json(method, path, {}, body)
    if body:
        bo.delete(f"{path}/{body['metadata']['name']}")
    bo._json(method, path, {}, body)


ROLES = f"{RBAC}/namespaces/vision/roles"
ELSEWHERE = [
    pytest.param("GET", "/api/v1/namespaces/speech/pods", None, id="see another slice's pods"),
    pytest.param("GET", "/api/v1/namespaces", None, id="list namespaces"),
    pytest.param("GET", "/api/v1/nodes", None, id="list nodes"),
    pytest.param("GET", "/api/v1/pods", None, id="list everybody's pods"),
    pytest.param("GET", "/api/v1/namespaces/vision/secrets", None, id="list Secrets"),
    pytest.param(
        "GET", f"/api/v1/namespaces/vision/secrets/{secret_name(CY)}", None, id="read another member's Secret"
    ),
    pytest.param(
        "POST", "/api/v1/namespaces/vision/secrets", {"metadata": {"name": "s"}}, id="make a Secret"
    ),
    pytest.param(
        "POST",
        f"/api/v1/namespaces/vision/serviceaccounts/{account_name(CY)}/token",
        {"spec": {}},
        id="get a token of another member's account",
    ),
    pytest.param(
        "POST",
        "/api/v1/namespaces/vision/serviceaccounts/default/token",
        {"spec": {}},
        id="get any other token",
    ),
    pytest.param("POST", ROLES, {"metadata": {"name": "r"}, "rules": []}, id="make a role"),
    pytest.param(
        "PATCH",
        f"{RBAC}/namespaces/vision/rolebindings/egs-members",
        {"subjects": []},
        id="change who is a member",
    ),
    pytest.param(
        "PATCH",
        "/apis/networking.k8s.io/v1/namespaces/vision/networkpolicies/egs-default-deny",
        {"spec": {"policyTypes": ["Egress"]}},
        id="open a wall",
    ),
    pytest.param(
        "POST",
        "/apis/networking.k8s.io/v1/namespaces/vision/networkpolicies",
        {"metadata": {"name": "n"}, "spec": {"podSelector": {}, "ingress": [{}]}},
        id="make a gap in the wall",
    ),
    pytest.param(
        "PATCH",
        "/api/v1/namespaces/vision/resourcequotas/egs-gpus",
        {"spec": {"hard": {"requests.nvidia.com/gpu": "99"}}},
        id="raise the bound",
    ),
    pytest.param(
        "PATCH",
        "/api/v1/namespaces/vision",
        {"metadata": {"labels": {"egs.dev/slice": "speech"}}},
        id="move over",
    ),
    pytest.param(
        "POST",
        f"{PODS}/p/binding",
        {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
        id="bind a pod to a node",
    ),
]


@pytest.mark.parametrize(("method", "path", "body"), ELSEWHERE)
def test_what_a_member_may_not(kube, bo, method, path, body):
    """B6, B10: the walls of a slice are its own, and not its members' to move."""
    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
    for api in (bo, entered(kube, issued(kube, bo))):
        assert refused(lambda api=api: api._json(method, path, {}, body, content)) == 403


def test_a_token_of_one_namespace_opens_no_other_of_the_slice(kube, bo):
    """B6: its scope is its namespace."""
    token = entered(kube, issued(kube, bo))
    assert allowed(token, PODS)
    assert refused(lambda: token.get("/api/v1/namespaces/vision-dev/pods")) == 403


def test_a_token_cannot_renew_itself(kube, bo):
    """It would outlive the person's own credentials."""
    token = entered(kube, issued(kube, bo))
    with pytest.raises(UserError) as caught:
        member_tokens.renewed(token, MINE)
    assert caught.value.reason == "KubeconfigRefused"


def test_two_slices_cannot_see_each_other(kube, bo):
    """B10, C6: neither people nor tokens nor packets."""
    with pytest.raises(UserError) as caught:
        issued(kube, bo, Whose("speech", "speech", CY))
    assert caught.value.reason == "KubeconfigRefused"
    assert BO not in str(caught.value)
    policies = {
        item["metadata"]["name"]: item["spec"]
        for item in kube.api.items("/apis/networking.k8s.io/v1/namespaces/vision/networkpolicies")
    }
    incoming = [
        peer for spec in policies.values() for rule in spec.get("ingress", ()) for peer in rule["from"]
    ]
    assert incoming == [
        {"namespaceSelector": {"matchLabels": {"egs.dev/slice": "vision", "egs.dev/project": "default"}}}
    ]
    assert policies["egs-default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_asking_again_ends_the_one_before_at_once(kube, bo):
    """B5: the token, and the kubeconfig that would have asked for the next."""
    ticket = member_tokens.renewed(bo, MINE)
    before = unused(kube, bo, ticket)
    now = entered(kube, issued(kube, bo))
    dead(before)
    assert allowed(now, PODS)
    with pytest.raises(UserError) as caught:
        member_tokens.token(bo, ticket, LIFE)
    assert caught.value.reason == "KubeconfigEnded"


def test_whoever_is_no_member_any_more_is_out_at_once(kube, slices, bo):
    """B5: whatever their tokens were bound to; and nobody else is."""
    bound = unused(kube, bo, member_tokens.renewed(bo, MINE))
    path = f"/api/v1/namespaces/vision/serviceaccounts/{account_name(BO)}/token"
    free = bo.create(path, {"spec": {"expirationSeconds": 360000}})["status"]["token"]
    unbound = entered(kube, member_tokens.Token(free, NOW))
    other = entered(kube, issued(kube, as_user(kube, CY), Whose("vision", "vision", CY)))
    assert allowed(other, PODS)
    ensured(slices, terms("vision", "vision", "vision-dev", members=(CY,)))
    dead(bound)
    dead(unbound)
    eventually(lambda: not allowed(bo, PODS), "Bo's own rights are gone")
    assert allowed(other, PODS)
    secret = f"/api/v1/namespaces/vision/secrets/{secret_name(BO)}"
    eventually(lambda: kube.api.find(secret) is None, "the Secret goes with its owner", 60)


def test_a_slice_that_goes_ends_its_kubeconfigs(kube, slices, bo):
    token = unused(kube, bo, member_tokens.renewed(bo, MINE))
    assert finished(lambda now: slices.remove("vision", False, NEWER, now)) == Done()
    dead(token)


def test_an_admin_gets_a_kubeconfig_for_anybody_and_its_end_is_the_servers_word(kube, slices):
    """B6; a server may shorten what was asked for."""
    given = issued(kube, kube.api)
    assert allowed(entered(kube, given), PODS)
    assert given.end.tzinfo is not None
    assert given.value not in repr(given)


def test_the_wrong_cluster_is_noticed(kube, slices):
    with pytest.raises(UserError) as caught:
        member_tokens.renewed(kube.api, Whose("other", "vision", BO))
    assert "belongs to slice vision" in str(caught.value)
    with pytest.raises(UserError) as caught:
        member_tokens.renewed(kube.api, Whose("other", "nowhere", BO))
    assert "has no ServiceAccount" in str(caught.value)
