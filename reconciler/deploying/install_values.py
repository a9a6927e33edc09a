"""The configuration of an installation: the values of the Helm chart and of `egs install`, parsed strictly.

The models are the source; deploy/chart/values.schema.json is generated from them (`python -m
reconciler.deploying.generate`) and deploy/chart/values.yaml repeats their defaults with comments. Held by
tests/deploy/test_values.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from reconciler.model.evidence import Level
from schemas.documents.base import Model
from schemas.documents.elastic import ScaleTarget
from schemas.errors import UserError
from schemas.reading.units import Name

Secret = Annotated[str, Field(pattern=r"^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$", max_length=253)]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[int, Field(ge=1, le=3600)]
Replicas = Annotated[int, Field(ge=0, le=9)]


class Image(Model):
    """The container image."""

    repository: str = Field("egs-gitops", min_length=1, description="Name of the image, with its registry.")
    tag: str = Field("", description="Its tag; empty: the version of the chart.")
    digest: str = Field("", pattern=r"^(sha256:[0-9a-f]{64})?$", description="Takes precedence over the tag.")
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = Field(
        "IfNotPresent", description="When the image is pulled."
    )
    pull_secrets: tuple[Secret, ...] = Field((), description="Pull secrets for its registry.")


class Git(Model):
    """Credentials for the repository."""

    secret: Secret = Field(
        "", description="Secret with username, password, ssh-privatekey, known_hosts, ca.crt."
    )


class Trust(Model):
    """Whose changes count; see docs/explain/security.md."""

    level: Level | Literal[""] = Field(
        "",
        description="Evidence that a change on main needs: signature, forge or both; none: everyone who can "
        "push counts as an admin. Required.",
    )
    signers: Secret = Field("", description="ConfigMap with allowed_signers and, optionally, revoked_keys.")
    open_pgp: tuple[Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,200}\.asc$")], ...] = Field(
        (), description="Keys of that ConfigMap with exported OpenPGP keys, such as ada.asc."
    )


class Forge(Model):
    """The repository's forge, and the credentials for its API; for the controller."""

    kind: Literal["", "github", "gitlab", "gitea"] = Field(
        "", description="Empty: derived from the repository's address."
    )
    api: str = Field("", description="URL of its API; empty: that forge's default.")
    repository: str = Field("", description="OWNER/NAME; empty: derived from the repository's address.")
    secret: Secret = Field("", description="Secret with a key `token`; empty: none.")


SigningKey = Annotated[
    Secret,
    Field(description="Secret with a key `ssh-privatekey`: the ed25519 key that it signs with; empty: none."),
]


class Limits(Model):
    """Resources of one kind: CPU as `100m`, memory as `256Mi`."""

    cpu: str = Field("", description="CPU; empty: not set.")
    memory: str = Field("", description="Memory; empty: not set.")


class Resources(Model):
    """Of one container."""

    requests: Limits = Field(Limits(cpu="100m", memory="256Mi"), description="Requests.")
    limits: Limits = Field(Limits(memory="1Gi"), description="Limits.")


class Toleration(Model):
    """As in Kubernetes."""

    key: str = Field("", description="Of the taint; empty: every key.")
    operator: Literal["Equal", "Exists"] = Field("Equal", description="How values are compared.")
    value: str = Field("", description="Of the taint.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        "", description="Of the taint; empty: every one."
    )


class Pods(Model):
    """Where pods run and what they may use."""

    resources: Resources = Field(Resources(), description="Of each container.")
    node_selector: dict[str, str] = Field(default_factory=dict, description="Node selector.")
    tolerations: tuple[Toleration, ...] = Field((), description="Tolerations.")
    priority_class: str = Field("", description="PriorityClass; empty: the cluster's default.")


class Controller(Pods):
    """The controller; runs where `role` is controller."""

    replicas: Replicas = Field(2, description="Replicas; one is active, elected by Lease.")
    drives_this_cluster: bool = Field(
        True, description="Whether it drives the cluster it runs in; false: it gets no permissions there."
    )
    kubeconfigs: Secret = Field(
        "", description="Secret whose keys are the kubeconfig files of other clusters."
    )
    cluster_secrets: tuple[Secret, ...] = Field(
        (), description="Secrets that spec.access.secret of clusters may name."
    )
    hook_secrets: Secret = Field(
        "", description="Secret with a key `secrets`: webhook secrets, one per line; empty: disabled."
    )
    routes: Secret = Field(
        "", description="Secret whose keys are the addresses of notifications; empty: none are sent."
    )
    metrics_files: Secret = Field(
        "", description="Secret with the files that spec.metrics of clusters names; empty: none."
    )
    poll: Seconds = Field(30, description="Seconds between two polls of the repository.")
    signing_key: SigningKey = ""


