"""Which pods outside slices may run on managed nodes, and why the others are refused.

Pure. A pod bypasses our taint by tolerating it, by tolerating every taint, or by naming its node. Outside
slices the first and the last are refused, and the second unless the pod's node selector or affinity keeps it
off managed nodes: so a monitor that tolerates everything still runs elsewhere. Pods of DaemonSets and of the
namespaces that the cluster's document admits are allowed, and so are a kubelet's own.

As in `pod_review`, every rule exists in Python, for our webhook, and next to it in CEL, for the API server's
policies. If neither can be evaluated, pods are admitted: the cluster's own pods matter more than one GPU.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.clusters.kubernetes.admission.pod_review import EFFECT, Rule, refusals
from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import NAMESPACE_SLICE, OWNER, SLICE
from reconciler.clusters.kubernetes.nodes.node_inventory import DAEMON_SET, Node
from schemas.documents.cluster import Outsiders

MOST_VALUES = 32
"""Values kept per label; a label with more is treated as if any value may be a managed node's."""
CHUNK = 80_000
"""Characters of one CEL literal: a server parses at most 100,000 in one expression."""
KUBELETS = "system:node:"
SYSTEM_ACCOUNTS = "system:serviceaccount:kube-system:"
ACCOUNTS = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class ClosedNodes:
    """What is closed in one cluster, and to which pods it is open."""

    nodes: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Labels of managed nodes with all their values; empty if there are too many."""
    everywhere: tuple[str, ...] = ()
    """Keys of labels that every managed node has."""
    admitted: tuple[str, ...] = ()
    """Namespaces whose pods are admitted, by name or by prefix with `*`."""
    daemon_sets: bool = True

    def may_have(self, key: str, value: str) -> bool:
        """True if a managed node may have that label."""
        return key in self.values and (not self.values[key] or value in self.values[key])

    def admits(self, namespace: str) -> bool:
        return re.fullmatch(_pattern(self.admitted), namespace) is not None


def closed_nodes_of(nodes: Iterable[Node], outsiders: Outsiders, system: str) -> ClosedNodes:
    """For these managed nodes; `system`: our own namespace, where checks and agents run."""
    named: list[str] = []
    values: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for node in nodes:
        named.append(node.name)
        for key, value in node.labels.items():
            values.setdefault(key, set()).add(value)
            counts[key] = counts.get(key, 0) + 1
    # The slice label changes with every start and end, so an outside pod's selector must not rely on it.
    values[SLICE], counts[SLICE] = set(), 0
    return ClosedNodes(
        nodes=tuple(sorted(named)),
        values={k: tuple(sorted(v)) if len(v) <= MOST_VALUES else () for k, v in sorted(values.items())},
        everywhere=tuple(sorted(key for key, count in counts.items() if count == len(named) and count)),
        admitted=tuple(sorted({*outsiders.namespaces, "kube-system", system})),
        daemon_sets=outsiders.daemon_sets,
    )


def written(found: ClosedNodes) -> str:
    """The text that `read` parses."""
    rows = {
        "nodes": found.nodes,
        "values": found.values,
        "everywhere": found.everywhere,
        "admitted": found.admitted,
        "daemonSets": found.daemon_sets,
    }
    return json.dumps(rows, sort_keys=True)


def read(text: str) -> ClosedNodes | None:
    """None for text not made by `written`."""
    try:
        rows = json.loads(text)
        values = {str(key): tuple(map(str, known)) for key, known in rows["values"].items()}
        nodes, everywhere, admitted = (tuple(map(str, rows[k])) for k in ("nodes", "everywhere", "admitted"))
        return ClosedNodes(nodes, values, everywhere, admitted, bool(rows["daemonSets"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Visitor:
    """The judged parts of one pod outside slices."""

    closed: ClosedNodes
    born: bool
    spec: Json
    tolerations: tuple[Json, ...]  # new ones that affect scheduling


def visitor(question: Json, known: ClosedNodes) -> Visitor | None:
    """From an admission request about a pod; None: always admitted."""
    user, item = str((question.get("userInfo") or {}).get("username", "")), question["object"]
    daemon = known.daemon_sets and _is_daemon(item) and _is_system(user)
    if daemon or user.startswith(KUBELETS) or known.admits(question["namespace"]):
        return None
    before = question.get("oldObject") if question["operation"] == "UPDATE" else None
    spec, old = item.get("spec") or {}, (before or {}).get("spec") or {}
    kept = old.get("tolerations") or ()
    new = (t for t in spec.get("tolerations") or () if t not in kept)
    return Visitor(
        closed=known,
        born=before is None,
        spec=spec,
        tolerations=tuple(t for t in new if (t.get("effect") or EFFECT) == EFFECT),
    )


def _is_daemon(pod: Json) -> bool:
    owners = pod.get("metadata", {}).get("ownerReferences") or ()
    return any(o.get("controller") and _kind_of(o) == DAEMON_SET for o in owners)


def _kind_of(owner: Json) -> str:
    return f"{owner.get('apiVersion', '').partition('/')[0]}/{owner.get('kind')}"


def _is_system(user: str) -> bool:
    """True for a component of the cluster itself: the pod's claimed owner is not enough."""
    is_account = user.startswith(ACCOUNTS)
    return user.startswith(SYSTEM_ACCOUNTS) or (user.startswith("system:") and not is_account)


