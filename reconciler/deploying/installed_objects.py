"""Every object of an installation, in the order of creation. Pure.

deploy/chart has the same objects as templates; tests/deploy/test_chart.py compares them one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reconciler.clusters.kubernetes.admission.webhook import SERVICE
from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, RELEASE_NVML
from reconciler.clusters.kubernetes.rbac import (
    ADMISSION_RULES,
    DOOR_RULES,
    DRAIN_RULES,
    EXPORT_RULES,
    QUEUE_RULES,
    RULES,
    Rule,
)
from reconciler.deploying import part_rights
from reconciler.deploying.install_values import AgentTelemetry, Portal, Values
from reconciler.deploying.object_kinds import KINDS
from reconciler.deploying.part_keys import keyed, signing, with_forge
from reconciler.deploying.part_names import APP, INSTANCE, PART_OF, Place, about, picked
from reconciler.deploying.part_pods import (
    HTTP,
    HTTPS,
    POD_RESOURCES,
    SECRETS,
    Program,
    daemon_set,
    deployment,
)
from schemas.export.crds import gpr_crd


def namespace(place: Place) -> Json:
    marks = {PART_OF: APP, INSTANCE: place.name, MANAGED_BY: MANAGER}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace, "labels": marks}}


def objects(values: Values, place: Place) -> list[Json]:
    """All but the namespace."""
    found = [item for part in _parts(values) for item in PARTS[part](values, place)]
    # Permissions and network policies exist before the pods start.
    order = list(KINDS)
    return sorted(found, key=lambda item: order.index(item["kind"]))


def _parts(values: Values) -> list[str]:
    found = ["controller" if values.role == "controller" else "apply"]
    return found + [
        part for part in ("door", "admission", "agents", "portal") if getattr(values, part).enabled
    ]


def _driving(values: Values) -> tuple[Rule, ...]:
    """Rules to drive the cluster that it is installed in."""
    drains = DRAIN_RULES if values.nvsentinel else ()
    queues = QUEUE_RULES if values.kueue else ()
    exports = EXPORT_RULES if values.mcs else ()
    return (*RULES, *drains, *queues, *exports, *part_rights.scaling(values.scale_targets))


def _controller(values: Values, place: Place) -> Iterator[Json]:
    given, part = values.controller, "controller"
    driving = _driving(values) if given.drives_this_cluster else ()
    rules = (*driving, *part_rights.election(place, part), *part_rights.kubeconfigs(given.cluster_secrets))
    yield from _who(place, part, rules)
    yield from _reached(values, place, part, given.replicas)
    args = [word for address in values.repositories for word in ("--repo", address)]
    args += ["--listen", f":{HTTP}", "--poll", str(given.poll)]
    args += ["--elect", f"{place.namespace}/{place.named(part)}"]
    mounts = {}
    if given.kubeconfigs:
        mounts["kubeconfigs"] = given.kubeconfigs
        args += ["--kubeconfigs", f"{SECRETS}/kubeconfigs"]
    if given.hook_secrets:
        mounts["hooks"] = given.hook_secrets
        args += ["--hook-secrets", f"{SECRETS}/hooks/secrets"]
    if given.routes:
        mounts["routes"] = given.routes
        args += ["--routes", f"{SECRETS}/routes"]
    if given.metrics_files:
        mounts["metrics"] = given.metrics_files
        args += ["--metrics-files", f"{SECRETS}/metrics"]
    run = Program("egs-reconciler", ("run", *args), mounts, ports=(_port("http", HTTP),), probes=_PROBES)
    run = keyed(run, values, given.signing_key)
    yield deployment(place, part, given.replicas, with_forge(run, values), values, given)


def _apply(values: Values, place: Place) -> Iterator[Json]:
    given, part = values.apply, "apply"
    yield from _who(place, part, (*_driving(values), *part_rights.election(place, part)))
    yield from _reached(values, place, part, given.replicas)
    args = ("--listen", f":{HTTP}", "--elect", f"{place.namespace}/{place.named(part)}")
    run = Program(
        "egs-reconciler", ("apply", *_one(values), *args), ports=(_port("http", HTTP),), probes=_PROBES
    )
    yield deployment(place, part, given.replicas, keyed(run, values, given.signing_key), values, given)


def _door(values: Values, place: Place) -> Iterator[Json]:
    yield gpr_crd()
    yield from _who(place, "door", DOOR_RULES)
    yield from _walls(values, place, "door")
    run = Program("egs-reconciler", ("door", *_one(values), "--via", values.door.via))
    run = keyed(run, values, values.door.signing_key)
    yield deployment(place, "door", 1, run, values, values.door)


def _admission(values: Values, place: Place) -> Iterator[Json]:
    given, part = values.admission, "admission"
    yield from _who(place, part, ADMISSION_RULES)
    yield from _walls(values, place, part, HTTPS)
    # API servers are given this fixed name, whatever the installation is called.
    service = _service(place, part, {"name": "https", "port": 443, "targetPort": "https"})
    yield service | {"metadata": service["metadata"] | {"name": SERVICE}}
    yield from _budget(place, part, given.replicas)
    ready = {"readinessProbe": {"tcpSocket": {"port": "https"}, "periodSeconds": 5}}
    args = ("admission", "--listen", f":{HTTPS}")
    run = Program("egs-reconciler", args, ports=(_port("https", HTTPS),), probes=ready)
    yield deployment(place, part, given.replicas, run, values, given)


def _agents(values: Values, place: Place) -> Iterator[Json]:
    shown = values.agents.telemetry
    yield part_rights.account(place, "agents", calls=False)
    yield from _walls(values, place, "agents", shown.port if shown.enabled else None, _askers(values, place))
    env = (
        {"name": "EGS_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        # The runtime provides the library and shows all GPUs; none is requested or occupied.
        {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
    )
    args = (
        "run",
        *_one(values),
        "--interval",
        str(values.agents.interval),
        "--release",
        f"{SECRETS}/release/until",
    )
    # An agent has no access to its cluster: the kubelet tells it when to let go of the driver.
    # Old servers write the object anew at each apply where the version of the field is left to them.
    annotation = {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{RELEASE_NVML}']"}
    told = {"path": "until", "fieldRef": annotation}
    run = Program("egs-agent", args, env=env, folders={"release": {"downwardAPI": {"items": [told]}}})
    run = signing(_shown(run, shown), values.agents.signing_key)
    yield daemon_set(place, "agents", run, values)


def _askers(values: Values, place: Place) -> tuple[Json, ...]:
    """Who may ask the agents."""
    return ({"podSelector": {"matchLabels": picked(place, "portal")}}, *values.agents.telemetry.from_)


def _shown(run: Program, given: AgentTelemetry) -> Program:
    """With telemetry on the pod's own address."""
    if not given.enabled:
        return run
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    sockets = ("--pod-resources", f"{POD_RESOURCES}/kubelet.sock") if given.pods else ()
    return replace(
        run,
        args=(*run.args, "--listen", f"$(POD_IP):{given.port}", *sockets),
        env=(*run.env, address),
        ports=(_port("telemetry", given.port),),
        of_kubelet=given.pods,
    )


