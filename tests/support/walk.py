"""Pages that are run as they are written: their commands in one shell, and what each prints beside what the page says.

In a block without a language a line that begins with `$ ` is a command, a line that begins with `> ` continues it, and
others are what it prints. A block of Python is a program that ends well. Times, ids and ports may differ, and `…`
stands for anything. With `EGS_TEST_WRITE_DOCS=1` the page is written again with what was printed, so that no
output is copied by hand.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.ready_python import ready_python

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"^---- (\d+)\n", re.MULTILINE)
VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z|\+0000)"), "TIME"),
    (re.compile(r"\b\d+ [A-Z][a-z]{2} \d\d:\d\d(:\d\d)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{10,12}\b"), "COMMIT"),
    (re.compile(r"\b(\d+d )?(\d+h )?\d+m\b|\b\d+s\b"), "WAIT"),
    (re.compile(r"127\.0\.0\.1[:-]\d+"), "SERVER"),
    (re.compile(r"\b\d+\.\d\d USD"), "COST"),
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
    is_program: bool = False


def steps(page: Path) -> list[Step]:
    """The commands of a page in their order."""
    return [step for found in BLOCK.finditer(page.read_text("utf-8")) for step in _steps(found)]


def walked(
    page: Path,
    home: Path,
    changed: Mapping[str, str],
    at: Path | None = None,
    *,
    is_live: bool = False,
    **more: str,
) -> None:
    """Run a page in the folder `at`, by default a new home; raises at the first command that prints something else.

    `changed` replaces words of commands: addresses that only this run has. `more` is environment. What a live system
    prints depends on how far it is: there it says something wherever the page does.
    """
    env = _home(home) | more
    wanted = steps(page)
    script = "\n".join(f"{{ {_changed(step.command, changed)}\n}} 2>&1; echo ---- $?" for step in wanted)
    out, err = _ran(script, at or home, env)
    *parts, left = MARK.split(out)
    printed, codes = parts[::2], parts[1::2]
    assert (len(printed), left) == (len(wanted), ""), err
    for step, text, code in zip(wanted, printed, codes, strict=True):
        assert not step.is_program or code == "0", text
    if os.environ.get(WRITES):
        written(page, [_changed(text, {other: word for word, other in changed.items()}) for text in printed])
        return
    for step, text in zip(wanted, printed, strict=True):
        if is_live and (text.strip() or not step.lines):
            continue
        if not step.is_program and not is_said(step.lines, text):
            assert (step.command, _same(text)) == (step.command, _same("\n".join(step.lines)))


def _ran(script: str, folder: Path, env: Mapping[str, str]) -> tuple[str, str]:
    """What the script printed; nothing that it started lives on."""
    shell = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        return shell.communicate(timeout=240)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def _home(folder: Path) -> dict[str, str]:
    """A home with git's name and address, and our programs on the path."""
    tools = folder / "tools"
    tools.mkdir(parents=True)
    for name, code in TOOLS.items():
        program = tools / name
        program.write_text(f"#!/bin/sh\nexec {ready_python('reconciler.main')} -c '{code}' \"$@\"\n")
        program.chmod(0o755)
    (tools / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tools / "python").chmod(0o755)
    (folder / ".gitconfig").write_text("[user]\nname = Dana\nemail = dana@example.com\n")
    own = {"HOME": str(folder), "TMPDIR": str(folder), "TZ": "UTC", "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    return {"PATH": f"{tools}:{os.environ['PATH']}", **own}


def _changed(command: str, changed: Mapping[str, str]) -> str:
    for word, other in changed.items():
        command = command.replace(word, other)
    return command


def _steps(block: re.Match[str]) -> list[Step]:
    if block[1] == "python":
        return [Step(f"python - <<'END'\n{block[2]}END", is_program=True)]
    found: list[Step] = []
    if block[1] or not block[2].startswith("$ "):
        return found
    for line in block[2].splitlines():
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


def is_said(lines: list[str], text: str) -> bool:
    """Whether a page says so, but for what differs from run to run."""
    said = "\n".join(lines)
    parts = [re.escape(_same(part)) for part in said.split("…")]
    return re.fullmatch(r"\s*.*?\s*".join(parts), _same(text), re.DOTALL) is not None


def written(page: Path, printed: list[str]) -> None:
    """The page with what was printed; outputs that are shortened stay as they are."""
    outputs = iter(printed)

    def block(found: re.Match[str]) -> str:
        made = []
        for step in _steps(found):
            text = next(outputs).rstrip("\n").splitlines()
            if step.is_program:
                return found[0]
            is_shortened = any("…" in line for line in step.lines)
            command = step.command.replace("\n", "\n> ")
            made += [f"$ {command}", *(step.lines if is_shortened else (line.rstrip() for line in text))]
        return "```\n" + "\n".join(made) + "\n```" if made else found[0]

    page.write_text(BLOCK.sub(block, page.read_text("utf-8")), "utf-8")
