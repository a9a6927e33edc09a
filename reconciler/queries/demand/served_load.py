"""The load of an endpoint as what it served tells it: the nodes that its requests keep busy, by hour. Pure.

Held by tests/reconciler/queries/demand/test_served_load.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from reconciler.endpoints.watched import asked_past
from reconciler.model.observation import Past
from reconciler.queries.quotes import slice_of
from reconciler.queries.state import State
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from scheduler.demand.advice import HOUR_S
from scheduler.demand.load import Load
from schemas.documents.endpoint import EndpointSpec, Version

ByHour = Sequence[float | None]
"""Requests that ran and waited in each hour up to now, oldest first; None: no pod told."""


@dataclass(frozen=True, slots=True)
class Served:
    """What an endpoint served. Hours since the first answer of which nothing is known count as none served."""

    endpoint: str  # its name
    load: Load
    gpus_per_node: int
    silent_hours: int


def asked_of(state: State, slice_: str, endpoint: str) -> tuple[Past, ...]:
    """What its clusters are asked. Raises NotFound, or NotAllowed if none of them can tell."""
    spec = _spec(state, slice_, endpoint)
    if spec.scaling is None:
        raise NotAllowed(
            f"endpoint {slice_}/{endpoint} does not say how many requests one replica serves; add spec.scaling with "
            "requestsPerReplica to its file"
        )
    found = asked_past(f"{slice_}/{endpoint}", state.wanted)
    if not found:
        raise NotAllowed(
            f"no cluster of slice {slice_} has metrics.prometheus, so what {endpoint} served is not known; an admin "
            f"adds it. `egs advise {slice_}` takes the use of requests"
        )
    return found


def served_of(
    state: State, slice_: str, endpoint: str, gpus_per_node: int | None, answers: Iterable[ByHour]
) -> Served:
    """Nodes of so many GPUs; None: of as many as those of its request. Raises WrongUse if no replica fits on one."""
    spec = _spec(state, slice_, endpoint)
    version = _main(spec)
    gpus = gpus_per_node or _request_gpus(state, spec) or version.gpus_per_replica
    if gpus < version.gpus_per_replica:
        raise WrongUse(
            f"--gpus-per-node {gpus}: a replica of {version.name} needs {version.gpus_per_replica} GPUs of one node"
        )
    each = 1 if spec.scaling is None else spec.scaling.requests_per_replica
    hours = [_together(values) for values in zip_longest(*(reversed(answer) for answer in answers))]
    hours.reverse()
    while hours and hours[0] is None:
        del hours[0]
    requests = np.array([hour or 0.0 for hour in hours], dtype=np.float64)
    load = Load(HOUR_S, requests / (each * (gpus // version.gpus_per_replica)))
    return Served(endpoint, load, gpus, sum(hour is None for hour in hours))


def _spec(state: State, slice_: str, endpoint: str) -> EndpointSpec:
    slice_of(state, slice_)
    key, known = f"{slice_}/{endpoint}", state.wanted.endpoints
    if key not in known:
        raise NotFound("endpoint", key, [one for one in known if one.startswith(f"{slice_}/")])
    return known[key]


def _main(spec: EndpointSpec) -> Version:
    """The version with most of the traffic, the first of them: what is to be served is served by its like."""
    return max(spec.versions, key=lambda version: spec.weight(version.name))


def _request_gpus(state: State, spec: EndpointSpec) -> int | None:
    filed = state.wanted.filed.get(f"{spec.slice}/{spec.gpr}")
    if filed is not None and filed.spec is not None:
        return filed.spec.gpus_per_node
    status = state.facts.requests.get(f"{spec.slice}/{spec.gpr}")
    return None if status is None else status.accepted_spec.gpus_per_node


def _together(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