class Apply(Pods):
    """The apply half in pull mode; runs where `role` is cluster."""

    replicas: Replicas = Field(1, description="Replicas; one is active, elected by Lease.")
    signing_key: SigningKey = ""


class Door(Pods):
    """Turns GPR objects of this cluster into commits."""

    enabled: bool = Field(False, description="Run it, and install the custom resource.")
    via: Literal["branch", "commit"] = Field(
        "branch", description="Branches for people to merge, or commits on main."
    )
    signing_key: SigningKey = ""


class Admission(Pods):
    """The webhook server, for clusters without stable admission policies (before 1.36)."""

    enabled: bool = Field(False, description="Run it.")
    replicas: Replicas = Field(2, description="Replicas; all are active.")


class AgentTelemetry(Model):
    """What the agents show of their GPUs; see docs/reference/telemetry.md."""

    enabled: bool = Field(False, description="Serve metrics and the last hours on each pod's own address.")
    port: Port = Field(9400, description="Its TCP port.")
    pods: bool = Field(
        False,
        description="Name the pods of each GPU. The kubelet's socket is root's: the agents then run as root, without "
        "capabilities and with that one folder of the node.",
    )
    from_: tuple[dict[str, Any], ...] = Field(
        (),
        alias="from",
        description="Peers that may connect beside the portal, as in a NetworkPolicy: a Prometheus, the API servers.",
    )


class Agents(Pods):
    """An agent on each GPU node."""

    enabled: bool = Field(False, description="Run them.")
    resources: Resources = Field(
        Resources(requests=Limits(cpu="50m", memory="128Mi"), limits=Limits(memory="512Mi")),
        description="Of each container.",
    )
    interval: Seconds = Field(10, description="Seconds between two readings.")
    telemetry: AgentTelemetry = Field(AgentTelemetry(), description="What they show of their GPUs.")
    signing_key: SigningKey = ""
    runtime_class: str = Field(
        "nvidia", description="RuntimeClass that gives a pod NVIDIA's library; empty: the node's default."
    )
    node_selector: dict[str, str] = Field(
        default_factory=lambda: {"nvidia.com/gpu.present": "true"}, description="Labels of GPU nodes."
    )
    tolerations: tuple[Toleration, ...] = Field(
        (), description="Further taints of GPU nodes; our own and nvidia.com/gpu are always tolerated."
    )


class Provider(Model):
    """The identity provider for logging in to the API; see docs/guides/login.md."""

    issuer: str = Field("", description="Its issuer URL; empty: API keys only.")
    client: str = Field("egs", description="Client id of this portal.")
    secret: Secret = Field("", description="Secret with a key `client-secret`; empty: a public client.")
    cli_client: str = Field("", description="Client id of `egs login`; empty: the portal's.")
    scopes: str = Field("openid profile email groups", description="Requested scopes.")
    groups: str = Field("groups", description="Claim with the groups.")


class Portal(Pods):
    """The HTTP API."""

    enabled: bool = Field(False, description="Run it.")
    replicas: Replicas = Field(2, description="Replicas; all are active.")
    public_url: str = Field("", description="Its public URL, such as https://egs.example.com.")
    session_secret: Secret = Field(
        "", description="Secret with a key `secret`, 32 bytes or more that sign sessions."
    )
    trusts_proxy: str = Field(
        "", description="Addresses of proxies whose X-Forwarded headers count; empty: none."
    )
    provider: Provider = Field(Provider(), description="The identity provider.")
    kubeconfigs: Secret = Field(
        "", description="Secret whose keys are the kubeconfig files by which it makes members' own."
    )
    hook_secrets: Secret = Field(
        "", description="Secret with a key `secrets`: webhook secrets, one per line; empty: disabled."
    )
    poll: Seconds = Field(5, description="Seconds between two polls of the repository.")
    metrics_files: Secret = Field(
        "", description="Secret with the files that spec.metrics of clusters names; empty: none."
    )
    asks_agents: bool = Field(
        False, description="It may ask this cluster's agents for telemetry, through the API server."
    )
    signing_key: SigningKey = ""


class NetworkPolicies(Model):
    """Network policies for our own pods."""

    enabled: bool = Field(True, description="Make them.")
    egress_ports: tuple[Port, ...] = Field(
        (22, 443, 6443), description="TCP ports of Git and API servers; DNS is always open."
    )


class Monitoring(Model):
    """Objects of the Prometheus operator; created by the chart only, if its kinds are served."""

    enabled: bool = Field(False, description="ServiceMonitor and PrometheusRule.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels that your Prometheus selects.")
    interval: str = Field("30s", pattern=r"^[0-9]+(s|m)$", description="Scrape interval.")
    gpu_alerts: bool = Field(False, description="PrometheusRule with the alerts about GPUs.")
    dashboards: bool = Field(
        False, description="ConfigMaps with Grafana's dashboards; they need no Prometheus operator."
    )


