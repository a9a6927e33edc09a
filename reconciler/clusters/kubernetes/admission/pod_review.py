"""How a pod in a slice's namespace is judged: what is added to it, and why it is refused.

Pure. A pod that asks for GPUs gets its slice's nodes: a node selector and a toleration. Other pods are not
changed, and cannot run on managed GPU nodes, whose taint they do not tolerate. Ways around that are refused.

Every rule exists in Python, for our webhook, and next to it in CEL, for the API server's own policies (made by
`admission_policies`).

If a pod is updated, only the changes are judged: pods older than the slice's claim on their namespace must
still be able to end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import (
    GPU_RESOURCE,
    MEMBER_ACCOUNT,
    MIG_RESOURCE_PREFIX,
    NAMESPACE_SLICE,
    SLICE,
)
from reconciler.clusters.kubernetes.nodes.node_inventory import Pod, is_gpu

EFFECT = "NoSchedule"
ESCAPED = SLICE.replace("~", "~0").replace("/", "~1")
"""Our key escaped for a JSON Patch path."""
DEVICES = "NVIDIA_VISIBLE_DEVICES"
NO_DEVICES = ("none", "void")
"""Values of `DEVICES` with which a container gets no GPU."""
OTHER_DEVICES = ("NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES", "NVIDIA_IMEX_CHANNELS")
HOST_CAPABILITIES = "(?i)^(CAP_)?(ALL|BPF|DAC_READ_SEARCH|SYS_ADMIN|SYS_MODULE|SYS_RAWIO)$"
"""Capabilities that allow escaping a container; runtimes accept them with and without prefix, in any case."""


def toleration(slice_: str) -> Json:
    """For the taint on this slice's nodes."""
    return {"key": SLICE, "operator": "Equal", "value": slice_, "effect": EFFECT}


@dataclass(frozen=True, slots=True)
class Subject:
    """The judged parts of one pod."""

    slice: str
    born: bool
    """The pod is being created, so all of it is judged."""
    spec: Json
    gpus: bool
    containers: tuple[Json, ...]
    tolerations: tuple[Json, ...]


def subject(pod: Json, slice_: str, before: Json | None = None) -> Subject:
    """For a pod that is being created, or updated from `before`."""
    spec, old = _spec(pod), _spec(before or {})
    containers = _containers(spec)
    if before is not None:
        known = {c.get("name") for c in old.get("ephemeralContainers") or ()}
        containers = tuple(c for c in spec.get("ephemeralContainers") or () if c.get("name") not in known)
    kept = old.get("tolerations") or ()
    return Subject(
        slice=slice_,
        born=before is None,
        spec=spec,
        gpus=asks_gpus(spec),
        containers=containers,
        tolerations=tuple(t for t in spec.get("tolerations") or () if t not in kept),
    )


def asks_gpus(spec: Json) -> bool:
    """True if it claims devices, or any container asks for GPUs or parts of one."""
    return bool(spec.get("resourceClaims")) or any(
        is_gpu(name) and str(amount) != "0"
        for container in _containers(spec)
        for side in ("requests", "limits")
        for name, amount in ((container.get("resources") or {}).get(side) or {}).items()
    )


def placing(pod: Json, slice_: str) -> list[Json]:
    """JSON Patch that gives a new pod its slice's nodes; empty if it needs no GPU or has all it needs.

    User-written fields stay. So does a contradicting selector, which `ForeignNodes` refuses.
    """
    spec = _spec(pod)
    if not asks_gpus(spec):
        return []
    patch: list[Json] = []
    selector = spec.get("nodeSelector")
    if not selector:
        patch.append({"op": "add", "path": "/spec/nodeSelector", "value": {SLICE: slice_}})
    elif SLICE not in selector:
        patch.append({"op": "add", "path": f"/spec/nodeSelector/{ESCAPED}", "value": slice_})
    given = spec.get("tolerations")
    if not given:
        patch.append({"op": "add", "path": "/spec/tolerations", "value": [toleration(slice_)]})
    elif not _tolerated(given, slice_):
        patch.append({"op": "add", "path": "/spec/tolerations/-", "value": toleration(slice_)})
    return patch


