"""Served models, also under the vendor's names.

Held by tests/portal/test_endpoints.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from egs.asking.paging import pages
from egs.calling import API, Ask, call
from egs.data.endpoints import (
    EndpointWeights,
    FiledEndpoint,
    InferenceEndpoint,
    ListInferenceEndpointsResponse,
)
from egs.data.records import Items, each, of
from egs.exceptions import ResourceNotFound
from egs.sessions import AuthenticatedSession
from egs.steps import Script


def endpoints(
    workspace_name: str | None = None, authenticated_session: AuthenticatedSession | None = None
) -> Script[Items[InferenceEndpoint]]:
    """Served models, by workspace and name.

    Example:
        >>> [(one.endpoint_name, one.status) for one in egs.endpoints("vision", auth)]
        [...]
    """
    rows = yield from pages(authenticated_session, f"{API}/tables/endpoints", {"sliceName": workspace_name})
    return each(InferenceEndpoint)(rows)


def endpoint(
    name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[InferenceEndpoint]:
    """One of them, with its objects and latest events; `name` is workspace/name.

    Raises ResourceNotFound: there is none of that name, or the caller may not see it.
    """
    asked = Ask("GET", f"{API}/tables/endpoint", {"name": name})
    return of(InferenceEndpoint, (yield from call(authenticated_session, asked)))


def create_endpoint(
    name: str,
    request_id: str,
    spec: Mapping[str, Any],
    authenticated_session: AuthenticatedSession | None = None,
    *,
    dry_run: bool = False,
) -> Script[FiledEndpoint]:
    """Serve a model on the nodes of a request; `name` is workspace/name, `request_id` its id or workspace/name.

    `spec` has the fields of an Endpoint's file without `slice` and `gpr`. `dry_run` writes nothing: `.text` has the
    file.

    Raises:
        BadParameters: a field is not valid; the message says what would be.
        Conflict: the workspace has an endpoint of that name.
        ResourceNotFound: there is no such workspace or request, or the caller may not see it.
        Unauthorized: the caller may not file endpoints for that workspace.

    Example:
        >>> version = {"name": "v1", "image": "vllm/vllm-openai:v0.11.0", "model": "Qwen/Qwen2.5-7B-Instruct"}
        >>> spec = {"versions": [version], "weights": {"v1": 100}}
        >>> egs.create_endpoint("vision/captions", request_id, spec, auth).change.way
        'pushed'
    """
    workspace, _, own = name.partition("/")
    body = {"sliceName": workspace, "name": own, "gprId": request_id, "spec": dict(spec), "dryRun": dry_run}
    asked = Ask("POST", f"{API}/endpoints", body=body)
    return of(FiledEndpoint, (yield from call(authenticated_session, asked)))


def promote_endpoint(
    name: str, version: str, authenticated_session: AuthenticatedSession | None = None, *, weight: int = 100
) -> Script[EndpointWeights]:
    """Give a version that share of the traffic, in percent; the others keep theirs in proportion.

    Raises:
        BadParameters: there is no such version, or no other has traffic to share the rest.
        ResourceNotFound: there is no such endpoint, or the caller may not see it.
        Unauthorized: the caller may not change it.
    """
    asked = Ask("POST", _path(name, "promote"), body={"version": version, "weight": weight})
    return of(EndpointWeights, (yield from call(authenticated_session, asked)))


def roll_back_endpoint(
    name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[EndpointWeights]:
    """Bring back the weights that stood before the present ones. Raises as `promote_endpoint`."""
    asked = Ask("POST", _path(name, "rollback"), body={})
    return of(EndpointWeights, (yield from call(authenticated_session, asked)))


def _path(name: str, what: str) -> str:
    return f"{API}/endpoints/{quote(name)}/{what}"


# -- the vendor's names ------------------------------------------------------------------------------------------------


def list_inference_endpoint(
    workspace_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[ListInferenceEndpointsResponse]:
    """As `endpoints`, in `.endpoints`."""
    return ListInferenceEndpointsResponse((yield from endpoints(workspace_name, authenticated_session)))


def describe_inference_endpoint(
    workspace_name: str,
    endpoint_name: str,
    cluster_name: str,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[InferenceEndpoint]:
    """As `endpoint`, if it runs in that cluster.

    Raises ResourceNotFound: there is none of that name in that cluster, or the caller may not see it.
    """
    name = f"{workspace_name}/{endpoint_name}"
    found = yield from endpoint(name, authenticated_session)
    if found.cluster_name not in (None, cluster_name):
        raise ResourceNotFound(f"endpoint {name} runs in cluster {found.cluster_name}, not in {cluster_name}")
    return found
