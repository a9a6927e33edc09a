"""What the controller needs for slices is what `RULES` says: it is enough, and none of it is spare (issue 3 §2)."""

from __future__ import annotations

import pytest

from reconciler.clusters.kubernetes.rbac import RULES, Rule
from reconciler.clusters.kubernetes.tenancy.slice_objects import RBAC as GROUP
from reconciler.clusters.kubernetes.tenancy.slice_writer import Slices
from reconciler.model.cluster_port import Done, Refused
from schemas.errors import Fault
from tests.reconciler.clusters.kubernetes.tenants import (
    BO,
    FIRST,
    NET,
    NEWER,
    NOW,
    OFFERED,
    RBAC,
    SECOND,
    as_user,
    finished,
    namespace,
    opened,
    terms,
)
from tests.support.kube import Plane, eventually

CONTROLLER = "egs-controller"
OURS = {
    ("", "namespaces"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "configmaps"),
    ("networking.k8s.io", "networkpolicies"),
    (GROUP, "roles"),
    (GROUP, "rolebindings"),
    (GROUP, "clusterroles"),
}
UNSEEN = {"bind", "escalate", "impersonate"}
"""Verbs that no request shows: the server asks for them when a right is given away, or when a caller acts as another
(see test_workloads_applied)."""


def granted(plane: Plane, rules: list[Rule]) -> None:
    """The controller may do exactly this."""
    labels = {"app.kubernetes.io/managed-by": "egs"}
    subjects = [{"kind": "User", "name": CONTROLLER, "apiGroup": GROUP}]
    for kind, base, chosen in (
        ("ClusterRole", RBAC, [r for r in rules if not r.system]),
        ("Role", f"{RBAC}/namespaces/egs-system", [r for r in rules if r.system]),
    ):
        bodies = [
            {"apiGroups": [r.group], "resources": [r.resource], "verbs": list(r.verbs)}
            | ({"resourceNames": list(r.names)} if r.names else {})
            for r in chosen
        ]
        meta = {"name": CONTROLLER, "labels": labels}
        head = {"apiVersion": f"{GROUP}/v1", "metadata": meta}
        plane.api.apply(f"{base}/{kind.lower()}s/{CONTROLLER}", {**head, "kind": kind, "rules": bodies})
        ref = {"apiGroup": GROUP, "kind": kind, "name": CONTROLLER}
        binding = {**head, "kind": f"{kind}Binding", "roleRef": ref, "subjects": subjects}
        plane.api.apply(f"{base}/{kind.lower()}bindings/{CONTROLLER}", binding)


@pytest.fixture
def system(kube):
    """The system namespace, as an installation makes it."""
    namespace(kube, "egs-system")
    return kube


def may(plane: Plane, verb: str, resource: str, group: str = "", **more: str) -> bool:
    """What the server itself says of the controller's rights."""
    spec = {
        "user": CONTROLLER,
        "resourceAttributes": {"verb": verb, "resource": resource, "group": group, **more},
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(plane.api.create(path, body)["status"]["allowed"])


def recorded(plane: Plane, api) -> set[tuple[str, str, str]]:
    """Every (group, resource, verb) that this client will ask for, from now on."""
    asked: set[tuple[str, str, str]] = set()
    call = api._call

    def note(method, path, params, body, content):
        parts = path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        if rest[0] == "namespaces" and len(rest) > 2:
            rest = rest[2:]
        verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
        verb = verbs[method]
        if method == "GET" and len(rest) == 1:
            verb = "watch" if params.get("watch") else "list"
        if method == "PATCH" and plane.api.find(path) is None:
            asked.add((group, rest[0], "create"))
        asked.add((group, rest[0], verb))
        return call(method, path, params, body, content)

    api._call = note
    return asked


def lived(plane: Plane, slices: Slices) -> None:
    """A slice's whole life: made, adopted, quarrelled over, changed, and gone."""
    namespace(plane, "old", annotations=OFFERED)
    eventually(lambda: slices._spaces.find("old"), "the namespace")
    wanted = terms("vision", "vision", "old")
    assert slices.ensure(wanted, FIRST, NOW) == Done()
    for path, change in {
        f"{NET}/namespaces/vision/networkpolicies/egs-default-deny": {"spec": {"ingress": [{}]}},
        f"{RBAC}/clusterroles/egs-slice-member": {"rules": []},
    }.items():
        plane.api.merge(path, change)
    plane.api.delete(f"{RBAC}/namespaces/vision/rolebindings/egs-members")
    eventually(lambda: len(slices.differences((wanted,), NOW)) == 3, "the differences")
    assert slices.ensure(wanted, FIRST, NOW + SECOND) == Done()
    assert slices.ensure(terms("vision", "vision", "old", members=(BO,), gpus=None), FIRST, NOW) == Done()
    slices._claims.informer.stop()  # it falls behind, and asks when its write fails
    claim = "/api/v1/namespaces/egs-system/configmaps/slice-vision"
    plane.api.merge(claim, {"metadata": {"annotations": {"touched": "yes"}}})
    assert finished(lambda now: slices.remove("vision", False, NEWER, now)) == Done()


def test_the_rules_are_enough_and_none_is_spare(system):
    # ConfigMaps are deleted for our webhook alone: see `test_rights`.
    own = [rule for rule in RULES if (rule.group, rule.resource) in OURS and rule.verbs != ("delete",)]
    granted(system, own)
    eventually(lambda: may(system, "create", "networkpolicies", "networking.k8s.io"), "the rights")
    api = as_user(system, CONTROLLER)
    asked = recorded(system, api)
    slices = opened(api)
    lived(system, slices)
    slices.stop()
    listed = {(r.group, r.resource, verb) for r in own for verb in r.verbs if verb not in UNSEEN}
    assert asked == listed


@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        pytest.param(GROUP, "clusterroles", "bind", id="giving the members' role away"),
        pytest.param(GROUP, "clusterroles", "escalate", id="making the members' role"),
        pytest.param(GROUP, "roles", "bind", id="giving a member's own role away"),
        pytest.param(GROUP, "roles", "escalate", id="making a member's own role"),
        pytest.param("", "serviceaccounts", "create", id="making accounts"),
        pytest.param("", "namespaces", "watch", id="watching namespaces"),
    ],
)
def test_one_verb_less_fails_with_a_plain_word(system, group, resource, verb):
    less = [
        Rule(r.group, r.resource, tuple(v for v in r.verbs if v != verb), r.why, r.names, r.system)
        if (r.group, r.resource) == (group, resource)
        else r
        for r in RULES
    ]
    granted(system, less)
    eventually(lambda: may(system, "create", "networkpolicies", "networking.k8s.io"), "the rights")
    eventually(lambda: not may(system, verb, resource, group, name="egs-slice-member"), "one verb less")
    slices = Slices(as_user(system, CONTROLLER), "default")
    slices.start()

    def look() -> Refused | Fault | None:
        try:
            answer = slices.ensure(terms(), FIRST, NOW)
        except Fault as fault:
            return fault
        return answer if isinstance(answer, Refused) else None

    if verb == "watch":
        told = eventually(lambda: slices.informers[0]._trouble, "the trouble")
    else:
        told = eventually(look, "a refusal")
    slices.stop()
    assert told.reason == "ClusterForbidden"
    said = told.message if isinstance(told, Refused) else str(told)
    assert "grant the controller" in said or "the controller needs all the rights" in said
