"""A member's access to a workspace's namespaces, with a token that expires within the hour.

The portal uses the operator's kubeconfig, from the folder of `--kubeconfigs`, to get a token of the caller's own
ServiceAccount; so it gives a member only their own access. A token stays valid until it expires, or until its
owner is no longer a member.

Held by tests/portal/test_kubeconfig.py, on a real API server too.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

from pydantic import Field

from portal.http.context import Wire, example
from portal.http.errors import ApiError, bad_parameters, conflict, forbidden, unavailable
from portal.http.names import listed
from portal.identity.callers import Caller
from portal.identity.rights import check_member, seen_slice
from portal.vendor.workspace_models import ClusterNamed
from portal.views.view import View
from reconciler.clusters.kubernetes.api.api_client import Rejected
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.kubernetes.tenancy.member_tokens import Door, Whose
from schemas.documents.cluster import ClusterSpec
from schemas.documents.slice import SliceSpec
from schemas.errors import UserError
from schemas.reading.units import format_instant
from schemas.reading.yaml_text import dump

LIFE = timedelta(hours=1)
"""Life of a token; a member who needs more time asks again."""


class KubeConfig(Wire):
    """A kubeconfig. Until it expires, its bearer acts as the member in the workspace's namespaces: keep it secret."""

    model_config = example(
        {"kubeConfig": "apiVersion: v1\nkind: Config\n…", "expiresAt": "2026-11-21T09:00:00Z"}
    )

    kube_config: str = Field(description="YAML for kubectl, with a context for each namespace.", repr=False)
    expires_at: str = Field(description="When its tokens expire, as set by the API server.")


@dataclass(frozen=True, slots=True)
class Way:
    """The member, the namespaces, and the operator's kubeconfig for them."""

    slice: str
    cluster: str
    namespaces: tuple[str, ...]
    email: str
    file: str
    context: str | None


def way_of(view: View, caller: Caller, asked: ClusterNamed) -> Way:
    """The access that the caller may have; ApiError 404, 403 and 422."""
    spec = seen_slice(view, caller, asked.workspace_name)
    check_member(caller, asked.workspace_name, "get its kubeconfig")
    if asked.cluster_name not in spec.clusters:
        raise bad_parameters(
            f"clusterName: workspace {asked.workspace_name} does not span it; it spans {listed(spec.clusters)}"
        )
    file, context = _operators(asked.cluster_name, view.wanted.clusters.get(asked.cluster_name))
    namespaces = tuple(dict.fromkeys(spec.namespaces))
    email = _member(spec, caller, asked.workspace_name)
    return Way(asked.workspace_name, asked.cluster_name, namespaces, email, file, context)


def _operators(name: str, cluster: ClusterSpec | None) -> tuple[str, str | None]:
    """File and context of the operator's kubeconfig for that cluster."""
    if cluster is None:
        raise bad_parameters(
            f"clusterName: cluster {name} does not exist any more; detach it from the workspace"
        )
    if cluster.driver != "kubernetes":
        raise bad_parameters(f"clusterName: cluster {name} is simulated, so kubectl cannot reach it")
    access = cluster.access
    if access is None or access.kubeconfig is None:
        raise bad_parameters(
            f"clusterName: clusters/{name}.yaml has no spec.access.kubeconfig, which the API needs to reach it; "
            f"run `egs kubeconfig` with your own credentials for {name}"
        )
    return access.kubeconfig, access.context


def _member(spec: SliceSpec, caller: Caller, name: str) -> str:
    """The address as spelled in the manifest, which names the ServiceAccount."""
    found = next((p.email for p in spec.people if p.email.lower() == caller.email.lower()), None)
    if found is None:
        raise forbidden(
            f"{caller.email} is not a member of workspace {name}, and only members have an account in its namespaces; "
            "an owner or admin must add the address to its members first"
        )
    return found


def given(way: Way, folder: Path | None) -> KubeConfig:
    """Gets the tokens. ApiError 409 if the namespaces are not ready, 422 without access, 503 on faults."""
    door = _door(way, folder)
    try:
        server = member_tokens.server_of(door)
        api = member_tokens.connected(door, way.cluster)
        tokens = {}
        for namespace in way.namespaces:
            ticket = member_tokens.standing(api, Whose(way.slice, namespace, way.email))
            tokens[namespace] = member_tokens.token(api, ticket, LIFE)
    except UserError as error:
        raise _refused(way, error) from error
    users = {namespace: member_tokens.by_token(token) for namespace, token in tokens.items()}
    end = min(token.end for token in tokens.values())
    return KubeConfig(
        kube_config=dump(member_tokens.document(way.slice, way.cluster, server, users)),
        expires_at=format_instant(end),
    )


def _door(way: Way, folder: Path | None) -> Door:
    if folder is not None:
        with suppress(OSError, ValueError):
            file = folder / way.file
            return Door(file, file.read_text(encoding="utf-8"), way.context)
    raise ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "NoKubeconfig",
        f"this portal has no kubeconfig for cluster {way.cluster}: its operator must put {way.file} into a folder "
        "and start the portal with --kubeconfigs DIR; `egs kubeconfig` works with your own credentials",
    )


def _refused(way: Way, error: UserError) -> ApiError:
    """What the caller can do: wait until the namespace exists; anything else the operator must fix."""
    cause = error.__cause__
    if isinstance(cause, Rejected) and cause.status in (404, 409):
        return conflict(
            f"the namespaces of workspace {way.slice} in cluster {way.cluster} are not ready for {way.email} yet; "
            "try again after the controller's next cycle",
            "WorkspaceNotReady",
        )
    return unavailable(
        f"cluster {way.cluster} gave the portal no token for workspace {way.slice} ({error.reason}); its operator "
        "should check the portal's kubeconfig for that cluster"
    )
