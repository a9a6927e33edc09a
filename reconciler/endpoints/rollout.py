"""How traffic moves from the present weights to the document's: in steps, and back if a bound is broken. Pure.

Held by tests/reconciler/endpoints/test_rollout.py:
  * the weights are always 100 together;
  * no version gains traffic while it has no ready replica;
  * a broken bound brings back exactly the weights from before, which stand until the document's weights change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from reconciler.model.observation import Observation
from schemas.documents.endpoint import Bounds, EndpointSpec
from schemas.status.endpoint_status import RolloutStatus

LEAST_REQUESTS = 20
"""Fewer requests in an interval say nothing about a version."""
WHOLE = 100

Weights = Mapping[str, int]
State = Literal["Steady", "Moving", "Returned"]


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of the versions now: which have a ready replica, and how each did in the last interval."""

    ready: frozenset[str] = frozenset()
    observed: Mapping[str, Observation] | None = None  # None: nobody could look


def first_rollout(spec: EndpointSpec, now: datetime) -> RolloutStatus:
    """Of an endpoint that is new: its document's weights at once."""
    weights = _target(spec)
    return RolloutStatus(state="Steady", weights=weights, target=weights, at=now)


def advanced(spec: EndpointSpec, known: RolloutStatus, sight: Sight, now: datetime) -> RolloutStatus:
    """The roll-out one decision later; the same value if nothing changes."""
    target = _target(spec)
    if target != known.target:
        known = _aimed(known, target, now)
    if known.state != "Moving":
        return known
    growing = sorted(name for name in target if target[name] > known.weights.get(name, 0))
    gained = sorted(name for name in target if target[name] > (known.before or {}).get(name, 0))
    if unready := [name for name in growing if name not in sight.ready]:
        return known.edited(message=f"it waits until {unready[0]} has a ready replica")
    if spec.rollout is None or known.steps == 0:
        return _stepped(known, WHOLE if spec.rollout is None else spec.rollout.step, spec, now)
    for name in gained:
        why = None if sight.observed is None else _broken(spec.rollout.bounds, sight.observed.get(name))
        if why is not None:
            return _returned(known, f"{name} {why}", now)
    if now < known.at + spec.rollout.interval:
        return known.edited(message=None)
    if (blind := _unjudged(spec.rollout.bounds, gained, sight)) is not None:
        return known.edited(message=blind)
    return _stepped(known, spec.rollout.step, spec, now)


def is_watched(spec: EndpointSpec, known: RolloutStatus) -> bool:
    """True if the next decision needs observations."""
    moves = known.state == "Moving" or known.target != _target(spec)
    return spec.rollout is not None and moves


def _target(spec: EndpointSpec) -> dict[str, int]:
    return {version.name: spec.weight(version.name) for version in spec.versions}


def _aimed(known: RolloutStatus, target: dict[str, int], now: datetime) -> RolloutStatus:
    """On the way to new weights, from the present ones; a version that is gone hands its traffic over at once."""
    kept = {name: known.weights.get(name, 0) for name in target}
    weights = kept if sum(kept.values()) == WHOLE else target
    before = known.before if known.state == "Moving" else known.weights
    before = before if before is not None and before.keys() <= target.keys() else None
    state: State = "Steady" if weights == target else "Moving"
    return RolloutStatus(
        state=state, weights=weights, target=target, before=before or known.weights, at=now, steps=0
    )


def _stepped(known: RolloutStatus, step: int, spec: EndpointSpec, now: datetime) -> RolloutStatus:
    """One step further. The last one is observed like the others, unless nothing is."""
    if known.weights == known.target:
        return known.edited(state="Steady", message=None)
    weights = towards(known.weights, known.target, step)
    is_over = weights == known.target and spec.rollout is None
    state: State = "Steady" if is_over else "Moving"
    return known.edited(state=state, weights=weights, at=now, steps=known.steps + 1, message=None)


def towards(weights: Weights, target: Weights, step: int) -> dict[str, int]:
    """Weights at most `step` percent nearer: what some lose, others gain, by name."""
    names = sorted(target)
    gains = {name: target[name] - weights.get(name, 0) for name in names}
    found = {name: weights.get(name, 0) for name in target}
    for sign in (1, -1):
        left = step
        for name in names:
            part = min(left, max(0, sign * gains[name]))
            found[name] += sign * part
            left -= part
    return found


def _returned(known: RolloutStatus, why: str, now: datetime) -> RolloutStatus:
    weights = {name: (known.before or {}).get(name, 0) for name in known.target}
    if sum(weights.values()) != WHOLE:  # the version from before is gone: there is nothing to return to
        return known.edited(message=f"{why}; nothing from before is left to return to")
    return known.edited(state="Returned", weights=weights, at=now, message=why)


def _broken(bounds: Bounds, seen: Observation | None) -> str | None:
    """Which bound it breaks, as words; None: none, or too few requests to tell."""
    if seen is None or seen.requests < LEAST_REQUESTS:
        return None
    if bounds.error_rate is not None and (seen.error_rate or 0) > bounds.error_rate:
        return f"failed {seen.error_rate:.1%} of its requests, more than {bounds.error_rate:.1%}"
    slow = bounds.time_to_first_token
    if slow is not None and (seen.first_token_s or 0) > slow:
        return f"took {seen.first_token_s:.2f} s to the first token, more than {slow:g} s"
    return None


def _unjudged(bounds: Bounds, gained: list[str], sight: Sight) -> str | None:
    """Why the step cannot be judged; None: it can."""
    if sight.observed is None:
        return "it waits: the cluster's Prometheus cannot be asked how the versions do"
    for name in gained:
        seen = sight.observed.get(name)
        if seen is None or seen.requests < LEAST_REQUESTS:
            return f"it waits until {name} has answered {LEAST_REQUESTS} requests in an interval"
        if bounds.error_rate is not None and seen.error_rate is None:
            return f"it waits: Prometheus does not show how many requests of {name} fail"
        if bounds.time_to_first_token is not None and seen.first_token_s is None:
            return f"it waits: Prometheus does not show the time to the first token of {name}"
    return None
