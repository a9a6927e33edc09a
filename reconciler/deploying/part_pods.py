"""The pods of each part: command, mounts, security context. Pure.

All run without root, without privileges on the node, and with a read-only root; they write to folders that
may be deleted at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import GPU_RESOURCE, SLICE
from reconciler.deploying.install_values import Limits, Pods, Resources, Values
from reconciler.deploying.part_names import Place, about, labels, picked

USER = 10001
"""The image's user, which has a name there: ssh requires one."""
STATE, SCRATCH = "/var/lib/egs", "/tmp"  # noqa: S108 - paths in the pod
SECRETS = "/etc/egs"
READ_ONLY = 0o400
HTTP, HTTPS = 8080, 9443
"""Ports of the controller and of the webhook server."""
CALL_NOBODY = frozenset({"agents", "portal"})
"""Parts without permissions in their cluster, and so without a token; a portal that asks agents has both."""
POD_RESOURCES = "/var/lib/kubelet/pod-resources"
"""Folder of the kubelet's socket, on every node and in the pod."""
FIXED_TOLERATIONS: tuple[Json, ...] = (
    {"key": SLICE, "operator": "Exists", "effect": "NoSchedule"},
    {"key": GPU_RESOURCE, "operator": "Exists"},
)
"""An agent runs on a node whichever slice has it."""


@dataclass(frozen=True, slots=True)
class Program:
    """The single container of a part."""

    command: str
    args: tuple[str, ...]
    mounts: Mapping[str, str] = field(default_factory=dict)  # Secret by the name of its folder
    folders: Mapping[str, Json] = field(default_factory=dict)  # other mounts, by the name of their folder
    variables: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[Json, ...] = ()
    probes: Mapping[str, Json] = field(default_factory=dict)
    env: tuple[Json, ...] = ()
    of_kubelet: bool = False  # it uses the kubelet's socket


def deployment(place: Place, part: str, replicas: int, run: Program, values: Values, pods: Pods) -> Json:
    """A part with this many equal pods, on different nodes if possible."""
    spec = pod(place, part, run, values, pods)
    spec["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": picked(place, part)},
        }
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": about(place, part),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": picked(place, part)},
            "template": {"metadata": {"labels": labels(place, part)}, "spec": spec},
        },
    }


def daemon_set(place: Place, part: str, run: Program, values: Values) -> Json:
    spec = pod(place, part, run, values, values.agents)
    spec["tolerations"] = [*FIXED_TOLERATIONS, *spec.get("tolerations", ())]
    if values.agents.runtime_class:
        spec["runtimeClassName"] = values.agents.runtime_class
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": about(place, part),
        "spec": {
            "selector": {"matchLabels": picked(place, part)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": labels(place, part)}, "spec": spec},
        },
    }


def pod(place: Place, part: str, run: Program, values: Values, pods: Pods) -> Json:
    secrets = ({"git": values.git.secret} if values.git.secret else {}) | dict(run.mounts)
    folders = {name: _secret(secret) for name, secret in secrets.items()} | dict(run.folders)
    spec: Json = {
        "serviceAccountName": place.named(part),
        "automountServiceAccountToken": part not in CALL_NOBODY
        or (part == "portal" and values.portal.asks_agents),
        "securityContext": _confined(run),
        "containers": [container(place, part, run, values, pods, sorted(folders))],
        "volumes": [
            {"name": "state", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            *({"name": name, **source} for name, source in sorted(folders.items())),
            *([{"name": "kubelet", "hostPath": {"path": POD_RESOURCES}}] if run.of_kubelet else ()),
        ],
    }
    if values.image.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in values.image.pull_secrets]
    if pods.priority_class:
        spec["priorityClassName"] = pods.priority_class
    if pods.node_selector:
        spec["nodeSelector"] = dict(pods.node_selector)
    if pods.tolerations:
        spec["tolerations"] = [
            {key: value for key, value in each.model_dump().items() if value} for each in pods.tolerations
        ]
    return spec


def _confined(run: Program) -> Json:
    """No root and no capability; only the kubelet's socket needs root, still without a capability."""
    user = 0 if run.of_kubelet else USER
    found: Json = {
        "runAsNonRoot": not run.of_kubelet,
        "runAsUser": user,
        "runAsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    # Secrets are their reader's own file, or its group's: ssh refuses a root's file that a group may read.
    return found if run.of_kubelet else found | {"fsGroup": USER}


def container(
    place: Place, part: str, run: Program, values: Values, pods: Pods, folders: Sequence[str]
) -> Json:
    found: Json = {
        "name": part,
        "image": image(place, values),
        "imagePullPolicy": values.image.pull_policy,
        "command": [run.command],
        "args": list(run.args),
        "env": _environment(run, values),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": _resources(pods.resources),
        "volumeMounts": [
            {"name": "state", "mountPath": STATE},
            {"name": "tmp", "mountPath": SCRATCH},
            *({"name": name, "mountPath": f"{SECRETS}/{name}", "readOnly": True} for name in folders),
            *([{"name": "kubelet", "mountPath": POD_RESOURCES, "readOnly": True}] if run.of_kubelet else ()),
        ],
        **run.probes,
    }
    return found | ({"ports": list(run.ports)} if run.ports else {})


def image(place: Place, values: Values) -> str:
    given = values.image
    if given.digest:
        return f"{given.repository}@{given.digest}"
    return f"{given.repository}:{given.tag or place.version}"


def _environment(run: Program, values: Values) -> list[Json]:
    own = {"PYTHONSAFEPATH": "1", "EGS_STATE": STATE}
    if values.git.secret:
        own["EGS_GIT_CREDENTIALS"] = f"{SECRETS}/git"
    if values.project:
        own["EGS_PROJECT"] = values.project
    given = own | dict(run.variables) | dict(values.env)
    return [{"name": name, "value": given[name]} for name in sorted(given)] + list(run.env)


def _secret(secret: str) -> Json:
    # Readable by the pod's group only; ssh refuses a key that others may read.
    return {"secret": {"secretName": secret, "defaultMode": READ_ONLY}}


def _resources(given: Resources) -> Json:
    found = {"requests": _limits(given.requests), "limits": _limits(given.limits)}
    return {key: value for key, value in found.items() if value}


def _limits(given: Limits) -> dict[str, str]:
    return {key: value for key, value in given.model_dump().items() if value}
