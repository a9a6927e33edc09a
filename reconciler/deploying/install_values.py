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

    repository: Annotated[str, Field(min_length=1, description="Name of the image, with its registry.")] = (
        "egs-gitops"
    )
    tag: Annotated[str, Field(description="Its tag; empty: the version of the chart.")] = ""
    digest: Annotated[
        str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$", description="Takes precedence over the tag.")
    ] = ""
    pull_policy: Annotated[
        Literal["IfNotPresent", "Always", "Never"], Field(description="When the image is pulled.")
    ] = "IfNotPresent"
    pull_secrets: Annotated[tuple[Secret, ...], Field(description="Pull secrets for its registry.")] = ()


class Git(Model):
    """Credentials for the repository."""

    secret: Annotated[
        Secret, Field(description="Secret with username, password, ssh-privatekey, known_hosts, ca.crt.")
    ] = ""


class Trust(Model):
    """Whose changes count; see docs/security.md."""

    level: Annotated[
        Level | Literal[""],
        Field(
            description="Evidence that a change on main needs: signature, forge or both; none: everyone who can "
            "push counts as an admin. Required."
        ),
    ] = ""
    signers: Annotated[
        Secret, Field(description="ConfigMap with allowed_signers and, optionally, revoked_keys.")
    ] = ""
    open_pgp: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,200}\.asc$")], ...],
        Field(description="Keys of that ConfigMap with exported OpenPGP keys, such as ada.asc."),
    ] = ()


class Forge(Model):
    """The repository's forge, and the credentials for its API; for the controller."""

    kind: Annotated[
        Literal["", "github", "gitlab", "gitea"],
        Field(description="Empty: derived from the repository's address."),
    ] = ""
    api: Annotated[str, Field(description="URL of its API; empty: that forge's default.")] = ""
    repository: Annotated[
        str, Field(description="OWNER/NAME; empty: derived from the repository's address.")
    ] = ""
    secret: Annotated[Secret, Field(description="Secret with a key `token`; empty: none.")] = ""


SigningKey = Annotated[
    Secret,
    Field(description="Secret with a key `ssh-privatekey`: the ed25519 key that it signs with; empty: none."),
]


class Limits(Model):
    """Resources of one kind: CPU as `100m`, memory as `256Mi`."""

    cpu: Annotated[str, Field(description="CPU; empty: not set.")] = ""
    memory: Annotated[str, Field(description="Memory; empty: not set.")] = ""


class Resources(Model):
    """Of one container."""

    requests: Annotated[Limits, Field(description="Requests.")] = Limits(cpu="100m", memory="256Mi")
    limits: Annotated[Limits, Field(description="Limits.")] = Limits(memory="1Gi")


class Toleration(Model):
    """As in Kubernetes."""

    key: Annotated[str, Field(description="Of the taint; empty: every key.")] = ""
    operator: Annotated[Literal["Equal", "Exists"], Field(description="How values are compared.")] = "Equal"
    value: Annotated[str, Field(description="Of the taint.")] = ""
    effect: Annotated[
        Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"],
        Field(description="Of the taint; empty: every one."),
    ] = ""


class Pods(Model):
    """Where pods run and what they may use."""

    resources: Annotated[Resources, Field(description="Of each container.")] = Resources()
    node_selector: Annotated[dict[str, str], Field(description="Node selector.")] = Field(
        default_factory=dict
    )
    tolerations: Annotated[tuple[Toleration, ...], Field(description="Tolerations.")] = ()
    priority_class: Annotated[str, Field(description="PriorityClass; empty: the cluster's default.")] = ""


class Controller(Pods):
    """The controller; runs where `role` is controller."""

    replicas: Annotated[Replicas, Field(description="Replicas; one is active, elected by Lease.")] = 2
    drives_this_cluster: Annotated[
        bool,
        Field(description="Whether it drives the cluster it runs in; false: it gets no permissions there."),
    ] = True
    kubeconfigs: Annotated[
        Secret, Field(description="Secret whose keys are the kubeconfig files of other clusters.")
    ] = ""
    cluster_secrets: Annotated[
        tuple[Secret, ...], Field(description="Secrets that spec.access.secret of clusters may name.")
    ] = ()
    hook_secrets: Annotated[
        Secret,
        Field(description="Secret with a key `secrets`: webhook secrets, one per line; empty: disabled."),
    ] = ""
    routes: Annotated[
        Secret,
        Field(description="Secret whose keys are the addresses of notifications; empty: none are sent."),
    ] = ""
    poll: Annotated[Seconds, Field(description="Seconds between two polls of the repository.")] = 30
    signing_key: SigningKey = ""


class Apply(Pods):
    """The apply half in pull mode; runs where `role` is cluster."""

    replicas: Annotated[Replicas, Field(description="Replicas; one is active, elected by Lease.")] = 1
    signing_key: SigningKey = ""


class Door(Pods):
    """Turns GPR objects of this cluster into commits."""

    enabled: Annotated[bool, Field(description="Run it, and install the custom resource.")] = False
    via: Annotated[
        Literal["branch", "commit"], Field(description="Branches for people to merge, or commits on main.")
    ] = "branch"
    signing_key: SigningKey = ""


class Admission(Pods):
    """The webhook server, for clusters without stable admission policies (before 1.36)."""

    enabled: Annotated[bool, Field(description="Run it.")] = False
    replicas: Annotated[Replicas, Field(description="Replicas; all are active.")] = 2


