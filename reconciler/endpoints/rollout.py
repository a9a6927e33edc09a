"""How traffic moves from the present weights to the document's: in steps, and back if a bound is broken. Pure.

Held by tests/reconciler/endpoints/test_rollout.py:
  * the weights are always 100 together;
  * no version gains traffic while it has no ready replica;
  * a broken bound brings back exactly the weights from before, which stand until the document's weights, versions or
    rollout change; what a version had that is gone is shared by those that are left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from reconciler.model.observation import Observation
from schemas.documents.endpoint import Bounds, EndpointSpec, Rollout
from schemas.reading.units import format_duration
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
    observed: Mapping[str, Observation] | None = None  # None: the metrics could not be read


def first_rollout(spec: EndpointSpec, now: datetime) -> RolloutStatus:
    """Of an endpoint that is new: its document's weights at once."""
    weights = _target(spec)
    return RolloutStatus(state="Steady", weights=weights, target=weights, versions=_digest(spec), at=now)


def advanced(spec: EndpointSpec, known: RolloutStatus, sight: Sight, now: datetime) -> RolloutStatus:
    """The roll-out one decision later; the same value if nothing changes."""
    target, known = _target(spec), _looked_up(spec, known, sight, now)
    if known.state != "Moving":
        return known
    growing = sorted(name for name in target if target[name] > known.weights.get(name, 0))
    gained = sorted(name for name in target if target[name] > (known.before or {}).get(name, 0))
    if spec.rollout is not None and known.steps > 0:
        known = _with_silence(known, gained, sight, now)
        if (why := _failure(spec.rollout, known, gained, sight, now)) is not None:
            return _returned(known, why, now)
        growing = sorted({*growing, *(name for name in gained if known.weights.get(name))})
    if unready := [name for name in growing if name not in sight.ready]:
        return known.edited(message=f"it waits until {unready[0]} has a ready replica")
    if spec.rollout is None or known.steps == 0:
        return _stepped(known, WHOLE if spec.rollout is None else spec.rollout.step, spec, now)
    if now < known.at + spec.rollout.interval:
        return known.edited(message=None)
    if (blind := _unjudged(spec.rollout.bounds, gained, sight)) is not None:
        return known.edited(message=blind)
    return _stepped(known, spec.rollout.step, spec, now)


def begun_anew(known: RolloutStatus, now: datetime) -> RolloutStatus:
    """In another run: the present step is observed from its beginning, since all replicas start again."""
    return known.edited(at=now, unready_since=None) if known.state == "Moving" else known


def is_watched(spec: EndpointSpec, known: RolloutStatus) -> bool:
    """True if the next decision needs observations."""
    moves = known.state == "Moving" or known.target != _target(spec) or known.versions != _digest(spec)
    return spec.rollout is not None and moves


def _target(spec: EndpointSpec) -> dict[str, int]:
    return {version.name: spec.weight(version.name) for version in spec.versions}


def _digest(spec: EndpointSpec) -> str:
    """Of the versions' contents and the rules for new weights: what was mended or allowed is tried again."""
    versions = [version.model_dump(mode="json", exclude_defaults=True) for version in spec.versions]
    rules = None if spec.rollout is None else spec.rollout.model_dump(mode="json", exclude_defaults=True)
    return hashlib.sha256(json.dumps([versions, rules], sort_keys=True).encode()).hexdigest()[:16]


def _looked_up(spec: EndpointSpec, known: RolloutStatus, sight: Sight, now: datetime) -> RolloutStatus:
    """What the document says now: other weights are a new aim, other versions or rules a new try."""
    target, digest = _target(spec), _digest(spec)
    if target != known.target:
        return _aimed(known, target, sight.ready, now).edited(versions=digest)
    if known.versions in {None, digest}:
        return known if known.versions == digest else known.edited(versions=digest)
    if known.state == "Returned":
        return _aimed(known, target, sight.ready, now).edited(versions=digest)
    if (
        known.state == "Moving"
    ):  # what the old versions showed, by the old rules, says nothing of the new ones
        return known.edited(versions=digest, at=now, unready_since=None)
    return known.edited(versions=digest)


def _aimed(
    known: RolloutStatus, target: dict[str, int], ready: frozenset[str], now: datetime
) -> RolloutStatus:
    """On the way to new weights, from the present ones; a version that is gone hands its traffic over at once."""
    kept = {name: known.weights.get(name, 0) for name in target}
    able = {name: weight for name, weight in kept.items() if name in ready}
    wanted = {name: weight for name, weight in target.items() if name in ready}
    weights = _shared(kept, able) or _shared(kept, wanted) or target
    before = known.before if known.state == "Moving" else known.weights
    if before is None or not any(before.get(name) for name in target):
        before = known.weights
    state: State = "Steady" if weights == target else "Moving"
    return RolloutStatus(state=state, weights=weights, target=target, before=before, at=now, steps=0)


def _shared(kept: Weights, able: Weights) -> dict[str, int] | None:
    """The weights with what is missing to the whole given to `able` in proportion; None: none of these has any."""
    missing, total = WHOLE - sum(kept.values()), sum(able.values())
    if not missing:
        return dict(kept)
    if not total:
        return None
    found = {name: weight + missing * able.get(name, 0) // total for name, weight in kept.items()}
    largest = min(able, key=lambda name: (-able[name], name))
    found[largest] += WHOLE - sum(found.values())
    return found


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
    left = {name: (known.before or {}).get(name, 0) for name in known.target}
    weights = _shared(left, left)
    if weights is None:  # all versions from before are gone
        return known.edited(message=f"{why}; nothing from before is left to return to")
    return known.edited(state="Returned", weights=weights, at=now, unready_since=None, message=why)


def _with_silence(known: RolloutStatus, gained: list[str], sight: Sight, now: datetime) -> RolloutStatus:
    """Since when a version that gained traffic has had no ready replica, though one has that it would go back to."""
    is_silent = any(known.weights.get(name) and name not in sight.ready for name in gained)
    back = [name for name, weight in (known.before or {}).items() if weight and name in known.target]
    # Where those are silent too, as in the first minutes of a lease, silence says nothing of the new versions.
    if not is_silent or sight.ready.isdisjoint(back):
        return known.edited(unready_since=None)
    return known if known.unready_since is not None else known.edited(unready_since=now)


def _failure(
    rollout: Rollout, known: RolloutStatus, gained: list[str], sight: Sight, now: datetime
) -> str | None:
    """Why the weights go back: a bound that is broken, or no ready replica for an interval; None: they do not."""
    for name in gained:
        why = None if sight.observed is None else _broken(rollout.bounds, sight.observed.get(name))
        if why is not None:
            return f"{name} {why}"
    since = known.unready_since
    if since is None or now < since + rollout.interval:
        return None
    silent = next(name for name in gained if known.weights.get(name) and name not in sight.ready)
    return f"{silent} has had no ready replica for {format_duration(rollout.interval)}"


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
