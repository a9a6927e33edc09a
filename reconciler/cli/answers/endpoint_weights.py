"""`egs endpoint promote` and `rollback`: other weights in an endpoint's file, as one change."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.changes.change import Change, Means
from reconciler.changes.publish import aimed, publish
from reconciler.endpoints.weights import NoSuchWeights, promoted, rolled_back, with_weights
from reconciler.queries.state import State, split
from reconciler.sources.command_errors import NotAllowed, NotFound
from schemas.documents.endpoint import EndpointSpec
from schemas.rules.view import endpoint_path
from schemas.status.endpoint_status import EndpointStatus

Choice = Callable[[EndpointSpec, EndpointStatus | None], dict[str, int]]


def promote(means: Means, key: str, version: str, percent: int) -> None:
    """Gives a version that share of the traffic."""
    _change(
        means,
        key,
        f"Promote {version} of {key} to {percent} %",
        lambda spec, _: promoted(spec, version, percent),
    )


def rollback(means: Means, key: str) -> None:
    """Brings back the weights that stood before."""
    _change(means, key, f"Roll back {key}", lambda spec, status: rolled_back(key, spec, status))


def _change(means: Means, key: str, subject: str, choose: Choice) -> None:
    slice_, name = split(key)
    path = endpoint_path(slice_, name)

    def build(state: State, base: str) -> Change:
        spec, data = state.wanted.endpoints.get(key), source.store.read_path(base, path)
        if spec is None or data is None:
            raise NotFound("endpoint", key, state.wanted.endpoints)
        try:
            weights = choose(spec, state.facts.endpoints.get(key))
        except NoSuchWeights as no:
            raise NotAllowed(str(no)) from no
        return Change({path: with_weights(data, weights)}, subject, f"{slice_}-{name}")

    with aimed(means) as source:
        publish(source, means, build)
