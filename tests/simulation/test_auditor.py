"""The auditor knows only the documents, and notices what is planted (G6)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.simulation.minimise import minimal
from tests.simulation.story import Given, Story, drawn

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


def test_a_failing_story_loses_all_that_it_does_not_need() -> None:
    story = drawn(3, 2.0)
    guilty = {story.faults[2], story.people[4]}

    def fails(smaller: Story) -> bool:
        return guilty <= {*smaller.faults, *smaller.people}

    found = minimal(story, fails)
    assert {*found.faults, *found.people} == guilty
    assert found.given == Given(controllers=1, agents=False)
