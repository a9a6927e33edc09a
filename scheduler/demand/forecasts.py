"""What a load will be a given number of steps ahead, from what was known before. Numpy only.

No forecast at `t` depends on steps from `t` on: tests/scheduler/demand/test_advice_properties.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from scheduler.demand.load import Floats, Load

SMALLEST = 1e-3
"""Nodes: a forecast is never below, so that errors can be told relative to it."""
RIDGE = 1e-3
"""Weight of the penalty on coefficients, relative to their features."""


def last(load: Load, ahead: int) -> Floats:  # noqa: ARG001 - one shape for all
    """The last value that was seen; entry `t` knows the steps before `t`, and there is one entry more than steps."""
    return _floored(np.concatenate((load.nodes[:1], load.nodes)))


def smooth(load: Load, ahead: int) -> Floats:
    """A moving mean that forgets in as many steps as it looks ahead."""
    weight, value = 1.0 / max(2, ahead), float(load.nodes[0])
    found = np.empty(len(load.nodes) + 1)
    for step, seen in enumerate(load.nodes):
        found[step] = value
        value += weight * (seen - value)
    found[-1] = value
    return _floored(found)


def ridge(load: Load, ahead: int) -> Floats:
    """A regression on recent values and on those a day ago, learnt anew as time goes on; the last value until then."""
    features, found = _features(load, ahead), last(load, ahead)
    for begin, end in relearnt(len(found)):
        known = slice(load.day, begin - ahead)  # whose outcome was seen before `begin`
        if begin - ahead - load.day < 4 * features.shape[1]:
            continue
        rows, outcome = features[known], load.nodes[load.day + ahead : begin]
        found[begin:end] = features[begin:end] @ _solved(rows, outcome)
    return _floored(found)


FORECASTS: Mapping[str, Callable[[Load, int], Floats]] = {"last": last, "smooth": smooth, "ridge": ridge}


def relearnt(entries: int) -> list[tuple[int, int]]:
    """Stretches [begin, end) between two lessons; each begins an eighth of the past after the one before."""
    found, begin = [], 0
    while begin < entries:
        end = begin + max(1, begin // 8)
        found.append((begin, min(end, entries)))
        begin = end
    return found


def _features(load: Load, ahead: int) -> Floats:
    """A row for each instant, of what is known before it."""
    nodes, day = load.nodes, load.day
    hour = max(1, 3600 // load.step_s)
    columns = [_before(nodes, lag) for lag in (1, 1 + hour // 6, 1 + hour // 2)]
    columns += [_mean_before(nodes, hour), _mean_before(nodes, 6 * hour)]
    yesterday, week = _before(nodes, _same_hour(ahead, day, 1)), _same_hour(ahead, day, 7)
    is_known = np.arange(len(nodes) + 1) >= week
    columns += [yesterday, _before(nodes, day + 1), np.where(is_known, _before(nodes, week), yesterday)]
    return np.stack([np.ones(len(nodes) + 1), *columns], axis=1)


def _same_hour(ahead: int, day: int, days: int) -> int:
    """The lag of the same time of day as `ahead`, so many days earlier, or as many more as it takes to be known."""
    lag = days * day - ahead
    return lag if lag >= 1 else day - ahead % day


def _before(nodes: Floats, lag: int) -> Floats:
    """Entry `t` is the value `lag` steps before; the first value where there is none."""
    at = np.maximum(np.arange(len(nodes) + 1) - lag, 0)
    return np.asarray(nodes[at])


def _mean_before(nodes: Floats, steps: int) -> Floats:
    sums = np.concatenate(((0.0,), np.cumsum(nodes)))
    at = np.arange(len(nodes) + 1)
    begin = np.maximum(at - steps, 0)
    return np.asarray(np.where(at > 0, (sums - sums[begin]) / np.maximum(at - begin, 1), nodes[0]))


def _solved(rows: Floats, outcome: Floats) -> Floats:
    """Ridge regression of relative errors: a percent counts the same at night and at noon."""
    weight = 1.0 / np.maximum(rows[:, 1], SMALLEST)
    scaled = rows * weight[:, None]
    size = np.sqrt((scaled**2).mean(0)) + 1e-12
    scaled = scaled / size
    square = scaled.T @ scaled + RIDGE * len(scaled) * np.eye(scaled.shape[1])
    return np.asarray(np.linalg.solve(square, scaled.T @ (outcome * weight)) / size)


def _floored(found: Floats) -> Floats:
    return np.maximum(found, SMALLEST)
