"""Managed nodes are closed to pods outside of slices: one table for Python, CEL and a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import cel
import pytest

from reconciler.clusters.kubernetes.admission.closed_nodes import (
    MOST_VALUES,
    RULES,
    SUSPECT,
    binding_rule,
    broken,
    closed_nodes_of,
    names_of,
    read,
    variables,
    written,
)
from reconciler.clusters.kubernetes.api.api_client import Json, Rejected
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.names import NAMESPACE_SLICE, OWNER, SLICE
from reconciler.clusters.kubernetes.nodes.node_inventory import read_node
from reconciler.model.cluster_port import Done
from schemas.documents.cluster import Admission, Outsiders
from tests.reconciler.clusters.kubernetes.judged import pod
from tests.reconciler.clusters.kubernetes.judging import NOW, STAMP, Judged, create, judged
from tests.support.kube import Plane, eventually, gpu_node

ALL: Json = {"operator": "Exists"}
BO = "bo@example.com"
DAEMONS = "system:serviceaccount:kube-system:daemon-set-controller"


def managed(name: str, **labels: str) -> Json:
    """A GPU node of ours."""
    found = gpu_node(name)
    found["metadata"]["labels"] |= {"zone": "a", "gpu": "true", **labels}
    found["metadata"].setdefault("uid", name)
    found["metadata"].setdefault("resourceVersion", "1")
    return found


NODES = [managed("h100-1", rack="r1"), managed("h100-2", zone="b")]
OPEN_TO = Outsiders(namespaces=("monitoring", "kube-*"))
CLOSED_NODES = closed_nodes_of(map(read_node, NODES), OPEN_TO, "egs-system")


@dataclass(frozen=True)
class Case:
    """A pod outside of slices, who makes it where, and what it is refused for."""

    pod: Json
    refused: str = ""
    namespace: str = "ml"
    user: str = BO
    before: Json | None = field(default=None)


def affine(*terms: Json) -> Json:
    """Required node affinity of these terms."""
    needed = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needed}}


def labelled(key: str, operator: str, *values: str) -> Json:
    """A term of one expression."""
    one = {"key": key, "operator": operator, "values": list(values)}
    return {"matchExpressions": [one if values else {"key": key, "operator": operator}]}


def on(*names: str) -> Json:
    """A term that names nodes, as the controller of DaemonSets writes them."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


def tolerant(**spec: object) -> Json:
    """A pod that tolerates every taint."""
    return pod(tolerations=[ALL], **spec)


