"""One story as data: what is there, what people do, and what goes wrong. Drawn by a seed, or read from a YAML case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from random import Random
from typing import Any

import yaml

PEOPLE = (
    ("file", 30), ("edit", 6), ("revert", 3), ("release", 4), ("cancel", 4), ("extend", 3), ("approve", 5),
    ("reject", 1), ("delete", 1), ("race", 2), ("flood", 0.3), ("job", 6), ("broken file", 1), ("maintenance", 1),
    ("policy", 1), ("price", 1), ("stop", 1), ("resume", 1),
)  # fmt: skip
"""What people do, and how often."""
FAULTS = (
    ("kill", 20), ("pause", 10), ("freeze", 5), ("clock jumps", 4), ("clock drifts", 3), ("push", 10),
    ("remote away", 4), ("cut off", 4), ("status deleted", 0.5), ("status set back", 0.5),
    ("agent branch deleted", 0.5), ("api away", 5), ("answers lost", 4), ("api slow", 3), ("news lost", 4),
    ("node flaps", 6), ("check fails", 3), ("drain hangs", 3), ("cordon", 2), ("gpu fails", 3),
    ("agent stops", 2), ("agent lies", 1), ("caches damaged", 2),
)  # fmt: skip
"""What goes wrong, and how often."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is there at the beginning."""

    controllers: int = 2
    elected: bool = False
    poll: int = 60  # seconds
    pulled: tuple[str, ...] = ()
    agents: bool = True
    budget: int | None = None  # pushes a minute
    nodes: Mapping[str, int] = field(default_factory=lambda: {"east": 3, "west": 2})


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that a person does, or that goes wrong; what the numbers pick depends on what there is then."""

    at: float  # minutes
    do: str
    n: int = 0
    m: int = 0
    seconds: int = 0
    how: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """The same story is the same run, to the byte."""

    hours: float
    given: Given = Given()
    people: tuple[Happening, ...] = ()
    faults: tuple[Happening, ...] = ()
    seed: int | None = None

    @property
    def happenings(self) -> list[Happening]:
        """All, in order."""
        return sorted((*self.people, *self.faults), key=lambda h: h.at)


def drawn(
    seed: int, hours: float, *, busy: float = 1.0, faulty: float = 1.0, only: Sequence[str] = ()
) -> Story:
    """The story of that seed: `busy` times six acts of people and `faulty` times four faults an hour.

    `only`: faults of these kinds.
    """
    random = Random(seed)
    given = Given(
        controllers=random.choice((2, 2, 2, 1, 3)),
        elected=random.random() < 0.4,
        poll=random.choice((30, 60, 300)),
        pulled=random.choice(((), (), ("west",), ("east", "west"))),
        agents=random.random() < 0.5,
        budget=random.choice((None, None, 2, 6)),
    )
    people = [Happening(0.0, "file", n, n, 60 * random.choice(MINUTES)) for n in range(3)]
    people += [_person(random, hours) for _ in range(round(6 * hours * busy))]
    kinds = [row for row in FAULTS if not only or row[0] in only]
    faults = [_fault(random, hours, kinds) for _ in range(round(4 * hours * faulty))]
    order = sorted(people, key=lambda h: h.at)
    return Story(hours, given, tuple(order), tuple(sorted(faults, key=lambda h: h.at)), seed)


MINUTES = (4, 6, 10, 15, 25, 45)


def _picked(random: Random, table: Sequence[tuple[str, float]]) -> str:
    return random.choices([name for name, _ in table], [weight for _, weight in table])[0]


def _person(random: Random, hours: float) -> Happening:
    at = round(random.uniform(0, hours * 60), 2)
    picks = random.randrange(1000), random.randrange(1000)
    return Happening(at, _picked(random, PEOPLE), *picks, 60 * random.choice(MINUTES))


def _fault(random: Random, hours: float, kinds: Sequence[tuple[str, float]]) -> Happening:
    at, do = round(random.uniform(0, hours * 60), 2), _picked(random, kinds)
    n, m = random.randrange(1000), random.randrange(1, 12)
    seconds = random.choice((1, 5, 20, 60, 180, 600))
    how = ""
    if do == "kill":
        how = random.choice(("before", "after")) + random.choice(("", "", " for good"))
    elif do == "push":
        how, m = random.choice(("refuse", "lose", "delay", "hide")), 1 + m % 3
    elif do.startswith("clock"):
        how = random.choice(("ahead", "back"))
    return Happening(at, do, n, m, seconds, how)


# -- as a case -----------------------------------------------------------------------------------------------


def as_case(story: Story, sentence: str, broken: Sequence[str] = ()) -> str:
    """The YAML of a case in tests/cases/simulation."""
    rows = {
        "story": sentence,
        "hours": story.hours,
        "given": _short(story.given, Given()),
        "people": [_row(h) for h in story.people],
        "faults": [_row(h) for h in story.faults],
    }
    if story.seed is not None:
        rows = {"story": sentence, "seed": story.seed, **rows}
    if broken:
        rows["broke"] = list(broken)
    text: str = yaml.dump(rows, sort_keys=False, default_flow_style=None, width=110)
    return text


def _short(given: Given, default: Given) -> dict[str, Any]:
    rows = asdict(given)
    rows["pulled"], rows["nodes"] = list(given.pulled), dict(given.nodes)
    usual = asdict(default)
    usual["pulled"] = list(default.pulled)
    return {name: value for name, value in rows.items() if value != usual[name]}


def _row(happening: Happening) -> dict[str, Any]:
    usual = {f.name: f.default for f in fields(Happening)}
    return {name: value for name, value in asdict(happening).items() if value != usual[name]}


def from_case(rows: Mapping[str, Any]) -> Story:
    """The story of a case."""
    given = dict(rows.get("given") or {})
    if "pulled" in given:
        given["pulled"] = tuple(given["pulled"])
    people = tuple(Happening(**row) for row in rows.get("people") or ())
    faults = tuple(Happening(**row) for row in rows.get("faults") or ())
    return Story(float(rows["hours"]), Given(**given), people, faults, rows.get("seed"))
