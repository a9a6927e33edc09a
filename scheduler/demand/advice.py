"""How many nodes to have in each of the next hours, and by when to file for those that are missing.

Pure: the same history gives the same answer, and nothing later than the history is looked at.

What always holds (tests/scheduler/demand/test_advice_properties.py):
  * no hour is advised fewer nodes than are known to be needed in it;
  * less patience, that is dearer waiting, never means fewer nodes, as long as the same rule answers;
  * to file for nodes is advised one lead before the hour, or at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt

from scheduler.demand.choice_of_rule import Choice, accounts, chosen
from scheduler.demand.forecasts import FORECASTS
from scheduler.demand.learnt_rules import Learnt, margins, wanted
from scheduler.demand.load import Load, Terms
from scheduler.demand.thresholds import Threshold

HOUR_S = 3600
LEAST_DAYS = 3
"""A shorter history tells nothing about days; then only known needs are advised."""


@dataclass(frozen=True, slots=True)
class Hour:
    """`begin`: seconds since 1970. `known`: nodes that requests of today need then. `file_by` None: nothing to file."""

    begin: int
    expected: float
    nodes: int
    known: int
    file_by: int | None
    is_provisional: bool
    """More than a lead away: it need not be decided yet, and will be advised anew with what is known then."""

    @property
    def missing(self) -> int:
        """Nodes that are not filed for. If `known` is not 0, a request is too small: a slice runs one at a time."""
        return self.nodes - self.known


@dataclass(frozen=True, slots=True)
class Advice:
    """`choice` None: there is too little history."""

    hours: tuple[Hour, ...]
    choice: Choice | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Consecutive hours for which nothing is filed, and the nodes to have in them."""

    begin: int
    end: int
    nodes: int
    file_by: int


def advised(load: Load, terms: Terms, known: Sequence[int], now: int) -> Advice:
    """For as many hours as `known` has, the first one beginning at `now`; the load ends there."""
    if len(load.nodes) < LEAST_DAYS * load.day or not load.nodes.any():
        return Advice(tuple(_hour(terms, known, now, k, (0.0, 0)) for k in range(len(known))), None)
    choice = chosen(accounts(load, terms), len(load.nodes))
    rule = choice.learnt if choice.is_learnt else choice.threshold
    needs = [_needed(load, terms, rule, k) for k in range(len(known))]
    return Advice(tuple(_hour(terms, known, now, k, need) for k, need in enumerate(needs)), choice)


def _hour(terms: Terms, known: Sequence[int], now: int, number: int, need: tuple[float, int]) -> Hour:
    begin = now + number * HOUR_S
    expected, nodes = need
    nodes = max(nodes, known[number])
    file_by = max(now, begin - terms.lead_s) if nodes and not known[number] else None
    return Hour(begin, expected, nodes, known[number], file_by, begin - terms.lead_s > now)


def _needed(load: Load, terms: Terms, rule: Learnt | Threshold, number: int) -> tuple[float, int]:
    """The expected load and whole nodes for the hour of this number."""
    lead, ahead = terms.lead(load), max(1, (number * HOUR_S + HOUR_S // 2) // load.step_s)
    name = "ridge" if ahead > lead or isinstance(rule, Threshold) else rule.forecast
    expected = float(FORECASTS[name](load, ahead)[-1])
    if isinstance(rule, Threshold):
        window = max(1, rule.window_s // load.step_s)
        level = expected if ahead > lead else float(load.nodes[-window:].max())
        return expected, ceil(level / rule.target - 1e-9)
    if ahead <= lead:
        return expected, ceil(float(wanted(load, terms, rule)[-1]) - 1e-9)
    base, margin = (float(part[-1]) for part in margins(load, terms, rule))
    grows = expected / base if rule.scale == "level" else sqrt(expected / base)
    return expected, ceil(max(expected + margin * grows, 0.0) - 1e-9)


def gaps(hours: Sequence[Hour], lead_s: int) -> tuple[Gap, ...]:
    """One request after the other for the hours without any, never with fewer nodes than advised; by begin.

    A slice runs one request at a time, so hours that have one are left out. A change of the number of nodes is a new
    request, whose nodes take a lead to work: neighbours are joined where the idle node-hours cost less than that.
    """
    found: list[Gap] = []
    run: list[Gap] = []
    for hour in hours:
        if hour.file_by is None:
            found += _joined(run, lead_s)
            run = []
        else:
            run.append(Gap(hour.begin, hour.begin + HOUR_S, hour.nodes, hour.file_by))
    return tuple(found + _joined(run, lead_s))


def _joined(run: Sequence[Gap], lead_s: int) -> list[Gap]:
    """The cheapest join first, as long as one pays."""
    found = list(run)
    while len(found) > 1:
        extra = [_extra(one, other) - other.nodes * lead_s for one, other in pairwise(found)]
        best = min(range(len(extra)), key=extra.__getitem__)
        if extra[best] > 0:
            break
        one, other = found[best : best + 2]
        found[best : best + 2] = [Gap(one.begin, other.end, max(one.nodes, other.nodes), one.file_by)]
    return found


def _extra(one: Gap, other: Gap) -> int:
    """Idle node-seconds if both have the more of their nodes."""
    most = max(one.nodes, other.nodes)
    return (most - one.nodes) * (one.end - one.begin) + (most - other.nodes) * (other.end - other.begin)
