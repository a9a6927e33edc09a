"""The account of one part with the rights that an installation gives it, on a real API server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.rbac import Rule
from reconciler.deploying import part_rights
from reconciler.deploying.object_kinds import path_of
from reconciler.deploying.part_names import Place
from tests.reconciler.clusters.kubernetes.tenants import as_user
from tests.support.kube import Plane, eventually

PLACE = Place("0.1.0")

Right = tuple[Rule, str]


def each(rules: Iterable[Rule]) -> list[Right]:
    """Every verb of every row."""
    return [(rule, verb) for rule in rules for verb in rule.verbs]


def called(right: Right) -> str:
    """Of a right, as the id of a test."""
    rule, verb = right
    return f"{verb} {rule.resource}"


def without(rules: Sequence[Rule], right: Right) -> tuple[Rule, ...]:
    """All rows but this verb of this one."""
    rule, verb = right
    less = replace(rule, verbs=tuple(v for v in rule.verbs if v != verb))
    return tuple(found for found in (less if r is rule else r for r in rules) if found.verbs)


def account(plane: Plane, part: str, rules: Sequence[Rule], lacks: Right | None = None) -> Api:
    """A client that may do what is shipped for these rows less one verb, and nothing else; the server knows so."""
    given = rules if lacks is None else without(rules, lacks)
    space = f"/api/v1/namespaces/{PLACE.namespace}"
    if plane.api.find(space) is None:
        plane.api.create("/api/v1/namespaces", {"metadata": {"name": PLACE.namespace}})
    for item in part_rights.granted(PLACE, part, rules):
        plane.api.delete(path_of(item, PLACE.namespace))
    for item in (part_rights.account(PLACE, part, calls=True), *part_rights.granted(PLACE, part, given)):
        plane.api.apply(path_of(item, PLACE.namespace), item)
    user = f"system:serviceaccount:{PLACE.namespace}:{PLACE.named(part)}"
    for right in each(rules):
        _settled(plane, user, right, allowed=right != lacks)
    return as_user(plane, user)


def _settled(plane: Plane, user: str, right: Right, *, allowed: bool) -> None:
    rule, verb = right
    resource, _, below = rule.resource.partition("/")
    asked = {"verb": verb, "group": rule.group, "resource": resource}
    asked |= {"subresource": below} if below else {}
    asked |= {"name": rule.names[0]} if rule.names else {}
    asked |= {"namespace": PLACE.namespace} if rule.system else {}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": asked},
    }

    def is_so() -> bool:
        told = plane.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
        return bool(told["status"]["allowed"]) is allowed

    eventually(is_so, f"{called(right)}: {allowed}")
