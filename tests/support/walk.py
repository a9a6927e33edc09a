"""Pages that are run as they are written: their commands in one shell, and what each prints beside what the page says.

In a block without a language a line that begins with `$ ` is a command, a line that begins with `> ` continues it, and
others are what it prints. Times, ids and ports may differ, and `…` stands for anything. With `EGS_TEST_WRITE_DOCS=1`
the page is written again with what was printed, so that nobody copies outputs by hand.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.ready_python import ready_python

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```\n(.*?)^```", re.DOTALL | re.MULTILINE)
MARK = "----"
VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z|\+0000)"), "TIME"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "COMMIT"),
    (re.compile(r"\b(\d+d )?(\d+h )?\d+m\b|\b\d+s\b"), "WAIT"),
    (re.compile(r"127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r" +"), " "),
)
TOOLS = {
    "egs": "from egs.cli import main; main()",
    "egs-reconciler": "from reconciler.main import main; main()",
}
WRITES = "EGS_TEST_WRITE_DOCS"


@dataclass(slots=True)
class Step:
    """A command of a page, and the lines that it says are printed."""

    command: str
    lines: list[str] = field(default_factory=list)


def steps(page: Path) -> list[Step]:
    """The commands of a page in their order."""
    return [step for block in _blocks(page.read_text("utf-8")) for step in _steps(block)]


def walked(page: Path, folder: Path, env: Mapping[str, str], changed: Mapping[str, str]) -> None:
    """Run a page in a new home in `folder`; raises at the first command that prints something else.

    `changed` replaces words of commands: addresses that only this run has.
    """
    wanted = steps(page)
    script = "\n".join(f"{{ {_changed(step.command, changed)}\n}} 2>&1; echo {MARK}" for step in wanted)
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env={**_home(folder), **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    printed = ran.stdout.split(f"{MARK}\n")
    assert len(printed) == len(wanted) + 1, ran.stderr
    if os.environ.get(WRITES):
        _write(page, printed)
        return
    for step, text in zip(wanted, printed, strict=False):
        if not _is_said(step.lines, text):
            assert (step.command, _same(text)) == (step.command, _same("\n".join(step.lines)))


def _home(folder: Path) -> dict[str, str]:
    """A home with git's name and address, and our programs on the path."""
    tools = folder / "tools"
    tools.mkdir(parents=True)
    for name, code in TOOLS.items():
        program = tools / name
        program.write_text(f"#!/bin/sh\nexec {ready_python('reconciler.main')} -c '{code}' \"$@\"\n")
        program.chmod(0o755)
    (folder / ".gitconfig").write_text("[user]\nname = Dana\nemail = dana@example.com\n")
    own = {"HOME": str(folder), "TMPDIR": str(folder), "TZ": "UTC", "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    return {"PATH": f"{tools}:{os.environ['PATH']}", **own}


def _changed(command: str, changed: Mapping[str, str]) -> str:
    for word, other in changed.items():
        command = command.replace(word, other)
    return command


def _blocks(text: str) -> list[str]:
    return [block for block in BLOCK.findall(text) if block.startswith("$ ")]


def _steps(block: str) -> list[Step]:
    found: list[Step] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ ")))
        elif line.startswith("> ") and not found[-1].lines:
            found[-1].command += "\n" + line.removeprefix("> ")
        else:
            found[-1].lines.append(line)
    return found


def _same(text: str) -> str:
    """Without what differs from run to run."""
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _is_said(lines: list[str], text: str) -> bool:
    said = "\n".join(lines)
    parts = [re.escape(_same(part)) for part in said.split("…")]
    return re.fullmatch(r"\s*.*?\s*".join(parts), _same(text), re.DOTALL) is not None


def _write(page: Path, printed: list[str]) -> None:
    """The page with what was printed; outputs that are shortened stay as they are."""
    outputs = iter(printed)

    def block(found: re.Match[str]) -> str:
        if not found[1].startswith("$ "):
            return found[0]
        made = []
        for step in _steps(found[1]):
            text = next(outputs).rstrip("\n").splitlines()
            is_shortened = any("…" in line for line in step.lines)
            command = step.command.replace("\n", "\n> ")
            made += [f"$ {command}", *(step.lines if is_shortened else (line.rstrip() for line in text))]
        return "```\n" + "\n".join(made) + "\n```"

    page.write_text(BLOCK.sub(block, page.read_text("utf-8")), "utf-8")
