"""Served models: their versions, and how traffic is shared.

Held by tests/portal/test_endpoints.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from egs.data.records import Change, Items, Record, one, record, wire


@record
class EndpointVersion(Record):
    """One version of an endpoint."""

    name: str = ""
    model: str | None = None
    weight: int = 0
    """Percent of the traffic that it gets now."""
    wanted: int = 0
    """Percent of the traffic in the endpoint's file."""
    ready: int | None = None
    """Replicas that are ready; None: its backend does not say."""
    min: int | None = None
    max: int | None = None


def _versions(rows: Any) -> tuple[EndpointVersion, ...]:
    return tuple(map(one(EndpointVersion), rows))


@record
class InferenceEndpoint(Record):
    """A served model: where it runs, and its versions."""

    endpoint_name: str = wire("name", default="")
    workspace_name: str = wire("slice", default="")
    status: str = wire("phase", default="")
    """Pending, Serving, Draining, Failed or Removed."""
    since: str | None = None
    reason: str | None = None
    message: str | None = None
    request_name: str = wire("gpr", default="")
    """Name of the request on whose nodes it runs."""
    backend: str | None = None
    cluster_name: str | None = wire("cluster", default=None)
    namespace: str | None = None
    hostnames: tuple[str, ...] = wire("hostnames", default=(), read=tuple)
    versions: tuple[EndpointVersion, ...] = wire("versions", default=(), read=_versions)
    rollout: Mapping[str, Any] | None = None
    """How far the file's weights have come about; None in a list."""
    objects: tuple[Mapping[str, Any], ...] = wire("objects", default=(), read=tuple)
    """Kubernetes objects and their states; empty in a list."""
    events: tuple[Mapping[str, Any], ...] = wire("events", default=(), read=tuple)
    """The latest ones; empty in a list."""


class ListInferenceEndpointsResponse(Items[InferenceEndpoint]):
    """Endpoints of a workspace, by index or under `endpoints`."""

    @property
    def endpoints(self) -> Items[InferenceEndpoint]:
        return self


@record
class EndpointWeights(Record):
    """Weights as they were written into the endpoint's file."""

    name: str = ""
    """workspace/name."""
    weights: Mapping[str, int] | None = wire("weights", default=None, read=dict)
    change: Change | None = wire("change", default=None, read=one(Change))


@record
class FiledEndpoint(Record):
    """An endpoint that was filed, or only tried."""

    name: str = ""
    """workspace/name."""
    text: str = ""
    """After a dry run: the file that it would write."""
    change: Change | None = wire("change", default=None, read=one(Change))
    """None after a dry run."""