def _portal(values: Values, place: Place) -> Iterator[Json]:
    given, part = values.portal, "portal"
    yield part_rights.account(place, part, calls=given.asks_agents)
    yield from part_rights.granted(place, part, part_rights.asking_agents() if given.asks_agents else ())
    yield from _reached(values, place, part, given.replicas)
    args = ["--repo", values.repository, "--listen", f":{HTTP}", "--poll", str(given.poll)]
    mounts = {}
    if given.session_secret:
        mounts["session"] = given.session_secret
        args += ["--session-secret", f"{SECRETS}/session/secret"]
    if given.hook_secrets:
        mounts["hooks"] = given.hook_secrets
        args += ["--hook-secrets", f"{SECRETS}/hooks/secrets"]
    if given.kubeconfigs:
        mounts["kubeconfigs"] = given.kubeconfigs
        args += ["--kubeconfigs", f"{SECRETS}/kubeconfigs"]
    if given.metrics_files:
        mounts["metrics"] = given.metrics_files
        args += ["--metrics-files", f"{SECRETS}/metrics"]
    if given.provider.secret:
        mounts["provider"] = given.provider.secret
    run = Program(
        "egs-portal",
        tuple(args),
        mounts,
        variables=_portal_variables(given),
        ports=(_port("http", HTTP),),
        probes=_PROBES,
    )
    run = keyed(run, values, given.signing_key)
    yield deployment(place, part, given.replicas, with_forge(run, values), values, given)


