"""Pods of a slice and what becomes of each: one table for the rules in Python, in CEL, and on real API servers."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import ADOPT, NAMESPACE_SLICE, OWNER, SLICE

OURS: Json = {"key": SLICE, "operator": "Equal", "value": "vision", "effect": "NoSchedule"}
GPU = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
PLACED: Json = {"nodeSelector": {SLICE: "vision"}, "tolerations": [OURS]}
"""What a GPU pod has once it was given its slice's nodes."""


def container(name: str = "main", **more: object) -> Json:
    """One that asks for nothing."""
    return {"name": name, "image": "example.com/image", **more}


def pod(*containers: Json, name: str = "p", **spec: object) -> Json:
    """One with a single plain container, unless others are given."""
    # Without a token: a controller makes those, and takes its time for a namespace that is made anew.
    plain = {"containers": list(containers) or [container()], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**plain, **spec}}


def gpu_pod(name: str = "p", **spec: object) -> Json:
    """One that asks for a GPU."""
    return pod(container(resources=GPU), name=name, **spec)


def namespace(name: str = "vision-train", slice_: str = "vision") -> Json:
    """A slice's namespace, that an admin made and offered."""
    labels, notes = {NAMESPACE_SLICE: slice_, OWNER: "default"}, {ADOPT: "default"}
    meta = {"name": name, "labels": labels, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def patched(item: Json, patch: list[Json]) -> Json:
    """`add` of JSON Patch, which is all that is used."""
    item = copy.deepcopy(item)
    for operation in patch:
        assert operation["op"] == "add"
        at: object = item
        *parents, last = [p.replace("~1", "/") for p in operation["path"].split("/")[1:]]
        for part in parents:
            at = at[part]  # type: ignore[index]
        if last == "-":
            at.append(operation["value"])  # type: ignore[attr-defined]
        else:
            at[last] = operation["value"]  # type: ignore[index]
    return item


@dataclass(frozen=True)
class Case:
    """A new pod, already given what `placing` gives."""

    pod: Json
    refused: tuple[str, ...] = ()


def env(name: str, value: str | None = None, **more: object) -> Json:
    """A container with one variable."""
    given = {"name": name, **more} if value is None else {"name": name, "value": value, **more}
    return container(env=[given])


def adding(*capabilities: str) -> Json:
    """A container with more capabilities."""
    return container(securityContext={"capabilities": {"add": list(capabilities)}})


def tolerating(**toleration: object) -> Json:
    """A CPU pod with one toleration."""
    return pod(tolerations=[toleration])


def gpu_tolerating(**toleration: object) -> Json:
    """A placed GPU pod with one more toleration."""
    return gpu_pod(nodeSelector={SLICE: "vision"}, tolerations=[OURS, toleration])


def _case(id_: str, pod_: Json, *refused: str) -> object:
    return pytest.param(Case(pod_, refused), id=id_)


FROM_SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}
MEMBER = "egs-member-1f"
TOKEN_NAME = f"{MEMBER}-token-x2x5b"
TOKEN = {"name": "w", "secret": {"secretName": TOKEN_NAME}}
PASSWORD = {"name": "v", "secret": {"secretName": "password"}}
DISK = {"name": "v", "hostPath": {"path": "/dev"}}
LOCAL = {"name": "v", "emptyDir": {}}

