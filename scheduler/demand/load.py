"""What a load was, and what nodes and waiting cost. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Load:
    """The work that arrived in each step, as the number of nodes that it keeps busy; oldest first."""

    step_s: int
    nodes: Floats

    def until(self, steps: int) -> Load:
        """What was known after so many steps."""
        return Load(self.step_s, self.nodes[:steps])

    @property
    def day(self) -> int:
        """Steps of a day; at least one."""
        return max(1, DAY_S // self.step_s)


@dataclass(frozen=True, slots=True)
class Terms:
    """What an answer depends on besides the load.

    `lead_s`: seconds from filing until a node works: promised wait, scale-up and cold start.
    `patience_s`: the price of waiting. Work that waited so long has cost as much as the nodes that do it.
    """

    lead_s: int
    patience_s: int

    def lead(self, load: Load) -> int:
        """The lead in steps, at least one: what is decided now never helps before the next step.

        At most the whole history: a longer one teaches nothing more.
        """
        return max(1, min(-(-self.lead_s // load.step_s), len(load.nodes)))

    def penalty(self, load: Load) -> float:
        """What it costs to miss a node for one step, in node-steps.

        More nodes come after a lead at the earliest, and until then the work waits.
        """
        return self.lead(load) * load.step_s / self.patience_s
