"""Many stories one after the other, on all cores: campaigns of faults, and how long planted bugs survive."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.story import Given, Story, drawn
from tests.simulation.system import System


@dataclass(frozen=True, slots=True)
class Run:
    """What one seed showed."""

    seed: int
    broken: tuple[str, ...]
    hours: float
    count: Counter[str]
    digest: str


@dataclass(slots=True)
class Sum:
    """What all runs of a campaign showed."""

    runs: int = 0
    hours: float = 0.0
    count: Counter[str] = field(default_factory=Counter)
    failed: list[Run] = field(default_factory=list)

    def add(self, run: Run) -> None:
        self.runs += 1
        self.hours += run.hours
        self.count += run.count
        if run.broken:
            self.failed.append(run)


def of_seed(seed: int, story: Story) -> Run:
    """One run."""
    found = System(story).run()
    return Run(seed, tuple(found.broken), found.hours, found.count, found.digest)


def faults(seed: int) -> Story:
    """An hour with everything."""
    return drawn(seed, 1.0, faulty=1.5)


def kills(seed: int) -> Story:
    """Processes die all the time."""
    return drawn(seed, 2.0, faulty=12.0, only=("kill",))


def splits(seed: int) -> Story:
    """Leaders stand still, are cut off, or have a wrong clock while others lead."""
    return drawn(
        seed, 1.0, faulty=4.0, only=("pause", "freeze", "cut off", "clock jumps", "clock drifts", "push")
    )


def pushes(seed: int) -> Story:
    """Hardly a push does what it says."""
    return drawn(seed, 1.0, busy=2.0, faulty=15.0, only=("push", "remote away", "cut off", "news lost"))


def people(seed: int) -> Story:
    """Thirty acts of people, and hardly a fault."""
    return drawn(seed, 1.0, busy=5.0, faulty=0.25)


def storms(seed: int) -> Story:
    """A fault every two minutes, of every kind, on top of each other."""
    return drawn(seed, 1.0, busy=2.0, faulty=8.0)


def hours(seed: int) -> Story:
    """A day of few requests and few faults; polls are rare, so that it costs what happens and not what time passes."""
    story = drawn(seed, 24.0, busy=0.3, faulty=0.25)
    return replace(story, given=replace(story.given, poll=600))


STORIES: dict[str, Callable[[int], Story]] = {
    "faults": faults,
    "kills": kills,
    "splits": splits,
    "pushes": pushes,
    "storms": storms,
    "people": people,
    "hours": hours,
}


TURNS = ("storms", "people", "pushes", "splits", "kills", "faults")
"""Campaigns whose stories the planted bugs meet in turn."""


def played(campaign: str, seed: int) -> Run:
    """One run of a campaign."""
    return of_seed(seed, STORIES[campaign](seed))


def several(campaign: str, seeds: Iterable[int], workers: int) -> Iterator[Run]:
    """Their runs, in the order of the seeds."""
    if workers == 1:
        yield from map(partial(played, campaign), seeds)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(partial(played, campaign), seeds, chunksize=4)


def until(campaign: str, first: int, seconds: float, pool: int | None = None) -> Iterator[Run]:
    """Runs until that much CPU time is used: at least one; `pool`: the number of seeds, begun anew after the last."""
    begun = time.process_time()
    for turn in count():
        yield played(campaign, first + turn if pool is None else (first + turn) % pool)
        if time.process_time() - begun >= seconds or turn + 1 == pool:
            return


def pulled_week(clusters: int, days: float) -> tuple[Run, float]:
    """Clusters in pull mode; also the most pushes of one process in a minute."""
    names = {f"c{number:02d}": 2 for number in range(clusters)}
    given = Given(pulled=tuple(names), nodes=names, agents=False, poll=600, budget=2)
    system = System(Story(days * 24, given, drawn(clusters, days * 24, busy=0.3).people))
    found = system.run()
    run = Run(clusters, tuple(found.broken), found.hours, found.count, found.digest)
    return run, max(system.pushes_in_a_minute.values(), default=0)


def survived(name: str, most: int) -> int | None:
    """Seeds that the planted bug survives before one notices it; None: none of `most` does."""
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == name)
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch)
        for seed in range(most):
            if played(TURNS[seed % len(TURNS)], seed).broken:
                return seed
    return None
