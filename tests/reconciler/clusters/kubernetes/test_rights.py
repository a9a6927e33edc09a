"""What the controller may do in a cluster is what `RULES` says: it is enough, and none of it is spare (issue 3 §2).

What slices need has a page of its own (test_slices_rights). Policies are not served by the oldest API servers: those
rows count where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.api.api_features import ADMISSION
from reconciler.clusters.kubernetes.nodes.gpu_resets import NVSENTINEL
from reconciler.clusters.kubernetes.rbac import RULES, Rule
from schemas.errors import Fault
from tests.reconciler.clusters.kubernetes.living import NOW, SYSTEM_NAMESPACE, Life, prepared
from tests.reconciler.clusters.kubernetes.tenants import as_user
from tests.reconciler.clusters.kubernetes.test_slices_rights import CONTROLLER, UNSEEN, granted, lived, may
from tests.support.kube import Plane, eventually

Right = tuple[str, str, str]
METHODS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
READS = {"list", "watch"}


def asked_by(plane: Plane, api: Api) -> set[Right]:
    """Every (group, resource, verb) that this client asks for from now on."""
    asked: set[Right] = set()
    call = api._call

    def note(method, path, params, body, content):
        found = right(method, path, watches=bool(params.get("watch")))
        if found is not None:
            if method == "PATCH" and plane.api.find(path) is None:
                asked.add((*found[:2], "create"))  # an apply makes what is not there
            asked.add(found)
        return call(method, path, params, body, content)

    api._call = note
    return asked


def right(method: str, path: str, *, watches: bool) -> Right | None:
    """What one call needs; None for what everybody may read."""
    root, *parts = path.strip("/").split("/")
    group, rest = ("", parts[1:]) if root == "api" else (parts[0] if parts else "", parts[2:])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if not rest:
        return None
    resource = "/".join([rest[0], *rest[2:]])
    verb = METHODS[method]
    if method == "GET" and len(rest) == 1:
        verb = "watch" if watches else "list"
    return group, resource, verb


def served(plane: Plane) -> list[Rule]:
    """Rules about what this API server has."""
    here = {found["name"] for found in plane.api.get(ADMISSION)["resources"]}
    return [r for r in RULES if r.group != "admissionregistration.k8s.io" or r.resource in here]


@pytest.fixture
def life(kube) -> Iterator[Life]:
    """A driver that may do what the rules say."""
    prepared(kube)
    granted(kube, list(RULES))
    settled(kube, "nodes", "patch")
    found = Life(kube, as_user(kube, CONTROLLER))
    yield found
    found.close()


def settled(plane: Plane, resource: str, verb: str, *, allowed: bool = True, **more: str) -> None:
    """The API server has heard of the rights."""
    eventually(lambda: may(plane, verb, resource, **more) is allowed, f"{verb} {resource}: {allowed}")


def test_the_rules_are_enough_and_none_is_spare(life):
    """Each verb of each rule is asked for in the life of a cluster, and no other is."""
    asked = asked_by(life.plane, life.api)
    life.whole()
    lived(life.plane, life.driver._slices.slices)
    rules = [rule for rule in served(life.plane) if rule.group != NVSENTINEL]  # see nodes/test_gpu_resets.py
    assert asked == {(r.group, r.resource, verb) for r in rules for verb in r.verbs if verb not in UNSEEN}


SLICES = {"namespaces", "networkpolicies", "resourcequotas", "serviceaccounts", "rolebindings", "roles"}
OTHERS = SLICES | {"clusterroles"}
LESS = [
    (rule, verb)
    for rule in RULES
    for verb in rule.verbs
    if rule.resource not in OTHERS and "polic" not in rule.resource and rule.group != NVSENTINEL
]


@pytest.mark.parametrize(
    ("rule", "verb"),
    [pytest.param(rule, verb, id=f"without {verb} {rule.resource}") for rule, verb in LESS],
)
def test_one_verb_less_fails_and_says_which(kube, rule, verb):
    less = [replace(r, verbs=tuple(v for v in r.verbs if v != verb)) if r is rule else r for r in RULES]
    prepared(kube)
    granted(kube, [r for r in less if r.verbs])
    where = {"namespace": SYSTEM_NAMESPACE} if rule.system else {}
    name, _, part = rule.resource.partition("/")
    more = {"group": rule.group, **where} | ({"subresource": part} if part else {})
    settled(kube, name, verb, allowed=False, **more, **({"name": rule.names[0]} if rule.names else {}))
    settled(kube, "namespaces", "watch")
    life = Life(kube, as_user(kube, CONTROLLER))
    try:
        told = refused_look(life) if verb in READS else refused_life(life)
    finally:
        life.close()
    assert f'cannot {verb} resource "{rule.resource}"' in told
    assert "grant the controller this verb" in told


def refused_look(life: Life) -> str:
    """A cluster that cannot be watched is not driven."""

    def look() -> Fault | None:
        try:
            life.driver.observe(NOW)
        except Fault as fault:
            return fault
        return None

    found = eventually(look, "the refusal")
    assert found.reason == "ClusterForbidden"
    return str(found)


def refused_life(life: Life) -> str:
    """An answer or a fault, with the same reason."""
    with pytest.raises((Fault, AssertionError)) as caught:
        life.whole()
    assert getattr(caught.value, "reason", "") == "ClusterForbidden" or "ClusterForbidden" in str(
        caught.value
    )
    return str(caught.value)


def test_every_row_has_a_reason_that_a_person_can_weigh():
    assert all(rule.why for rule in RULES)