def _portal_variables(given: Portal) -> dict[str, str]:
    provider = given.provider
    said = {"EGS_PUBLIC_URL": given.public_url, "EGS_TRUSTS_PROXY": given.trusts_proxy}
    if provider.issuer:
        said |= {
            "EGS_OIDC_ISSUER": provider.issuer,
            "EGS_OIDC_CLIENT": provider.client,
            "EGS_OIDC_CLI_CLIENT": provider.cli_client,
            "EGS_OIDC_SCOPES": provider.scopes,
            "EGS_OIDC_GROUPS": provider.groups,
            "EGS_OIDC_SECRET_FILE": f"{SECRETS}/provider/client-secret" if provider.secret else "",
        }
    return {name: value for name, value in said.items() if value}


PARTS = {
    "controller": _controller,
    "apply": _apply,
    "door": _door,
    "admission": _admission,
    "agents": _agents,
    "portal": _portal,
}

_PROBES: dict[str, Json] = {
    "livenessProbe": {
        "httpGet": {"path": "/healthz", "port": "http"},
        "initialDelaySeconds": 10,
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 6,
    },
    "readinessProbe": {
        "httpGet": {"path": "/readyz", "port": "http"},
        "periodSeconds": 5,
        "timeoutSeconds": 5,
    },
}


def _who(place: Place, part: str, rules: tuple[Rule, ...]) -> Iterator[Json]:
    yield part_rights.account(place, part, calls=True)
    yield from part_rights.granted(place, part, rules)


def _one(values: Values) -> tuple[str, ...]:
    return ("--cluster", values.cluster, "--repo", values.repository)


def _port(name: str, number: int) -> Json:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _reached(values: Values, place: Place, part: str, replicas: int) -> Iterator[Json]:
    """What a part needs that others reach by HTTP."""
    yield from _walls(values, place, part, HTTP)
    yield _service(place, part, {"name": "http", "port": HTTP, "targetPort": "http"})
    yield from _budget(place, part, replicas)


def _service(place: Place, part: str, port: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": about(place, part),
        "spec": {"selector": picked(place, part), "ports": [{**port, "protocol": "TCP"}]},
    }


def _budget(place: Place, part: str, replicas: int) -> Iterator[Json]:
    """With several replicas one stays up when nodes are drained; with one nothing can be guaranteed."""
    if replicas > 1:
        yield {
            "apiVersion": place.budgets,
            "kind": "PodDisruptionBudget",
            "metadata": about(place, part),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": picked(place, part)}},
        }


def _walls(
    values: Values, place: Place, part: str, open_port: int | None = None, peers: tuple[Json, ...] = ()
) -> Iterator[Json]:
    """Incoming traffic to the part's port, from these peers or from all; outgoing to DNS, Git and API servers."""
    if not values.network_policies.enabled:
        return
    names = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    servers = [{"protocol": "TCP", "port": port} for port in values.network_policies.egress_ports]
    spec: Json = {
        "podSelector": {"matchLabels": picked(place, part)},
        "policyTypes": ["Ingress", "Egress"],
        "egress": [{"ports": names}, {"ports": servers}],
    }
    if open_port is not None:
        ports = [{"protocol": "TCP", "port": open_port}]
        spec["ingress"] = [{"ports": ports, "from": list(peers)} if peers else {"ports": ports}]
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": about(place, part),
        "spec": spec,
    }
