"""Random node failures and repairs, deterministic for a seed.

Each node in service fails after an exponentially distributed time, so the failures of the whole fleet are one Poisson
stream, and the failing node is drawn uniformly. Repair takes a fixed time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.snapshot import FOREVER, Pool, PoolKey


@dataclass(frozen=True, slots=True)
class Failing:
    """`mean_s`: seconds of service between two failures of a node; `mended_s`: seconds of a repair."""

    mean_s: int
    mended_s: int = 24 * 3600
    seed: int = 0


class Failures:
    """The stream of failures of a fleet."""

    def __init__(self, pools: Mapping[PoolKey, Pool], failing: Failing | None, begin: int) -> None:
        self._nodes = [(key, name) for key, pool in pools.items() for name in pool.nodes]
        self._mean = 0.0 if failing is None or not self._nodes else failing.mean_s / len(self._nodes)
        self._chance = random.Random(0 if failing is None else failing.seed)  # noqa: S311 - not for secrets
        self._out = set[tuple[PoolKey, str]]()
        self.mended_s = 0 if failing is None else failing.mended_s
        self.next_at = begin
        self._draw()

    def strike(self) -> tuple[PoolKey, str] | None:
        """The node that fails at `next_at`; None if it is already out. Draws the next instant."""
        struck = self._chance.choice(self._nodes)
        self._draw()
        return None if struck in self._out else struck

    def out(self, pool: PoolKey, node: str) -> None:
        self._out.add((pool, node))

    def mend(self, pool: PoolKey, node: str) -> None:
        self._out.discard((pool, node))

    def _draw(self) -> None:
        self.next_at = (
            self.next_at + max(1, round(self._chance.expovariate(1 / self._mean))) if self._mean else FOREVER
        )