def owned(item: Json, kind: str = "DaemonSet") -> Json:
    """With a controller."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "d", "uid": "u", "controller": True}
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [owner]}}


ALL_OF, OURS, NAMED = "ToleratesEverything", "ManagedToleration", "ManagedNodeNamed"
CASES = [
    pytest.param(Case(pod()), id="a plain pod"),
    pytest.param(Case(pod(tolerations=[{"key": "spot", **ALL}])), id="a toleration of others' taints"),
    pytest.param(Case(tolerant(), ALL_OF), id="a toleration of every taint"),
    pytest.param(
        Case(pod(tolerations=[{**ALL, "effect": "NoSchedule"}]), ALL_OF), id="of every one that keeps off"
    ),
    pytest.param(Case(pod(tolerations=[{**ALL, "effect": "NoExecute"}])), id="of every one that sends away"),
    pytest.param(Case(pod(tolerations=[{"key": SLICE, **ALL}]), OURS), id="a toleration of our taint"),
    pytest.param(
        Case(pod(tolerations=[{"key": SLICE, "value": "vision", "effect": "NoSchedule"}]), OURS),
        id="a toleration of one slice's nodes",
    ),
    pytest.param(
        Case(pod(tolerations=[{"key": SLICE, **ALL}], nodeSelector={"zone": "c"}), OURS),
        id="a toleration of our taint, also where it could not get there",
    ),
    pytest.param(Case(pod(nodeName="h100-1"), NAMED), id="a managed node by its name"),
    pytest.param(Case(pod(nodeName="cpu-1")), id="any other node by its name"),
    pytest.param(
        Case(tolerant(nodeSelector={"zone": "c"})), id="kept off by a value that no managed node has"
    ),
    pytest.param(
        Case(tolerant(nodeSelector={"role": "infra"})), id="kept off by a label that no managed node has"
    ),
    pytest.param(Case(tolerant(nodeSelector={"zone": "b"}), ALL_OF), id="chosen by a label that one has"),
    pytest.param(
        Case(tolerant(nodeSelector={SLICE: "vision"}), ALL_OF),
        id="chosen by our own label, whatever it says now",
    ),
    pytest.param(Case(tolerant(affinity=affine(labelled("gpu", "DoesNotExist")))), id="only where no GPU is"),
    pytest.param(
        Case(tolerant(affinity=affine(labelled("rack", "DoesNotExist"))), ALL_OF),
        id="where a label is missing that one managed node has and one has not",
    ),
    pytest.param(
        Case(tolerant(affinity=affine(labelled("role", "Exists")))), id="only where a foreign label is"
    ),
    pytest.param(Case(tolerant(affinity=affine(labelled("zone", "In", "c", "d")))), id="only in other zones"),
    pytest.param(
        Case(tolerant(affinity=affine(labelled("zone", "In", "c", "a"))), ALL_OF), id="in ours as well"
    ),
    pytest.param(
        Case(tolerant(affinity=affine(labelled("zone", "NotIn", "c"))), ALL_OF), id="anywhere but elsewhere"
    ),
    pytest.param(
        Case(tolerant(affinity=affine(labelled("gpu", "DoesNotExist"), labelled("zone", "Exists"))), ALL_OF),
        id="a second way that leads there",
    ),
    pytest.param(Case(tolerant(affinity=affine(on("cpu-1")))), id="only on a node that is not managed"),
    pytest.param(Case(tolerant(affinity=affine(on("h100-2"))), ALL_OF), id="on a managed node by its field"),
    pytest.param(Case(tolerant(affinity={}), ALL_OF), id="an affinity that says nothing"),
    pytest.param(Case(tolerant(), namespace="monitoring"), id="an admitted namespace"),
    pytest.param(Case(pod(nodeName="h100-1"), namespace="kube-system"), id="the cluster's own namespace"),
    pytest.param(Case(tolerant(), namespace="kube-more"), id="a namespace that begins as an admitted one"),
    pytest.param(Case(tolerant(), ALL_OF, namespace="monitoring-2"), id="one that only begins like it"),
    pytest.param(Case(pod(nodeName="h100-1"), user="system:node:h100-1"), id="a kubelet's own pod"),
    pytest.param(Case(owned(tolerant()), user=DAEMONS), id="a DaemonSet's pod"),
    pytest.param(Case(owned(tolerant()), ALL_OF), id="a pod that somebody calls a DaemonSet's"),
    pytest.param(
        Case(owned(tolerant()), ALL_OF, user="system:serviceaccount:ml:bot"), id="an account that does so"
    ),
    pytest.param(
        Case(owned(tolerant(), "ReplicaSet"), ALL_OF, user=DAEMONS.replace("daemon", "replica")),
        id="a Deployment's pod",
    ),
    pytest.param(Case(tolerant(), before=tolerant()), id="a pod that was there, and whose labels change"),
    pytest.param(Case(tolerant(), ALL_OF, before=pod()), id="a toleration that is added later"),
    pytest.param(
        Case(pod(nodeName="h100-1"), before=pod(nodeName="h100-1")), id="a pod that runs there already"
    ),
]


def question(case: Case) -> Json:
    """As an API server asks."""
    return {
        "operation": "CREATE" if case.before is None else "UPDATE",
        "namespace": case.namespace,
        "userInfo": {"username": case.user},
        "object": case.pod,
        "oldObject": case.before,
    }


def in_cel(case: Case, labels: Json | None = None) -> list[str]:
    """By the text that policies carry."""
    asked = question(case)
    known: Json = {
        "object": asked.pop("object"),
        "oldObject": asked.pop("oldObject"),
        "namespaceObject": {"metadata": {"labels": labels or {}}},
        "request": asked,
        "variables": {},
    }
    if not cel.evaluate(SUSPECT, known):
        return []
    for name, expression in variables(CLOSED_NODES, "default").items():
        known["variables"][name] = cel.evaluate(expression, known)
    return [rule.reason for rule in RULES if cel.evaluate(rule.cel, known)]


@pytest.mark.parametrize("case", CASES)
def test_a_pod_outside_of_slices(case: Case) -> None:
    """Our webhook and the policies say the same."""
    want = [case.refused] if case.refused else []
    assert [rule.reason for rule in broken(question(case), [CLOSED_NODES])] == want
    assert in_cel(case) == want


@pytest.mark.parametrize(
    ("labels", "toleration", "want"),
    [
        pytest.param(
            {OWNER: "default", NAMESPACE_SLICE: "a"}, ALL, [], id="a slice of ours: its own rules judge"
        ),
        pytest.param(
            {OWNER: "other", NAMESPACE_SLICE: "b"}, ALL, [ALL_OF], id="another project's, every taint"
        ),
        pytest.param(
            {OWNER: "other", NAMESPACE_SLICE: "b"},
            {"key": SLICE, "value": "b"},
            [],
            id="another project's own nodes",
        ),
        pytest.param(
            {OWNER: "other", NAMESPACE_SLICE: "b"},
            {"key": SLICE, "value": "a"},
            [OURS],
            id="another slice's nodes",
        ),
        pytest.param({OWNER: "default"}, ALL, [ALL_OF], id="a namespace with half of our marks"),
    ],
)
def test_namespaces_of_slices(labels: Json, toleration: Json, want: list[str]) -> None:
    assert in_cel(Case(pod(tolerations=[toleration])), labels) == want


@pytest.mark.parametrize(
    ("node", "user", "namespace", "want"),
    [
        pytest.param("h100-1", BO, "ml", True, id="a person, onto a managed node"),
        pytest.param("h100-1", "system:serviceaccount:ml:bot", "ml", True, id="an account, likewise"),
        pytest.param("cpu-1", BO, "ml", False, id="onto any other node"),
        pytest.param("h100-1", "system:kube-scheduler", "ml", False, id="the scheduler, which heeds taints"),
        pytest.param("h100-1", "system:serviceaccount:monitoring:s", "ml", False, id="an admitted scheduler"),
        pytest.param("h100-1", BO, "kube-system", False, id="a pod of the cluster itself"),
    ],
)
def test_a_binding_by_hand(node: str, user: str, namespace: str, want: bool) -> None:
    known: Json = {
        "object": {"target": {"kind": "Node", "name": node}},
        "namespaceObject": {"metadata": {}},
        "request": {"operation": "CREATE", "namespace": namespace, "userInfo": {"username": user}},
    }
    known["variables"] = {k: cel.evaluate(v, known) for k, v in names_of(CLOSED_NODES).items()}
    assert cel.evaluate(binding_rule(CLOSED_NODES, "default"), known) is want


def test_a_cluster_without_managed_nodes_refuses_no_tolerant_pod() -> None:
    """And what is written for our webhook is what it reads."""
    none = closed_nodes_of([], OPEN_TO, "egs-system")
    assert broken(question(Case(tolerant())), [none]) == ()
    assert read(written(CLOSED_NODES)) == CLOSED_NODES
    assert read("{}") is None
    assert broken(question(Case(tolerant())), []) == (), "nobody said what is closed"


def test_many_nodes_and_values() -> None:
    """Each literal stays short enough for a server; of a label with many values any may be a managed node's."""
    many = closed_nodes_of(
        (read_node(managed(f"h100-{i}", host=f"h{i}")) for i in range(9000)), OPEN_TO, "egs-system"
    )
    assert all(len(text) < 90_000 for text in variables(many, "default").values())
    assert len(names_of(many)) > 1
    assert many.values["host"] == ()
    assert many.may_have("host", "other")
    assert MOST_VALUES < 9000
    assert [r.reason for r in broken(question(Case(pod(nodeName="h100-8999"))), [many])] == [NAMED]


