"""The objects that close managed nodes to pods outside slices: the API server's policies, or our webhook.

Pure. `closed_nodes` has the rules. A pod that cannot be judged is always admitted.
"""

from __future__ import annotations

from reconciler.clusters.kubernetes.admission import closed_nodes
from reconciler.clusters.kubernetes.admission.closed_nodes import ClosedNodes
from reconciler.clusters.kubernetes.admission.object_shapes import (
    CONFIG_MAP,
    Webhook,
    constraints,
    denying,
    hook,
    made,
    on,
    on_pods,
)
from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.api.api_features import Features
from reconciler.clusters.kubernetes.names import CLOSED_NODES, NAMESPACE_SLICE

NODES_PATH = "/nodes"
"""Path of our webhook for pods outside slices."""
TIMEOUT_S = 2
"""Timeout of our webhook for such a pod."""
_SUSPECT: Json = {"name": "may-get-there", "expression": closed_nodes.SUSPECT}


def nodes_policy(project: str, known: ClosedNodes) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding: managed nodes are closed to pods outside slices."""
    spec: Json = {
        **_everywhere(on_pods("CREATE", "UPDATE")),
        "matchConditions": [_SUSPECT],
        "variables": [
            {"name": name, "expression": value}
            for name, value in closed_nodes.variables(known, project).items()
        ],
        "validations": [
            {"expression": f"!({rule.cel})", "message": str(rule), "reason": "Forbidden"}
            for rule in closed_nodes.RULES
        ],
    }
    return denying(f"egs-{project}-nodes", project, spec)


def bindings_policy(project: str, known: ClosedNodes) -> list[Json]:
    """The same for manual bindings, which no taint prevents."""
    rule = closed_nodes.binding_rule(known, project)
    bindings = {**on("pods/binding", "CREATE"), "resources": ["pods/binding", "bindings"]}
    spec: Json = {
        **_everywhere(bindings),
        "matchConditions": [],
        "variables": [
            {"name": name, "expression": value} for name, value in closed_nodes.names_of(known).items()
        ],
        "validations": [{"expression": f"!({rule})", "message": closed_nodes.BOUND, "reason": "Forbidden"}],
    }
    return denying(f"egs-{project}-bindings", project, spec)


def _everywhere(*on: Json) -> Json:
    """In every namespace, even the cluster's own: what cannot be judged is admitted."""
    return {"failurePolicy": "Ignore", "matchConstraints": constraints({}, *on)}


def closed_nodes_map(project: str, namespace: str, known: ClosedNodes) -> Json:
    """The data our webhook uses to close managed nodes."""
    found = made(CONFIG_MAP, f"egs-{project}-nodes", project, data={"ground": closed_nodes.written(known)})
    meta = {**found["metadata"], "namespace": namespace}
    meta["labels"] = {**meta["labels"], CLOSED_NODES: "true"}
    return {**found, "apiVersion": "v1", "metadata": meta}


def read_closed_nodes(item: Json) -> ClosedNodes | None:
    """The data in such an object."""
    return closed_nodes.read((item.get("data") or {}).get("ground", ""))


def outside_hook(features: Features, webhook: Webhook) -> Json:
    """One webhook of a configuration, for pods outside slices."""
    outside = {"matchExpressions": [{"key": NAMESPACE_SLICE, "operator": "DoesNotExist"}]}
    return {
        **hook("nodes.egs.dev", features, _SUSPECT, outside, TIMEOUT_S),
        "clientConfig": webhook.client_config(NODES_PATH),
        "rules": [on_pods("CREATE", "UPDATE")],
        "failurePolicy": "Ignore",  # it never blocks the cluster's own pods
    }
