"""docs/explain/security.md claims nothing that no test holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explain/security.md").read_text("utf-8")
THREATS = PAGE.partition("\n## Threats\n")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in THREATS.splitlines()
    if line.startswith("| ") and not line.startswith(("| threat |", "| --- |"))
]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def names_of_tests_in(path: Path) -> set[str]:
    """Names of the tests of a file."""
    found = (
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)
    )
    return {node.name for node in found if node.name.startswith("test_")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_every_threat_has_a_defence_and_tests_that_exist(row: list[str]) -> None:
    threat, defence, held = row
    assert threat
    assert defence
    named = NAMED.findall(held)
    assert named, f"no test is named for: {threat}"
    for file, name in named:
        assert (ROOT / file).exists(), file
        assert name in names_of_tests_in(ROOT / file), f"{file} has no {name}"


def test_the_page_has_threats_of_every_kind() -> None:
    kinds = re.findall(r"^### (.+)$", THREATS, re.MULTILINE)
    assert kinds == [
        "Changes of main", "Approvals", "Callers of the API", "Machines", "Input", "Execution", "Output",
    ]  # fmt: skip
    assert len(ROWS) >= 40


def test_no_threat_is_listed_twice() -> None:
    assert len({row[0] for row in ROWS}) == len(ROWS)