@dataclass(frozen=True, slots=True)
class Repair:
    """A patch that applies to exactly this pod."""

    pod: str  # namespace/name
    path: str
    patch: tuple[Json, ...]


def unplaced(pods: Iterable[Pod], slices: Mapping[str, str]) -> tuple[Repair, ...]:
    """Pending GPU pods created without their slice's toleration; `slices` by namespace.

    A node selector cannot be added to an existing pod, so such a pod may run on an untainted GPU node.
    """
    return tuple(
        _repair(pod, slices[pod.namespace])
        for pod in pods
        if pod.namespace in slices
        and pod.gpus > 0
        and pod.node is None
        and pod.phase == "Pending"
        and pod.ends is None
        and not _tolerated(pod.tolerations, slices[pod.namespace])
    )


def _repair(pod: Pod, slice_: str) -> Repair:
    ours = toleration(slice_)
    same: Json = {"op": "test", "path": "/metadata/uid", "value": pod.uid}
    added: Json = {"op": "add", "path": "/spec/tolerations", "value": [ours]}
    steps = [same, added]
    if pod.tolerations:
        unchanged: Json = {"op": "test", "path": "/spec/tolerations", "value": list(pod.tolerations)}
        steps = [same, unchanged, {"op": "add", "path": "/spec/tolerations/-", "value": ours}]
    return Repair(pod.key, f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", tuple(steps))


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """One refused way around the isolation. `broken` and `cel` are equivalent; CEL uses the variables below."""

    reason: str
    text: str
    broken: Callable[[T], bool]
    cel: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.text}"


def refusals(found: T, rules: Iterable[Rule[T]]) -> tuple[Rule[T], ...]:
    """All violated rules, in order."""
    return tuple(rule for rule in rules if rule.broken(found))


def _spec(pod: Json) -> Json:
    return pod.get("spec") or {}


def _containers(spec: Json) -> tuple[Json, ...]:
    return (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))


def _tolerated(tolerations: Iterable[Json], slice_: str) -> bool:
    return any(
        t.get("key") == SLICE
        and (t.get("operator") or "Equal") == "Equal"
        and t.get("value") == slice_
        and (t.get("effect") or EFFECT) == EFFECT
        for t in tolerations
    )


def _tolerates_others(found: Subject) -> bool:
    def other(t: Json) -> bool:
        if (t.get("effect") or EFFECT) != EFFECT:
            return False
        if not t.get("key"):
            return True
        if t["key"] != SLICE:
            return False
        own = (t.get("operator") or "Equal") == "Equal" and t.get("value") == found.slice
        return not (found.gpus and own)

    return any(other(t) for t in found.tolerations)


def _foreign_nodes(found: Subject) -> bool:
    selector = found.spec.get("nodeSelector") or {}
    return found.born and found.gpus and selector.get(SLICE, found.slice) != found.slice


def _not_placed(found: Subject) -> bool:
    selector = found.spec.get("nodeSelector") or {}
    placed = SLICE in selector and _tolerated(found.tolerations, found.slice)
    return found.born and found.gpus and not placed


def _security(container: Json) -> Json:
    return container.get("securityContext") or {}


def _added(container: Json) -> Iterable[str]:
    return (_security(container).get("capabilities") or {}).get("add") or ()


def _takes_devices(container: Json) -> bool:
    return any(
        (e["name"] == DEVICES and e.get("value") not in NO_DEVICES) or e["name"] in OTHER_DEVICES
        for e in container.get("env") or ()
    )