# --- on a real API server ---


@pytest.fixture(
    scope="module",
    params=[pytest.param("auto", id="policies"), pytest.param("webhook", id="webhook")],
)
def closed(new_plane: Plane, request: pytest.FixtureRequest) -> Iterator[Judged]:
    """1.36 with its own policies, and with our webhook."""
    new_plane.wipe()
    api = new_plane.api
    admission = Admission(mode=request.param, outsiders=OPEN_TO)
    with judged(api, discover(api), admission, patches=True) as found:
        assert found.placement.ensure(STAMP, NOW, CLOSED_NODES) == Done()
        for name in ("ml", "monitoring"):
            space = {"metadata": {"name": name}}
            eventually(lambda space=space: create(api, "/api/v1/namespaces", space), "a namespace")
        for name in ("ml", "monitoring", "kube-system"):
            account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            eventually(lambda path=account: api.find(path), "an account for pods")
        eventually(lambda: ALL_OF in told(found, Case(tolerant())), "a refusal")
        # Rules and names of nodes are two objects, and a server hears of each by itself.
        eventually(lambda: NAMED in told(found, Case(pod(nodeName="h100-1"))), "a refusal by name")
        yield found


def told(found: Judged, case: Case) -> str:
    """The refusal's text; empty: it would be let in."""
    try:
        found.api.create(f"/api/v1/namespaces/{case.namespace}/pods?dryRun=All&x=", case.pod)
    except Rejected as no:
        return str(no)
    return ""