class Agents(Pods):
    """An agent on each GPU node."""

    enabled: Annotated[bool, Field(description="Run them.")] = False
    resources: Annotated[Resources, Field(description="Of each container.")] = Resources(
        requests=Limits(cpu="50m", memory="128Mi"), limits=Limits(memory="512Mi")
    )
    interval: Annotated[Seconds, Field(description="Seconds between two readings.")] = 10
    signing_key: SigningKey = ""
    runtime_class: Annotated[
        str, Field(description="RuntimeClass that gives a pod NVIDIA's library; empty: the node's default.")
    ] = "nvidia"
    node_selector: Annotated[dict[str, str], Field(description="Labels of GPU nodes.")] = Field(
        default_factory=lambda: {"nvidia.com/gpu.present": "true"}
    )
    tolerations: Annotated[
        tuple[Toleration, ...],
        Field(description="Further taints of GPU nodes; our own and nvidia.com/gpu are always tolerated."),
    ] = ()


class Provider(Model):
    """The identity provider for logging in to the API; see docs/login.md."""

    issuer: Annotated[str, Field(description="Its issuer URL; empty: API keys only.")] = ""
    client: Annotated[str, Field(description="Client id of this portal.")] = "egs"
    secret: Annotated[
        Secret, Field(description="Secret with a key `client-secret`; empty: a public client.")
    ] = ""
    cli_client: Annotated[str, Field(description="Client id of `egs login`; empty: the portal's.")] = ""
    scopes: Annotated[str, Field(description="Requested scopes.")] = "openid profile email groups"
    groups: Annotated[str, Field(description="Claim with the groups.")] = "groups"


class Portal(Pods):
    """The HTTP API."""

    enabled: Annotated[bool, Field(description="Run it.")] = False
    replicas: Annotated[Replicas, Field(description="Replicas; all are active.")] = 2
    public_url: Annotated[str, Field(description="Its public URL, such as https://egs.example.com.")] = ""
    session_secret: Annotated[
        Secret, Field(description="Secret with a key `secret`, 32 bytes or more that sign sessions.")
    ] = ""
    trusts_proxy: Annotated[
        str, Field(description="Addresses of proxies whose X-Forwarded headers count; empty: none.")
    ] = ""
    provider: Annotated[Provider, Field(description="The identity provider.")] = Provider()
    kubeconfigs: Annotated[
        Secret,
        Field(description="Secret whose keys are the kubeconfig files by which it makes members' own."),
    ] = ""
    hook_secrets: Annotated[
        Secret,
        Field(description="Secret with a key `secrets`: webhook secrets, one per line; empty: disabled."),
    ] = ""
    poll: Annotated[Seconds, Field(description="Seconds between two polls of the repository.")] = 5
    signing_key: SigningKey = ""


class NetworkPolicies(Model):
    """Network policies for our own pods."""

    enabled: Annotated[bool, Field(description="Make them.")] = True
    egress_ports: Annotated[
        tuple[Port, ...], Field(description="TCP ports of Git and API servers; DNS is always open.")
    ] = (22, 443, 6443)


class Monitoring(Model):
    """Objects of the Prometheus operator; created by the chart only, if its kinds are served."""

    enabled: Annotated[bool, Field(description="ServiceMonitor and PrometheusRule.")] = False
    labels: Annotated[dict[str, str], Field(description="Labels that your Prometheus selects.")] = Field(
        default_factory=dict
    )
    interval: Annotated[str, Field(pattern=r"^[0-9]+(s|m)$", description="Scrape interval.")] = "30s"


class Values(Model):
    """An installation in one cluster."""

    role: Annotated[
        Literal["controller", "cluster"],
        Field(
            description="controller: plans and drives clusters; cluster: applies another controller's decisions."
        ),
    ] = "controller"
    repositories: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(
            description="Addresses, or NAME=ADDRESS; more than one only if just the controller is installed."
        ),
    ] = ()
    project: Annotated[
        Name | Literal[""], Field(description="Project that owns the nodes, if projects share clusters.")
    ] = ""
    cluster: Annotated[
        Name | Literal[""], Field(description="Name of this cluster's document, where a part needs it.")
    ] = ""
    image: Annotated[Image, Field(description="What runs.")] = Image()
    git: Annotated[Git, Field(description="Credentials for the repository.")] = Git()
    trust: Annotated[Trust, Field(description="Whose changes and approvals count.")] = Trust()
    forge: Annotated[Forge, Field(description="The repository's forge.")] = Forge()
    scale_targets: Annotated[
        tuple[ScaleTarget, ...],
        Field(
            description="Objects that elastic pools of this cluster scale, as in elastic.target. The process that "
            "drives the cluster may read and patch these objects and their scale, and with Cluster API its Machines."
        ),
    ] = ()
    env: Annotated[
        dict[str, str], Field(description="Further environment variables, such as HTTPS_PROXY.")
    ] = Field(default_factory=dict)
    controller: Annotated[Controller, Field(description="The controller.")] = Controller()
    apply: Annotated[Apply, Field(description="The apply half, in pull mode.")] = Apply()
    door: Annotated[Door, Field(description="GPRs as custom resources.")] = Door()
    admission: Annotated[Admission, Field(description="The webhook server.")] = Admission()
    agents: Annotated[Agents, Field(description="An agent on each GPU node.")] = Agents()
    portal: Annotated[Portal, Field(description="The HTTP API.")] = Portal()
    network_policies: Annotated[NetworkPolicies, Field(description="Network policies for our own pods.")] = (
        NetworkPolicies()
    )
    monitoring: Annotated[Monitoring, Field(description="Objects of the Prometheus operator.")] = Monitoring()
    global_: Annotated[
        dict[str, Any], Field(alias="global", description="Helm's own, for umbrella charts; ignored.")
    ] = Field(default_factory=dict)

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
            f"values: {where}: {first['msg']}; see docs/operations.md", "ValuesInvalid"
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
