"""`egs get endpoints` and `egs describe endpoint`: served models, and how their traffic is shared."""

from __future__ import annotations

from typing import Any

from reconciler.queries.state import State
from reconciler.sources.command_errors import NotFound
from schemas.documents.endpoint import EndpointSpec
from schemas.reading.units import wire
from schemas.rules.view import endpoint_path
from schemas.status.endpoint_status import EndpointPhase, EndpointStatus

Row = dict[str, Any]


def rows(state: State, slice_: str | None = None) -> list[Row]:
    """Every endpoint, by slice and name."""
    return [_row(key, state) for key in sorted(known(state)) if slice_ in (None, key.partition("/")[0])]


def known(state: State) -> set[str]:
    """Endpoints with a document or a status, as slice/name."""
    return {*state.wanted.endpoints, *state.facts.endpoints}


def endpoint_data(state: State, key: str, told: list[dict[str, str]]) -> Row:
    """The data of `egs describe endpoint`. Raises NotFound."""
    if key not in known(state):
        raise NotFound("endpoint", key, known(state))
    status, own = state.facts.endpoints.get(key), f"endpoint {key} "
    return {
        **_row(key, state),
        "rollout": None if status is None else status.rollout.model_dump(mode="json", by_alias=True),
        "objects": [] if status is None else [each.model_dump(mode="json") for each in status.run.objects],
        "file": endpoint_path(*key.split("/")),
        "events": [row for row in told if row["message"].startswith(own)],
    }


def _row(key: str, state: State) -> Row:
    slice_, _, name = key.partition("/")
    spec, status = state.wanted.endpoints.get(key), state.facts.endpoints.get(key)
    run = None if status is None else status.run
    return {
        "slice": slice_,
        "name": name,
        "phase": str(EndpointPhase.PENDING if status is None else status.phase),
        "since": None if status is None else wire(status.since),
        "reason": "NotSeen" if status is None else status.reason,
        "message": "no controller has read it yet" if status is None else status.message,
        "gpr": spec.gpr if spec is not None else "" if run is None else run.gpr,
        "backend": None if spec is None else spec.backend,
        "cluster": None if run is None else run.cluster,
        "namespace": None if run is None else run.namespace,
        "hostnames": [] if spec is None or spec.route is None else list(spec.route.hostnames),
        "versions": _versions(spec, status),
    }


def _versions(spec: EndpointSpec | None, status: EndpointStatus | None) -> list[Row]:
    """Each with its weight now, the document's weight, and its ready replicas."""
    seen = {} if status is None else {each.name: each for each in status.versions}
    written = {} if spec is None else {each.name: each for each in spec.versions}
    found = []
    for name in dict.fromkeys((*written, *seen)):
        version, now = written.get(name), seen.get(name)
        found.append(
            {
                "name": name,
                "model": None if version is None else version.model,
                "weight": 0 if now is None else now.weight,
                "wanted": 0 if spec is None else spec.weight(name),
                "ready": 0 if now is None else now.ready,
                "min": None if version is None else version.replicas.min,
                "max": None if version is None else version.replicas.max,
            }
        )
    return found
