"""What rules would have cost on a load: nodes from the moment they are filed for, and work that waits.

Pure, and the same for every rule: thresholds and learnt quantiles are compared on one account.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scheduler.demand.load import Floats, Load, Terms

Decide = Callable[[int, Floats, Floats], Floats]
"""Nodes wanted by each rule in a step; knows its number, nodes (also those to come) and waiting work by rule."""

LATE_S = 10
"""Work that waits longer counts as late; patience that is longer counts instead."""


@dataclass(frozen=True, slots=True)
class Account:
    """By step and rule: nodes that are paid for, work that waits, and work that came and was late (node-steps)."""

    load: Load
    terms: Terms
    nodes: Floats
    waiting: Floats
    late: Floats

    def cost(self, begin: int, end: int) -> Floats:
        """By rule, in node-steps per node-step of work: nodes, and waiting at its price."""
        price = self.load.step_s / self.terms.patience_s
        spent = self.nodes[begin:end].sum(0) + price * self.waiting[begin:end].sum(0)
        return np.asarray(spent / self._work(begin, end))

    def paid(self, begin: int, end: int) -> Floats:
        """By rule, nodes alone."""
        return np.asarray(self.nodes[begin:end].sum(0) / self._work(begin, end))

    def lateness(self, begin: int, end: int) -> Floats:
        """By rule, the share of the work that was late."""
        return np.asarray(self.late[begin:end].sum(0) / self._work(begin, end))

    def _work(self, begin: int, end: int) -> float:
        return max(float(self.load.nodes[begin:end].sum()), 1e-9)


def replayed(load: Load, terms: Terms, decide: Decide, rules: int) -> Account:
    """O(steps x rules), times the lead in steps where a rule gives nodes back."""
    lead, late_after = terms.lead(load), max(LATE_S, terms.patience_s) / load.step_s
    steps = len(load.nodes)
    ready = np.full(rules, np.ceil(load.nodes[0]) if steps else 0.0)
    coming = np.zeros((lead, rules))  # a ring: what is filed for now stands where the step is taken from
    waiting = np.zeros(rules)
    paid, waited, late = (np.zeros((steps, rules)) for _ in range(3))
    for step, work in enumerate(load.nodes):
        slot = step % lead
        ready = ready + coming[slot]
        coming[slot] = 0.0
        total = ready + coming.sum(0)
        wanted = np.maximum(decide(step, total, waiting), 0.0)
        coming[slot] = np.maximum(wanted - total, 0.0)
        ready = _given_back(np.maximum(total - wanted, 0.0), ready, coming, slot)
        left = np.maximum(waiting + work - ready, 0.0)
        behind = np.maximum(waiting, left) > late_after * ready
        paid[step] = ready + coming.sum(0)
        waited[step] = (waiting + left) / 2
        late[step] = np.where(behind, work, 0.0)
        waiting = left
    return Account(load, terms, paid, waited, late)


def _given_back(spare: Floats, ready: Floats, coming: Floats, slot: int) -> Floats:
    """Cancels what was filed for last, then gives nodes back; answers with the ready ones."""
    lead = len(coming)
    for age in range(lead):
        if not spare.any():
            return ready
        one = coming[(slot - age) % lead]
        cut = np.minimum(one, spare)
        one -= cut
        spare = spare - cut
    return np.asarray(ready - spare)
