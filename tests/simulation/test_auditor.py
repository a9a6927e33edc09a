"""The auditor knows only the documents, and notices what is planted (G6)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.simulation.campaigns import survived
from tests.simulation.minimise import minimal
from tests.simulation.story import Given, Story, drawn
from tests.support import profile

AUDITOR = Path(__file__).parent / "auditor"
PRODUCT = {"schemas", "scheduler", "reconciler", "agent", "portal", "demo", "egs"}


@pytest.mark.parametrize("module", sorted(AUDITOR.glob("*.py")), ids=lambda path: path.stem)
def test_it_imports_nothing_of_the_product(module: Path) -> None:
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported.isdisjoint(PRODUCT)


AT_ONCE = (
    "actions use a time that is two minutes early",
    "a controller takes the branch without a new term",
    "a lease runs before its start",
    "a lease ends two minutes early",
    "a lease is a minute longer than asked",
    "marks are told again",
    "marks are not written down",
)
"""Planted bugs that the first seed shows; `python -m tests.simulation planted` tries all of them."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in AT_ONCE if profile.drawn(name, 4)])
def test_a_planted_bug_is_noticed(name: str) -> None:
    assert survived(name, 1) == 0


def test_a_failing_story_loses_all_that_it_does_not_need() -> None:
    story = drawn(3, 2.0)
    guilty = {story.faults[2], story.people[4]}

    def fails(smaller: Story) -> bool:
        return guilty <= {*smaller.faults, *smaller.people}

    found = minimal(story, fails)
    assert {*found.faults, *found.people} == guilty
    assert found.given == Given(controllers=1, agents=False)
