"""Which rule a load's own history speaks for; a plain threshold where it does as well.

Both sides are judged day by day: the best setting of the days before is what the day would have had. A setting that
looks good only because it was picked among many on the same days gains nothing that way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.demand.learnt_rules import LEARNT, Learnt, learnt
from scheduler.demand.load import Floats, Load, Terms
from scheduler.demand.replay_load import Account, replayed
from scheduler.demand.thresholds import THRESHOLDS, Threshold, thresholds

WARM_UP = 2 / 7
"""Share of the history that is only learnt from, at most two days."""
SAME = 0.05
"""Share of the cost by which two outcomes may differ and still count as the same."""
FEWEST_FOLDS, MOST_FOLDS = 5, 14


@dataclass(frozen=True, slots=True)
class Accounts:
    """What all rules would have cost; a step depends on earlier ones only."""

    plain: Account
    clever: Account


@dataclass(frozen=True, slots=True)
class Outcome:
    """Node-hours for each node-hour of work, waiting included at its price, and the share of work that was late."""

    cost: float
    late: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The learnt rule and the threshold to use from now on, and how each would have done so far, day by day."""

    learnt: Learnt
    threshold: Threshold
    learnt_outcome: Outcome
    threshold_outcome: Outcome

    @property
    def is_learnt(self) -> bool:
        """False: a plain threshold does as well. At the same cost, less late work is a gain."""
        own, plain = self.learnt_outcome, self.threshold_outcome
        return own.cost < plain.cost or (own.cost <= (1 + SAME) * plain.cost and own.late < plain.late)


def accounts(load: Load, terms: Terms) -> Accounts:
    """Replays all rules; O(steps x rules)."""
    plain = replayed(load, terms, thresholds(load), len(THRESHOLDS))
    return Accounts(plain, replayed(load, terms, learnt(load, terms, LEARNT), len(LEARNT)))


def chosen(found: Accounts, end: int) -> Choice:
    """From what was known after `end` steps."""
    load = found.plain.load
    begin = min(2 * load.day, int(end * WARM_UP))
    folds = min(max((end - begin) // load.day, FEWEST_FOLDS), MOST_FOLDS)
    edges = [begin + (end - begin) * fold // folds for fold in range(folds + 1)]
    picks = [_best(found, begin, edge) for edge in edges[1:]]
    outcomes = [
        _outcome(account, edges[1:], [pick[side] for pick in picks])
        for side, account in enumerate((found.plain, found.clever))
    ]
    plain, clever = picks[-1]
    return Choice(LEARNT[clever], THRESHOLDS[plain], outcomes[1], outcomes[0])


def _best(found: Accounts, begin: int, end: int) -> tuple[int, int]:
    """The cheapest threshold, and the cheapest learnt rule of those with which no more work was late."""
    plain = int(found.plain.cost(begin, end).argmin())
    bound = found.plain.lateness(begin, end)[plain]
    late, cost = found.clever.lateness(begin, end), found.clever.cost(begin, end)
    allowed: Floats = np.where(late <= bound, cost, np.inf)
    return plain, int(allowed.argmin() if np.isfinite(allowed).any() else late.argmin())


def _outcome(account: Account, edges: list[int], picks: list[int]) -> Outcome:
    spent = late = work = 0.0
    for begin, end, pick in zip(edges, edges[1:], picks, strict=False):
        arrived = float(account.load.nodes[begin:end].sum())
        spent += float(account.cost(begin, end)[pick]) * arrived
        late += float(account.lateness(begin, end)[pick]) * arrived
        work += arrived
    return Outcome(spent / max(work, 1e-9), late / max(work, 1e-9))
