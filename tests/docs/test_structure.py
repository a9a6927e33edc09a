"""How the code lies: no module imports itself by way of others, no room is too large, no two modules share a name.

What may import what is in the contracts of import-linter, in pyproject.toml.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "scheduler", "reconciler", "agent", "demo", "egs", "portal")
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
MOST_MODULES = 20
SHARED_NAMES = {"__init__", "__main__", "main", "settings", "compose"}
TWINS = {"egs"}
"""Packages in which a name may come twice: what `egs` does on a thread, `egs.aio` does in an event loop."""


def imported(module: str, tree: ast.Module) -> Iterator[str]:
    """The modules of ours that a module names, in functions and below TYPE_CHECKING too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module in FILES:
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in FILES else node.module for name in inner)


def cycle_in(imports: Mapping[str, set[str]]) -> list[str]:
    """The modules of one cycle in the order in which they import each other; empty: there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    trees = {module: ast.parse(path.read_text("utf-8")) for module, path in FILES.items()}
    imports = {module: set(imported(module, tree)) - {module} for module, tree in trees.items()}
    assert " → ".join(cycle_in(imports)) == ""


def test_a_cycle_is_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert not cycle_in({"a": {"b", "c"}, "b": {"c"}})


def test_no_folder_has_more_modules_than_one_can_look_through() -> None:
    sizes = Counter(
        path.parent.relative_to(ROOT).as_posix() for path in FILES.values() if path.stem != "__init__"
    )
    assert {folder: count for folder, count in sizes.items() if count > MOST_MODULES} == {}


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in TWINS])
def test_no_two_modules_of_a_package_share_a_name(package: str) -> None:
    names = Counter(path.stem for name, path in FILES.items() if name.partition(".")[0] == package)
    assert {name for name, count in names.items() if count > 1} <= SHARED_NAMES
