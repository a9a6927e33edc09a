"""The docs say all that the code knows: fields, settings, rules, phases, events, reasons."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.events import Event, EventReason
from schemas.status.gpr_status import Cause
from tests.support.world import START

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "scheduler", "reconciler", "agent", "demo", "egs")
CAMEL = re.compile(r"[A-Z][A-Za-z0-9]+")
CARRIERS = {"UserError": 1, "Fault": 1, "Refused": 0, "Refusal": 1}
"""Calls whose positional argument of that index is a reason."""


def test_the_generated_tables_are_fresh() -> None:
    """Every field of every kind, every setting, every rule and every phase stands in the docs as the code has it."""
    command = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("told", list(EventReason))
def test_every_event_is_documented_with_its_type(told: EventReason) -> None:
    """H10: one line for each event."""
    row = next(
        (
            line
            for line in _page("reference/events.md").splitlines()
            if line.startswith("|") and f"`{told}`" in line
        ),
        "",
    )
    kind = "Warning" if Event(START, told, "").warning else "Normal"
    assert f"| {kind} |" in row, f"docs/reference/events.md does not describe the event {told} as {kind}"


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_is_documented(cause: Cause) -> None:
    """The closed list of design §6."""
    assert f"`{cause}`" in _page("reference/kinds/gpr.md")


def test_every_reason_is_documented() -> None:
    """A reason that a machine may meet has a line in the docs."""
    docs = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    missing = sorted(reason for reason in _reasons() if f"`{reason}`" not in docs)
    assert not missing, f"docs/reference/reasons.md lacks {missing}"


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def _reasons() -> set[str]:
    found: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            found |= set(_in_module(ast.parse(path.read_text(encoding="utf-8"))))
    return found


def _in_module(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _in_call(node)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "reason":
                    yield from _words(value)
        elif isinstance(node, ast.Assign) and [t.id for t in node.targets if isinstance(t, ast.Name)] == [
            "reason"
        ]:
            yield from _words(node.value)


def _in_call(node: ast.Call) -> Iterator[str]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    index = CARRIERS.get(name)
    if index is not None and len(node.args) > index:
        yield from _words(node.args[index])
    for keyword in node.keywords:
        if keyword.arg == "reason":
            yield from _words(keyword.value)


def _words(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and CAMEL.fullmatch(value.value):
        yield value.value


PATHS = re.compile(
    r"`((?:schemas|scheduler|reconciler|agent|portal|demo|tests|docs|examples|benchmarks|deploy)/[\w./-]*)`"
)
LINKS = re.compile(r"\]\((?!http)([^)#]+)\)")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_exists(page: Path) -> None:
    """A page that names a file or links to one is wrong as soon as that file moves."""
    text = page.read_text(encoding="utf-8")
    named = [ROOT / found for found in PATHS.findall(text)]
    linked = [page.parent / found for found in LINKS.findall(text)]
    assert [str(path) for path in (*named, *linked) if not path.exists()] == []


MODULES = re.compile(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py)?)`")
HOMES = ("", "reconciler", "reconciler/clusters/kubernetes", "scheduler", "portal", "schemas", "egs")


@pytest.mark.parametrize("name", ["explain/architecture.md", "explain/internals.md"])
def test_the_modules_that_a_page_names_exist(name: str) -> None:
    """These pages name modules relative to their package."""
    named = {found.removesuffix(".py") for found in MODULES.findall(_page(name))} - {"egs/status"}
    missing = {
        module
        for module in named
        if not any(
            (ROOT / home / module).is_dir() or (ROOT / home / f"{module}.py").exists() for home in HOMES
        )
    }
    assert missing == set()


ANCHORED = re.compile(r"\]\((?!http)([^)#]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """Those that a forge makes of a page's headings, and those that the page sets itself."""
    text = page.read_text(encoding="utf-8")
    words = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", found) for found in HEADING.findall(text))
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in words}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_sections_that_a_page_links_to_exist(page: Path) -> None:
    """A link into a page is wrong as soon as its heading changes."""
    links = ANCHORED.findall(page.read_text(encoding="utf-8"))
    missing = [
        f"{file}#{name}" for file, name in links if name not in _anchors(page.parent / file if file else page)
    ]
    assert missing == []


FENCE = re.compile(r"\s*(```|~~~)")
LONGEST = 120


def test_lines_of_prose_are_short_enough_to_read_and_to_review() -> None:
    """Tables, code and long links are as long as they are."""
    found = [
        f"{page.relative_to(ROOT)}:{number}"
        for page in PAGES
        if page.is_relative_to(ROOT / "docs")
        for number, line in _prose(page.read_text(encoding="utf-8"))
        if len(line) > LONGEST and " " in line.strip()
    ]
    assert found == []


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page that are neither of a table nor code."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        is_fence = FENCE.match(line) is not None
        is_code ^= is_fence
        if not is_code and not is_fence and not line.lstrip("> ").startswith("|"):
            yield number, line
