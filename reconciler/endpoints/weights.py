"""Weights that people ask for: a version promoted, or those from before. Pure.

Held by tests/reconciler/endpoints/test_weights.py: the answer is 100 together, or a refusal that says what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from reconciler.documents.yaml_edit import with_field
from schemas.documents.endpoint import EndpointSpec, Replicas
from schemas.errors import UserError
from schemas.status.endpoint_status import EndpointStatus

WHOLE = 100
FIELD = ("spec", "weights")


class NoSuchWeights(UserError):  # noqa: N818 - a refusal is an answer
    """The endpoint cannot have these weights; the text says which it can."""

    reason = "NotAllowed"


def promoted(spec: EndpointSpec, version: str, percent: int) -> dict[str, int]:
    """Weights in which a version has that share; the others keep theirs in proportion. Raises NoSuchWeights."""
    names = [each.name for each in spec.versions]
    if version not in names:
        raise NoSuchWeights(f"the endpoint has no version {version}; choose among {', '.join(sorted(names))}")
    others = {name: spec.weight(name) for name in names if name != version}
    left, total = WHOLE - percent, sum(others.values())
    if left and not total:
        raise NoSuchWeights(f"no other version has traffic to share the {left} % that are left; give 100")
    shares = {name: left * weight // total if left else 0 for name, weight in others.items()}
    # What rounding leaves goes to the largest, the first by name: the order is total.
    if rest := left - sum(shares.values()):
        largest = min(others, key=lambda name: (-others[name], name))
        shares[largest] += rest
    return _written({**shares, version: percent}, names)


def rolled_back(key: str, spec: EndpointSpec, status: EndpointStatus | None) -> dict[str, int]:
    """The weights that stood before the document's. Raises NoSuchWeights."""
    before = None if status is None else status.rollout.before
    if before is None:
        raise NoSuchWeights(f"no weights of endpoint {key} stood before these")
    names = [each.name for each in spec.versions]
    gone = sorted(name for name, weight in before.items() if weight and name not in names)
    if gone:
        raise NoSuchWeights(f"version {gone[0]} had traffic before, and is gone; promote another one")
    found = _written(before, names)
    if found == _written(spec.weights, names):
        raise NoSuchWeights(f"endpoint {key} has the weights from before already")
    return found


def with_weights(data: bytes, weights: Mapping[str, int]) -> bytes:
    """The document with these weights; everything else stays as it is written."""
    return with_field(data, FIELD, dict(weights))


def needed(replicas: Replicas, load: float, requests_per_replica: int) -> int:
    """Replicas for that many requests at hand, within the bounds that the lease has GPUs for."""
    return min(replicas.max, max(replicas.min, ceil(load / requests_per_replica)))


def _written(weights: Mapping[str, int], names: list[str]) -> dict[str, int]:
    """In the document's order, without versions that get none."""
    return {name: weights[name] for name in names if weights.get(name)}
