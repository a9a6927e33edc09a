"""How a controller connects to a cluster's API: from inside, with a kubeconfig file, or with one from a
Secret.

A manifest contains names, never paths: the file is in the folder that the operator gave the controller, the
Secret in the controller's own namespace. So a pull request cannot make it read another file or Secret.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from reconciler.clusters.kubernetes.api.api_client import DEFAULT_RATE, Api, Rate, Rejected
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from schemas.errors import Fault, UserError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration

LIBRARY_MISSING = "KubernetesClientMissing"
SECRET_KEY = "kubeconfig"  # noqa: S105 - the name of a key


@dataclass(frozen=True, slots=True)
class Keys:
    """Where this controller has its credentials for clusters."""

    folder: Path | None = None
    """Kubeconfig files by name; None: no cluster uses a file."""
    namespace: str = SYSTEM_NAMESPACE
    """For Secrets with kubeconfigs, in the controller's own cluster."""


def in_cluster(cluster: str, rate: Rate = DEFAULT_RATE) -> Api:
    """The API of the process' own cluster, with its service account."""
    _need_library(cluster)
    from kubernetes import client, config  # takes half a second: imported only if there is a cluster

    configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException as error:
        raise UserError(
            f"clusters/{cluster}.yaml: this controller does not run inside a cluster; "
            "give spec.access.kubeconfig or spec.access.secret",
            "ClusterAccessMissing",
        ) from error
    return Api(_client(configuration), cluster, rate)


def from_file(
    cluster: str, name: str, keys: Keys, context: str | None = None, rate: Rate = DEFAULT_RATE
) -> Api:
    """By the kubeconfig file of that name in the controller's folder."""
    if keys.folder is None:
        raise UserError(
            f"clusters/{cluster}.yaml: spec.access.kubeconfig needs a folder with kubeconfigs; "
            "start the controller with --kubeconfigs DIR",
            "ClusterAccessMissing",
        )
    path = keys.folder / name
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(
            f"clusters/{cluster}.yaml: the controller has no kubeconfig {name!r} in its folder; add it",
            "ClusterAccessMissing",
        ) from error
    return from_text(cluster, text, context, rate)


def from_secret(
    cluster: str, name: str, keys: Keys, context: str | None = None, rate: Rate = DEFAULT_RATE
) -> Api:
    """By a kubeconfig in the key `kubeconfig` of a Secret beside the controller."""
    home = in_cluster(cluster, rate)
    try:
        secret = home.find(f"/api/v1/namespaces/{keys.namespace}/secrets/{name}")
    except Rejected as no:
        raise Fault(f"Secret {keys.namespace}/{name} of cluster {cluster}: {no}", no.reason) from no
    data = (secret or {}).get("data", {}).get(SECRET_KEY)
    if data is None:
        raise UserError(
            f"clusters/{cluster}.yaml: no Secret {keys.namespace}/{name} with a key {SECRET_KEY}; create it",
            "ClusterAccessMissing",
        )
    return from_text(cluster, base64.b64decode(data).decode(), context, rate)


def from_text(cluster: str, text: str, context: str | None = None, rate: Rate = DEFAULT_RATE) -> Api:
    """From the text of a kubeconfig; errors never contain any of it."""
    _need_library(cluster)
    from kubernetes import client, config  # takes half a second: imported only if there is a cluster

    configuration = client.Configuration()
    try:
        parsed: Any = yaml.safe_load(text)
        config.load_kube_config_from_dict(parsed, context=context, client_configuration=configuration)
    except (yaml.YAMLError, config.ConfigException, AttributeError, TypeError, KeyError, OSError) as error:
        raise UserError(
            f"clusters/{cluster}.yaml: the kubeconfig of cluster {cluster} cannot be used "
            f"({type(error).__name__}); try it with kubectl",
            "ClusterAccessBroken",
        ) from error
    return Api(_client(configuration), cluster, rate)


def _need_library(cluster: str) -> None:
    """UserError without the client of Kubernetes, which is an extra."""
    if find_spec("kubernetes") is None:
        raise UserError(
            f"cluster {cluster} cannot be reached: the client of Kubernetes is not installed here; "
            "install egs-gitops[kubernetes] where this program runs",
            LIBRARY_MISSING,
        )


def _client(configuration: Configuration) -> ApiClient:
    from kubernetes import client  # takes half a second: imported only if there is a cluster

    configuration.retries = False  # only our code knows which calls may be repeated
    configuration.connection_pool_maxsize = 64  # each watch holds one
    configuration.proxy = (
        configuration.proxy
    )  # as read now: the client would read the environment for each call
    return client.ApiClient(configuration)