def _secrets(found: Subject) -> Iterable[str | None]:
    """Secrets that the pod reads, in volumes or variables; an existing pod's volumes cannot change."""
    for volume in (found.spec.get("volumes") or ()) if found.born else ():
        yield (volume.get("secret") or {}).get("secretName")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield (source.get("secret") or {}).get("name")
    for container in found.containers:
        for source in container.get("envFrom") or ():
            yield (source.get("secretRef") or {}).get("name")
        for variable in container.get("env") or ():
            yield ((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")


def _takes_account(found: Subject) -> bool:
    account = found.spec.get("serviceAccountName") if found.born else None
    return any((name or "").startswith(MEMBER_ACCOUNT) for name in (account, *_secrets(found)))


_CAPABILITY = re.compile(HOST_CAPABILITIES)

_GPU = f"(k == '{GPU_RESOURCE}' || k.startsWith('{MIG_RESOURCE_PREFIX}'))"
_ASKS = " || ".join(
    f"(has(c.resources.{side}) && c.resources.{side}.exists(k, {_GPU} && string(c.resources.{side}[k]) != '0'))"
    for side in ("requests", "limits")
)
GPUS = (
    "(has(object.spec.resourceClaims) && object.spec.resourceClaims.size() > 0) || "
    f"(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))"
    f".exists(c, has(c.resources) && ({_ASKS}))"
)
"""CEL: the pod asks for GPUs, or claims devices. Uses `object` only, so webhook conditions can contain it."""
TOLERATED = (
    f"t.key == '{SLICE}' && (!has(t.operator) || t.operator in ['', 'Equal']) && has(t.value) "
    f"&& t.value == variables.slice"
)
VARIABLES: Mapping[str, str] = {
    "slice": f"namespaceObject.metadata.labels['{NAMESPACE_SLICE}']",
    "born": "request.operation == 'CREATE'",
    "gpus": GPUS,
    "containers": "variables.born"
    " ? object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])"
    " : (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : [])"
    ".filter(c, !has(oldObject.spec.ephemeralContainers)"
    " || !oldObject.spec.ephemeralContainers.exists(o, o.name == c.name))",
    "tolerations": "(has(object.spec.tolerations) ? object.spec.tolerations : [])"
    ".filter(t, variables.born || !has(oldObject.spec.tolerations) || !(t in oldObject.spec.tolerations))",
    "scheduling": f"variables.tolerations.filter(t, !has(t.effect) || t.effect in ['', '{EFFECT}'])",
}
"""The variables of the rules' CEL, each using only earlier ones."""


def _begins(item: str, *fields: str) -> str:
    """CEL: the item has that nested field, and its value names a member's own object."""
    paths = [".".join((item, *fields[: count + 1])) for count in range(len(fields))]
    return " && ".join([*(f"has({path})" for path in paths), f"{paths[-1]}.startsWith('{MEMBER_ACCOUNT}')"])


_OF_VOLUMES = (
    f"object.spec.volumes.exists(v, ({_begins('v', 'secret', 'secretName')}) || (has(v.projected) "
    f"&& has(v.projected.sources) && v.projected.sources.exists(s, {_begins('s', 'secret', 'name')})))"
)
_OF_CONTAINERS = (
    f"(has(c.envFrom) && c.envFrom.exists(e, {_begins('e', 'secretRef', 'name')})) "
    f"|| (has(c.env) && c.env.exists(e, {_begins('e', 'valueFrom', 'secretKeyRef', 'name')}))"
)

WAYS_AROUND: tuple[Rule[Subject], ...] = (
    Rule(
        reason="NodeNameSet",
        text="spec.nodeName bypasses the scheduler; remove it, or choose nodes by label with spec.affinity",
        broken=lambda s: s.born and bool(s.spec.get("nodeName")),
        cel="variables.born && has(object.spec.nodeName) && object.spec.nodeName != ''",
    ),
    Rule(
        reason="ForeignToleration",
        text="a toleration would allow this pod on GPU nodes that are not its own; remove tolerations without "
        f"a key and those of {SLICE}: a pod that asks for GPUs gets its own",
        broken=_tolerates_others,
        cel="variables.scheduling.exists(t, !has(t.key) || t.key == '' "
        f"|| (t.key == '{SLICE}' && !(variables.gpus && {TOLERATED})))",
    ),
    Rule(
        reason="ForeignNodes",
        text=f"spec.nodeSelector asks for GPU nodes of another slice; remove {SLICE} from it",
        broken=_foreign_nodes,
        cel="variables.born && variables.gpus && has(object.spec.nodeSelector) "
        f"&& '{SLICE}' in object.spec.nodeSelector && object.spec.nodeSelector['{SLICE}'] != variables.slice",
    ),
    Rule(
        reason="PrivilegedContainer",
        text="a privileged container reaches every GPU of its node; remove securityContext.privileged",
        broken=lambda s: any(_security(c).get("privileged") for c in s.containers),
        cel="variables.containers.exists(c, has(c.securityContext) && has(c.securityContext.privileged) "
        "&& c.securityContext.privileged)",
    ),
    Rule(
        reason="HostCapability",
        text="a container adds a capability that allows escaping it; remove ALL, BPF, DAC_READ_SEARCH, SYS_ADMIN, "
        "SYS_MODULE and SYS_RAWIO from securityContext.capabilities.add",
        broken=lambda s: any(_CAPABILITY.match(name) for c in s.containers for name in _added(c)),
        cel="variables.containers.exists(c, has(c.securityContext) && has(c.securityContext.capabilities) "
        "&& has(c.securityContext.capabilities.add) "
        f"&& c.securityContext.capabilities.add.exists(a, a.matches('{HOST_CAPABILITIES}')))",
    ),
    Rule(
        reason="HostPathVolume",
        text="a hostPath volume reaches its node's devices and container runtime; use another kind of volume",
        broken=lambda s: s.born and any("hostPath" in v for v in s.spec.get("volumes") or ()),
        cel="variables.born && has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.hostPath))",
    ),
    Rule(
        reason="HostNamespace",
        text="hostNetwork, hostPID and hostIPC break the slice's isolation; remove them",
        broken=lambda s: s.born and any(s.spec.get(f) for f in ("hostNetwork", "hostPID", "hostIPC")),
        cel="variables.born && ((has(object.spec.hostNetwork) && object.spec.hostNetwork) "
        "|| (has(object.spec.hostPID) && object.spec.hostPID) || (has(object.spec.hostIPC) && object.spec.hostIPC))",
    ),
    Rule(
        reason="GpuEnvironment",
        text=f"{DEVICES} and similar variables take GPUs without the scheduler; remove them and request "
        f"{GPU_RESOURCE} instead ({' and '.join(NO_DEVICES)} are allowed)",
        broken=lambda s: any(_takes_devices(c) for c in s.containers),
        cel="variables.containers.exists(c, has(c.env) && c.env.exists(e, "
        f"(e.name == '{DEVICES}' && !(has(e.value) && e.value in {list(NO_DEVICES)})) "
        f"|| e.name in {list(OTHER_DEVICES)}))",
    ),
    Rule(
        reason="MemberAccount",
        text=f"ServiceAccounts {MEMBER_ACCOUNT}… and their token Secrets belong to people, and pods may not use them; "
        "use the ServiceAccount default, or one that an admin made",
        broken=_takes_account,
        cel=f"(variables.born && (({_begins('object.spec', 'serviceAccountName')}) "
        f"|| (has(object.spec.volumes) && {_OF_VOLUMES}))) || variables.containers.exists(c, {_OF_CONTAINERS})",
    ),
)
NOT_PLACED = Rule(
    reason="NotPlaced",
    text="this pod asks for GPUs, but could not be given its slice's nodes; try again "
    "(Deployments, Jobs and the like retry automatically)",
    broken=_not_placed,
    cel="variables.born && variables.gpus && !(has(object.spec.nodeSelector) "
    f"&& '{SLICE}' in object.spec.nodeSelector && variables.scheduling.exists(t, has(t.key) && {TOLERATED}))",
)
"""Used only if the failure policy refuses pods that could not be mutated."""