CASES = [
    _case("a plain CPU pod passes", pod()),
    _case("a placed GPU pod passes", gpu_pod(**PLACED)),
    _case(
        "a pod that asks for 0 GPUs is a CPU pod",
        pod(container(resources={"limits": {"nvidia.com/gpu": "0"}})),
    ),
    _case("node affinity is free", pod(affinity={"nodeAffinity": {}})),
    _case("a CPU pod's node selector is its own", pod(nodeSelector={"disk": "ssd"})),
    _case("a node's name goes past the scheduler", pod(nodeName="gpu-1"), "NodeNameSet"),
    _case("so it does for a GPU pod", gpu_pod(nodeName="gpu-1", **PLACED), "NodeNameSet"),
    _case("a toleration of somebody else's taint is free", tolerating(key="spot", operator="Exists")),
    _case("one of every taint is not", tolerating(operator="Exists"), "ForeignToleration"),
    _case(
        "nor of every taint that keeps pods from a node",
        tolerating(operator="Exists", effect="NoSchedule"),
        "ForeignToleration",
    ),
    _case(
        "one of every taint that drives pods away is free", tolerating(operator="Exists", effect="NoExecute")
    ),
    _case("ours for every slice is refused", tolerating(key=SLICE, operator="Exists"), "ForeignToleration"),
    _case("ours for free nodes is refused", tolerating(key=SLICE, value=""), "ForeignToleration"),
    _case("ours without a value is refused", tolerating(key=SLICE), "ForeignToleration"),
    _case("ours for another slice is refused", gpu_tolerating(key=SLICE, value="audio"), "ForeignToleration"),
    _case("a GPU pod may bring its own", gpu_tolerating(key=SLICE, value="vision")),
    _case("a CPU pod may not bring it", pod(tolerations=[OURS]), "ForeignToleration"),
    _case("a GPU pod may not tolerate all", gpu_tolerating(operator="Exists"), "ForeignToleration"),
    _case(
        "a GPU pod may not ask for another slice's nodes",
        gpu_pod(nodeSelector={SLICE: "audio"}, tolerations=[OURS]),
        "ForeignNodes",
    ),
    _case("a CPU pod that does so only waits", pod(nodeSelector={SLICE: "audio"})),
    _case("a GPU pod without its nodes was not judged", gpu_pod(), "NotPlaced"),
    _case("nor one with half of it", gpu_pod(nodeSelector={SLICE: "vision"}), "NotPlaced"),
    _case("nor one with the other half", gpu_pod(tolerations=[OURS]), "NotPlaced"),
    _case(
        "a MIG slice is a GPU",
        pod(
            container(
                resources={
                    "limits": {"nvidia.com/mig-1g.10gb": "1"},
                    "requests": {"nvidia.com/mig-1g.10gb": "1"},
                }
            )
        ),
        "NotPlaced",
    ),
    _case(
        "a GPU of an init container counts", pod(initContainers=[container("i", resources=GPU)]), "NotPlaced"
    ),
    _case(
        "a privileged container is refused",
        pod(container(securityContext={"privileged": True})),
        "PrivilegedContainer",
    ),
    _case("an unprivileged one passes", pod(container(securityContext={"privileged": False}))),
    _case(
        "a privileged init container is refused",
        pod(initContainers=[container("i", securityContext={"privileged": True})]),
        "PrivilegedContainer",
    ),
    _case("SYS_ADMIN is refused", pod(adding("SYS_ADMIN")), "HostCapability"),
    _case("however it is written", pod(adding("cap_sys_module")), "HostCapability"),
    _case("ALL is refused", pod(adding("ALL")), "HostCapability"),
    _case("what RDMA and debuggers need passes", pod(adding("IPC_LOCK", "SYS_PTRACE", "NET_RAW"))),
    _case("a hostPath is refused", pod(volumes=[LOCAL, {**DISK, "name": "w"}]), "HostPathVolume"),
    _case("another volume passes", pod(volumes=[LOCAL])),
    _case("the host's network is refused", pod(hostNetwork=True), "HostNamespace"),
    _case("the host's processes are refused", pod(hostPID=True), "HostNamespace"),
    _case("the host's memory is refused", pod(hostIPC=True), "HostNamespace"),
    _case("devices by environment are refused", pod(env("NVIDIA_VISIBLE_DEVICES", "all")), "GpuEnvironment"),
    _case(
        "also in a GPU pod",
        gpu_pod(**PLACED, initContainers=[{**env("NVIDIA_VISIBLE_DEVICES", "0"), "name": "i"}]),
        "GpuEnvironment",
    ),
    _case("also from elsewhere", pod(env("NVIDIA_VISIBLE_DEVICES", valueFrom=FROM_SECRET)), "GpuEnvironment"),
    _case(
        "also empty, which is not said alike everywhere", pod(env("NVIDIA_VISIBLE_DEVICES")), "GpuEnvironment"
    ),
    _case("no devices is free", pod(env("NVIDIA_VISIBLE_DEVICES", "none"))),
    _case("void is free", pod(env("NVIDIA_VISIBLE_DEVICES", "void"))),
    _case("what else the toolkit reads is free", pod(env("NVIDIA_DRIVER_CAPABILITIES", "all"))),
    _case("IMEX channels are devices", pod(env("NVIDIA_IMEX_CHANNELS", "0")), "GpuEnvironment"),
    _case("a member's account is refused", pod(serviceAccountName=MEMBER), "MemberAccount"),
    _case("so it is in a GPU pod", gpu_pod(serviceAccountName=MEMBER, **PLACED), "MemberAccount"),
    _case("another account passes", pod(serviceAccountName="default")),
    _case("a member's token as a volume is refused", pod(volumes=[LOCAL, TOKEN]), "MemberAccount"),
    _case(
        "so it is among other sources",
        pod(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": TOKEN_NAME}}]}}]),
        "MemberAccount",
    ),
    _case(
        "and as a variable",
        pod(env("T", valueFrom={"secretKeyRef": {"name": TOKEN_NAME, "key": "token"}})),
        "MemberAccount",
    ),
    _case(
        "and as all variables",
        pod(initContainers=[container("i", envFrom=[{"secretRef": {"name": TOKEN_NAME}}])]),
        "MemberAccount",
    ),
    _case("another Secret passes", pod(env("T", valueFrom=FROM_SECRET), volumes=[PASSWORD])),
    _case(
        "everything wrong is told at once",
        pod(env("NVIDIA_VISIBLE_DEVICES", "all"), nodeName="gpu-1", hostPID=True),
        "NodeNameSet",
        "HostNamespace",
        "GpuEnvironment",
    ),
]


@dataclass(frozen=True)
class Change:
    """A living pod, and what it is changed to."""

    before: Json
    after: Json
    refused: tuple[str, ...] = ()


def _ephemeral(**more: object) -> Json:
    return pod(ephemeralContainers=[container("debug", **more)])


OLD = pod(nodeName="gpu-1", hostPID=True, tolerations=[{"operator": "Exists"}])
"""There before its namespace became a slice's."""
PRIVILEGED = {"privileged": True}

CHANGES = [
    pytest.param(Change(OLD, OLD), id="what was there may stay and end"),
    pytest.param(
        Change(pod(), pod(tolerations=[{"operator": "Exists"}]), ("ForeignToleration",)),
        id="a toleration that is added later is judged",
    ),
    pytest.param(
        Change(
            OLD,
            pod(tolerations=[{"operator": "Exists"}, {"key": SLICE, "value": ""}]),
            ("ForeignToleration",),
        ),
        id="beside one that was there",
    ),
    pytest.param(Change(gpu_pod(), gpu_pod(tolerations=[OURS])), id="a GPU pod is given its own later"),
    pytest.param(
        Change(gpu_pod(nodeName="gpu-1"), gpu_pod(nodeName="gpu-1")), id="a bound pod is not judged anew"
    ),
    pytest.param(
        Change(pod(serviceAccountName=MEMBER), pod(serviceAccountName=MEMBER)),
        id="one that runs as a member already is not judged anew",
    ),
    pytest.param(
        Change(pod(), _ephemeral(envFrom=[{"secretRef": {"name": TOKEN_NAME}}]), ("MemberAccount",)),
        id="a debugging container with a member's token is refused",
    ),
    pytest.param(Change(pod(), _ephemeral()), id="a debugging container is free"),
    pytest.param(
        Change(pod(), _ephemeral(securityContext=PRIVILEGED), ("PrivilegedContainer",)),
        id="a privileged one is not",
    ),
    pytest.param(
        Change(_ephemeral(securityContext=PRIVILEGED), _ephemeral(securityContext=PRIVILEGED)),
        id="one that was there is not judged anew",
    ),
    pytest.param(
        Change(
            _ephemeral(),
            pod(ephemeralContainers=[container("debug"), container("more", securityContext=PRIVILEGED)]),
            ("PrivilegedContainer",),
        ),
        id="one that comes beside another is",
    ),
]