def _kept_off(found: Visitor) -> bool:
    """True if its own node selector or affinity excludes all managed nodes."""
    chosen = (found.spec.get("nodeSelector") or {}).items()
    affinity = (found.spec.get("affinity") or {}).get("nodeAffinity") or {}
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[Json] = needed.get("nodeSelectorTerms") or []
    return any(not found.closed.may_have(key, value) for key, value in chosen) or (
        bool(terms) and all(_leaves_none(term, found.closed) for term in terms)
    )


def _leaves_none(term: Json, known: ClosedNodes) -> bool:
    """True if no managed node matches: one requirement that none fulfils is enough."""
    fields = term.get("matchFields") or ()
    return any(_excludes(one, known) for one in term.get("matchExpressions") or ()) or any(
        one["operator"] == "In" and not set(one.get("values") or ()) & set(known.nodes) for one in fields
    )


def _excludes(one: Json, known: ClosedNodes) -> bool:
    key, values = one["key"], one.get("values") or ()
    match one["operator"]:
        case "In":
            return not any(known.may_have(key, value) for value in values)
        case "Exists":
            return key not in known.values
        case "DoesNotExist":
            return key in known.everywhere
    return False


def _tolerates_all(found: Visitor) -> bool:
    tolerant = any(not t.get("key") for t in found.tolerations)
    return tolerant and bool(found.closed.nodes) and not _kept_off(found)


# --- CEL ---


def _words(name: str, words: Iterable[str]) -> dict[str, str]:
    """Variables for one list: literals with each word between spaces."""
    chunks = [" "]
    for word in words:
        if len(chunks[-1]) > CHUNK:
            chunks.append(" ")
        chunks[-1] += f"{word} "
    return {f"{name}{i}": f"'{chunk}'" for i, chunk in enumerate(chunks)}


def _among(names: Iterable[str], word: str) -> str:
    """CEL: one of these variables has the word."""
    return "(" + " || ".join(f"variables.{name}.contains(' ' + {word} + ' ')" for name in names) + ")"


def _pattern(admitted: Iterable[str]) -> str:
    """A regular expression; names have no special characters."""
    return "^(" + "|".join(name.replace("*", ".*") for name in admitted) + ")$"


_USER = "request.userInfo.username"
_SYSTEM = (
    f"({_USER}.startsWith('{SYSTEM_ACCOUNTS}')"
    f" || ({_USER}.startsWith('system:') && !{_USER}.startsWith('{ACCOUNTS}')))"
)
_DAEMON = (
    "(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, has(o.controller) "
    "&& o.controller && o.kind == 'DaemonSet' && o.apiVersion.startsWith('apps/')))"
)
_LABELS = "namespaceObject.metadata.labels"


def _own(project: str) -> str:
    """CEL: the namespace belongs to a slice of this project, whose pods `pod_review` judges."""
    return (
        f"(has({_LABELS}) && '{NAMESPACE_SLICE}' in {_LABELS} && '{OWNER}' in {_LABELS} "
        f"&& {_LABELS}['{OWNER}'] == '{project}')"
    )


