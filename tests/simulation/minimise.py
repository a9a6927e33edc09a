"""A failing story with as little as possible in it: faults are left out first, then what people do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.simulation.story import Given, Happening, Story
from tests.simulation.system import System

Breaks = Callable[[Story], bool]


def breaks(story: Story) -> bool:
    """Whether a law is broken."""
    return bool(System(story).run().broken)


def minimal(story: Story, fails: Breaks = breaks) -> Story:
    """The same failure, of any law, from fewer happenings. Runs the story once for each try."""
    while (smaller := _once(story, fails)) != story:
        story = smaller
    return story


def _once(story: Story, fails: Breaks) -> Story:
    faults = _fewer(story.faults, lambda left: fails(replace(story, faults=left)))
    few = replace(story, faults=faults)
    people = _fewer(story.people, lambda left: fails(replace(few, people=left)))
    return _plainer(replace(few, people=people), fails)


def _fewer(
    happenings: tuple[Happening, ...], fails: Callable[[tuple[Happening, ...]], bool]
) -> tuple[Happening, ...]:
    """Leaves out halves, quarters, … and at last single ones."""
    size = len(happenings)
    while size:
        at = 0
        while at < len(happenings):
            without = happenings[:at] + happenings[at + size :]
            if fails(without):
                happenings = without
            else:
                at += size
        size //= 2
    return happenings


def _plainer(story: Story, fails: Breaks) -> Story:
    """The usual fleet, where that fails too, and no longer than it needs."""
    usual = Given()
    plainer: Sequence[tuple[str, object]] = (
        ("agents", False), ("elected", False), ("budget", None), ("pulled", ()), ("controllers", 2),
        ("controllers", 1), ("poll", usual.poll),
    )  # fmt: skip
    for name, value in plainer:
        given = replace(story.given, **{name: value})
        if given != story.given and fails(replace(story, given=given)):
            story = replace(story, given=given)
    last = max((h.at for h in story.happenings), default=0.0)
    shorter = replace(story, hours=round(last / 60 + 0.5, 1))
    return shorter if shorter.hours < story.hours and fails(shorter) else story
