"""Rules that keep a learnt quantile of the forecast's error above the forecast.

The newsvendor's answer: with a miss that costs `penalty` and a node that costs 1, the right amount is the quantile
penalty / (penalty + 1) of what may be needed when the nodes come, that is one lead from now. Errors are learnt over
exactly this lead. Work that waits already is added, to be done within a lead: the correction for backlog.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from scheduler.demand.forecasts import FORECASTS, SMALLEST, relearnt
from scheduler.demand.load import Floats, Load, Terms
from scheduler.demand.replay_load import Decide

Forecast = Literal["last", "smooth", "ridge"]
Scale = Literal["level", "root"]

FEWEST_ERRORS = 48
"""Fewer say nothing about a tail: until then a rule keeps the most that it saw."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """`scale`: what errors grow with, the level or its root. `strictness` multiplies the penalty: a miss also makes
    later work wait, how much differs from load to load. `hold`: leads for which wanted nodes are kept."""

    forecast: Forecast
    scale: Scale
    strictness: float
    hold: int


_FORECASTS: tuple[Forecast, ...] = ("last", "smooth", "ridge")
_SCALES: tuple[Scale, ...] = ("level", "root")
LEARNT = tuple(Learnt(*given) for given in product(_FORECASTS, _SCALES, (0.1, 0.3, 1.0, 3.0), (1, 2)))


def margins(load: Load, terms: Terms, rule: Learnt) -> tuple[Floats, Floats]:
    """The forecast one lead ahead and the learnt margin above it; entry `t` knows the steps before `t`."""
    lead = terms.lead(load)
    penalty = rule.strictness * terms.penalty(load)
    found = FORECASTS[rule.forecast](load, lead)
    scale = found if rule.scale == "level" else np.sqrt(found)
    told = max(0, len(load.nodes) - lead)  # forecasts whose outcome was seen
    errors = (load.nodes[lead:] - found[:told]) / scale[:told]
    margin = np.empty(len(found))
    for begin, end in relearnt(len(found)):
        known = errors[: max(0, begin - lead)]
        if len(known) < FEWEST_ERRORS:
            most = load.nodes[:begin].max(initial=float(load.nodes[0]))
            margin[begin:end] = np.maximum(most - found[begin:end], 0.0)
        else:
            margin[begin:end] = np.quantile(known, penalty / (penalty + 1.0)) * scale[begin:end]
    return found, margin


def wanted(load: Load, terms: Terms, rule: Learnt) -> Floats:
    """Nodes to have one lead from now, without waiting work; not rounded; entry `t` knows the steps before `t`."""
    expected, margin = margins(load, terms, rule)
    return held(np.maximum(expected + margin, SMALLEST), rule.hold * terms.lead(load))


def held(found: Floats, steps: int) -> Floats:
    """The most of an entry and of so many before it: what is given back now is missing for a whole lead."""
    padded = np.concatenate((np.full(steps, found[0]), found))
    return np.asarray(sliding_window_view(padded, steps + 1).max(1))


def with_backlog(nodes: Floats, waiting: Floats, lead: int) -> Floats:
    """Whole nodes; waiting work is to be done within a lead."""
    return np.asarray(np.ceil(nodes + waiting / lead - 1e-9))


def learnt(load: Load, terms: Terms, rules: tuple[Learnt, ...]) -> Decide:
    """Decides for all rules at once."""
    targets = np.stack([wanted(load, terms, rule) for rule in rules], axis=1)
    lead = terms.lead(load)

    def decide(step: int, total: Floats, waiting: Floats) -> Floats:  # noqa: ARG001 - one shape for all
        return with_backlog(targets[step], waiting, lead)

    return decide