LIVE = [
    case
    for case in CASES
    if case.values[0].before is None
    and case.values[0].user == BO
    and case.values[0].namespace in {"ml", "monitoring", "kube-system"}
]


@pytest.mark.parametrize("case", LIVE)
def test_a_new_pod_on_a_real_server(case: Case, closed: Judged) -> None:
    def judged_so() -> bool:
        text = told(closed, case)
        return bool(text) == bool(case.refused) and case.refused in text

    eventually(judged_so, case.refused or "no refusal", within_s=30)


def test_a_pod_is_not_bound_by_hand(closed: Judged) -> None:
    """Where policies judge; a webhook would be asked about every pod that the scheduler binds."""
    if (
        closed.api.find("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/egs-default-nodes")
        is None
    ):
        return
    pods = "/api/v1/namespaces/ml/pods"
    closed.api.create(pods, pod(name="late"))
    for node, said in (("h100-1", "ManagedNodeBound"), ("cpu-1", "")):
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"metadata": {"name": "late"}, "target": target}

        def bound_so(body: Json = body, said: str = said) -> bool:
            try:
                closed.api.create(f"{pods}/late/binding?dryRun=All&x=", body)
            except Rejected as no:
                return bool(said) and said in str(no)
            return not said

        eventually(bound_so, said or "no refusal", within_s=30)


def test_the_server_understands_every_expression(closed: Judged) -> None:
    """It checks their types by itself, some time after they were written."""
    base = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    for policy in ("egs-default-nodes", "egs-default-bindings"):
        if closed.api.find(f"{base}/{policy}") is None:
            return

        def judged_by_it(path: str = f"{base}/{policy}") -> Json | None:
            found = closed.api.get(path)
            status: Json = found.get("status") or {}
            return status if status.get("observedGeneration") == found["metadata"]["generation"] else None

        verdict = eventually(judged_by_it, "its verdict")
        assert not verdict.get("typeChecking"), verdict


def test_a_webhook_that_is_down_stops_no_pod_outside_of_slices(new_plane: Plane) -> None:
    new_plane.wipe()
    api = new_plane.api
    with judged(api, discover(api), Admission(mode="webhook"), patches=True) as found:
        assert found.placement.ensure(STAMP, NOW, CLOSED_NODES) == Done()
        eventually(lambda: create(api, "/api/v1/namespaces", {"metadata": {"name": "ml"}}), "a namespace")
        eventually(lambda: ALL_OF in told(found, Case(tolerant())), "a refusal")
        found.service.stop()
        eventually(lambda: told(found, Case(tolerant())) == "", "that nobody is asked")