class Values(Model):
    """An installation in one cluster."""

    role: Literal["controller", "cluster"] = Field(
        "controller",
        description="controller: plans and drives clusters; cluster: applies another controller's decisions.",
    )
    repositories: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        (), description="Addresses, or NAME=ADDRESS; more than one only if just the controller is installed."
    )
    project: Name | Literal[""] = Field(
        "", description="Project that owns the nodes, if projects share clusters."
    )
    cluster: Name | Literal[""] = Field(
        "", description="Name of this cluster's document, where a part needs it."
    )
    image: Image = Field(Image(), description="What runs.")
    git: Git = Field(Git(), description="Credentials for the repository.")
    trust: Trust = Field(Trust(), description="Whose changes and approvals count.")
    forge: Forge = Field(Forge(), description="The repository's forge.")
    scale_targets: tuple[ScaleTarget, ...] = Field(
        (),
        description="Objects that elastic pools of this cluster scale, as in elastic.target. The process that "
        "drives the cluster may read and patch these objects and their scale, with Cluster API its Machines, and with "
        "Karpenter delete NodeClaims.",
    )
    nvsentinel: bool = Field(
        False,
        description="The process that drives the cluster may answer NVSentinel's DrainRequests; see "
        "spec.remediation of the cluster.",
    )
    kueue: bool = Field(
        False,
        description="The process that drives the cluster may keep Kueue's queues for slices with spec.queues.kueue.",
    )
    mcs: bool = Field(
        False,
        description="The process that drives the cluster may export Services of slices with spec.services.across.",
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="Further environment variables, such as HTTPS_PROXY."
    )
    controller: Controller = Field(Controller(), description="The controller.")
    apply: Apply = Field(Apply(), description="The apply half, in pull mode.")
    door: Door = Field(Door(), description="GPRs as custom resources.")
    admission: Admission = Field(Admission(), description="The webhook server.")
    agents: Agents = Field(Agents(), description="An agent on each GPU node.")
    portal: Portal = Field(Portal(), description="The HTTP API.")
    network_policies: NetworkPolicies = Field(
        NetworkPolicies(), description="Network policies for our own pods."
    )
    monitoring: Monitoring = Field(Monitoring(), description="Objects of the Prometheus operator.")
    global_: dict[str, Any] = Field(
        default_factory=dict, alias="global", description="Helm's own, for umbrella charts; ignored."
    )

    @property
    def repository(self) -> str:
        """The only address, for parts that use one."""
        name, _, address = self.repositories[0].partition("=")
        return address if address and "/" not in name and ":" not in name else self.repositories[0]


def read(given: Mapping[str, Any]) -> Values:
    """Raises UserError `ValuesInvalid` with the first problem."""
    try:
        values = Values.model_validate_json(json.dumps(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"values: {where}: {first['msg']}; see docs/guides/install.md", "ValuesInvalid"
        ) from error
    for why in missing(values):
        raise UserError(f"values: {why}", "ValuesInvalid")
    return values


def missing(values: Values) -> list[str]:
    """Missing required values; the chart has the same messages."""
    parts = [name for name in ("door", "agents") if getattr(values, name).enabled]
    parts += ["role cluster"] if values.role == "cluster" else []
    found = [] if values.repositories else ["repositories is empty; name the repository of manifests"]
    if parts and not values.cluster:
        found.append(f"cluster is empty; {parts[0]} needs the name of this cluster's document")
    one = parts + (["portal"] if values.portal.enabled else [])
    if one and len(values.repositories) > 1:
        found.append(f"repositories has more than one; {one[0]} serves one")
    if values.portal.enabled and values.portal.replicas > 1 and not values.portal.session_secret:
        found.append(
            "portal.sessionSecret is empty; several replicas need one secret to know each other's sessions"
        )
    return found + _without_keys(values)


def _without_keys(values: Values) -> list[str]:
    """Where signatures are required, every part that writes needs a key to be believed."""
    level = values.trust.level
    if not level:
        return [
            "trust.level is empty; write signature, forge or both, or none: then everyone who can push counts as an "
            "admin"
        ]
    if level == "none":
        return []
    parts = ["controller" if values.role == "controller" else "apply"]
    parts += [name for name in ("door", "agents", "portal") if getattr(values, name).enabled]
    found = [] if values.trust.signers else [f"trust.signers is empty; level {level} needs allowed_signers"]
    return found + [
        f"{part}.signingKey is empty; level {level} needs the key that {part} signs with"
        for part in parts
        if not getattr(values, part).signing_key
    ]
