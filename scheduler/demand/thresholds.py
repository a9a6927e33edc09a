"""Plain thresholds as HPA and KEDA have them: what learnt advice has to beat.

A rule wants the load over a target utilisation, rounded up; changes below the tolerance are ignored; nodes go only when
no recommendation of the stabilisation window wanted them. Half of the rules also look at the waiting work.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from scheduler.demand.load import Floats, Load
from scheduler.demand.replay_load import Decide

TARGETS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
WINDOWS_S = (300, 900, 1800, 3600)
TOLERANCE = 0.1
"""HPA's default."""
QUEUE_S = 60
"""With `counts_queue`, waiting work is to be done within a minute."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Nodes are the load over `target`, kept for `window_s`; `counts_queue`: and what drains the waiting work."""

    target: float
    window_s: int
    counts_queue: bool


THRESHOLDS = tuple(Threshold(*given) for given in product(TARGETS, WINDOWS_S, (False, True)))


def thresholds(load: Load, rules: tuple[Threshold, ...] = THRESHOLDS) -> Decide:
    """Decides for all rules at once; sees the load of the last step. Has a memory: use it for one replay."""
    target = np.array([rule.target for rule in rules])
    queue = np.array([float(rule.counts_queue) for rule in rules])
    windows = np.array([max(1, rule.window_s // load.step_s) for rule in rules])
    past = np.zeros((int(windows.max()), len(rules)))

    def decide(step: int, total: Floats, waiting: Floats) -> Floats:
        seen = load.nodes[max(0, step - 1)]
        wanted = np.maximum(np.ceil(seen / target), queue * np.ceil(waiting * load.step_s / QUEUE_S))
        wanted = np.maximum(wanted, 1.0)
        wanted = np.where(np.abs(wanted - total) <= TOLERANCE * total, total, wanted)
        past[step % len(past)] = wanted
        return np.maximum(wanted, np.minimum(total, _highest(past, windows, step)))

    return decide


def _highest(past: Floats, windows: NDArray[np.int64], step: int) -> Floats:
    found = np.zeros(past.shape[1])
    for window in np.unique(windows):
        rows = [(step - age) % len(past) for age in range(int(window))]
        own = windows == window
        found[own] = past[rows][:, own].max(0)
    return found