def variables(known: ClosedNodes, project: str) -> dict[str, str]:
    """The variables of the rules' CEL, each using only earlier ones."""
    pairs = (f"{key}={value}" for key, values in known.values.items() for value in values)
    vague = (key for key, values in known.values.items() if not values)
    nodes, values = _words("nodes", known.nodes), _words("values", pairs)
    keys, several = _words("keys", known.values), _words("vague", vague)
    every = _words("everywhere", known.everywhere)

    def may_have(key: str, value: str) -> str:
        return f"({_among(several, key)} || {_among(values, f'{key} + {chr(39)}={chr(39)} + {value}')})"

    excludes = (
        f"(e.operator == 'In' && !e.values.exists(v, {may_have('e.key', 'v')}))"
        f" || (e.operator == 'Exists' && !{_among(keys, 'e.key')})"
        f" || (e.operator == 'DoesNotExist' && {_among(every, 'e.key')})"
    )
    terms = (
        "object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    )
    has_terms = "has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) && has(" + (
        f"{terms.rpartition('.')[0]})"
    )
    named = f"e.operator == 'In' && !e.values.exists(v, {_among(nodes, 'v')})"
    daemon = f" || ({_DAEMON} && {_SYSTEM})" if known.daemon_sets else ""
    return {
        **nodes,
        **values,
        **keys,
        **several,
        **every,
        "admitted": f"{_own(project)} || request.namespace.matches('{_pattern(known.admitted)}')"
        f" || {_USER}.startsWith('{KUBELETS}'){daemon}",
        "slice": f"has({_LABELS}) && '{NAMESPACE_SLICE}' in {_LABELS} ? {_LABELS}['{NAMESPACE_SLICE}'] : ''",
        "born": "request.operation == 'CREATE'",
        "named": f"has(object.spec.nodeName) && {_named(known, 'object.spec.nodeName')}",
        "closed": "true" if known.nodes else "false",
        "scheduling": "(has(object.spec.tolerations) ? object.spec.tolerations : []).filter(t, "
        f"(!has(t.effect) || t.effect in ['', '{EFFECT}']) && (variables.born "
        "|| !has(oldObject.spec.tolerations) || !(t in oldObject.spec.tolerations)))",
        "keptOff": "(has(object.spec.nodeSelector) && object.spec.nodeSelector.exists(k, "
        f"!{may_have('k', 'object.spec.nodeSelector[k]')})) || ({has_terms} && {terms}.all(t, "
        f"(has(t.matchExpressions) && t.matchExpressions.exists(e, {excludes})) "
        f"|| (has(t.matchFields) && t.matchFields.exists(e, {named}))))",
    }


def names_of(known: ClosedNodes) -> dict[str, str]:
    """The variables with the names of managed nodes."""
    return _words("nodes", known.nodes)


def _named(known: ClosedNodes, name: str) -> str:
    return _among(_words("nodes", known.nodes), name)


ADVICE = "an admin can admit the namespace in spec.admission.outsiders of the Cluster document"


RULES: tuple[Rule[Visitor], ...] = (
    Rule(
        reason="ManagedNodeNamed",
        text=f"spec.nodeName is a GPU node reserved for slices; choose another node, or none; {ADVICE}",
        broken=lambda v: v.born and v.spec.get("nodeName") in v.closed.nodes,
        cel="variables.born && variables.named && !(variables.admitted)",
    ),
    Rule(
        reason="ManagedToleration",
        text=f"a toleration of {SLICE} is only for pods of slices; remove it; {ADVICE}",
        broken=lambda v: any(t.get("key") == SLICE for t in v.tolerations),
        # Slices of another project tolerate their own nodes; their names differ from our slices' names.
        cel=f"variables.scheduling.exists(t, has(t.key) && t.key == '{SLICE}' && !(variables.slice != '' "
        "&& (!has(t.operator) || t.operator in ['', 'Equal']) && has(t.value) && t.value == variables.slice))"
        " && !(variables.admitted)",
    ),
    Rule(
        reason="ToleratesEverything",
        text="a toleration without a key would allow this pod on GPU nodes reserved for slices; tolerate taints "
        f"by their keys, or keep it off these nodes with spec.nodeSelector or spec.affinity; {ADVICE}",
        broken=_tolerates_all,
        cel="variables.closed && variables.scheduling.exists(t, !has(t.key) || t.key == '') "
        "&& !(variables.keptOff) && !(variables.admitted)",
    ),
)
"""Why a pod outside slices is refused."""


def broken(question: Json, closed: Iterable[ClosedNodes]) -> tuple[Rule[Visitor], ...]:
    """The rules that a pod outside slices violates, for the nodes of any project."""
    found: dict[str, Rule[Visitor]] = {}
    for known in closed:
        judged = visitor(question, known)
        if judged is not None:
            found |= {rule.reason: rule for rule in refusals(judged, RULES)}
    return tuple(found.values())


SUSPECT = (
    "(has(object.spec.nodeName) && object.spec.nodeName != '') || (has(object.spec.tolerations) "
    f"&& object.spec.tolerations.exists(t, !has(t.key) || t.key in ['', '{SLICE}']))"
)
"""CEL: the pod may violate a rule; any other is admitted without further checks."""

BINDER = f"{_SYSTEM} || {_USER}.matches('^{ACCOUNTS}(%s):')"


def binding_rule(known: ClosedNodes, project: str) -> str:
    """CEL: a user that is not a cluster scheduler binds a pod to a managed node, bypassing all taints."""
    trusted = BINDER % "|".join(name.replace("*", "[^:]*") for name in known.admitted)
    return (
        f"{_named(known, 'object.target.name')} && !({_own(project)}) && !({trusted})"
        f" && !request.namespace.matches('{_pattern(known.admitted)}')"
    )


BOUND = (
    "ManagedNodeBound: the target is a GPU node reserved for slices, where only a scheduler of the "
    f"cluster may bind pods; {ADVICE}"
)
