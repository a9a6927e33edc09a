"""The tour in the README runs as it stands and prints what the page says; only times and ids of commits differ."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "README.md").read_text("utf-8").partition("\n## A tour")[2].partition("\n## ")[0]
LINES = "".join(re.findall(r"^```\n(.*?)^```", TOUR, re.DOTALL | re.MULTILINE)).splitlines()
MARK = "----"
VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z|\+0000)"), "TIME"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "COMMIT"),
    (re.compile(r"\b\d+h \d+m\b"), "WAIT"),
)


def steps() -> list[tuple[str, list[str]]]:
    """Each command with the lines that follow it."""
    found: list[tuple[str, list[str]]] = []
    for line in LINES:
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def same(text: str) -> str:
    """Without what differs from run to run."""
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return text.strip()


@pytest.mark.slow
def test_the_tour_prints_what_the_readme_says(tmp_path: Path) -> None:
    wanted = steps()
    script = "\n".join(f"{{ {command}; }} 2>&1; echo {MARK}" for command, _ in wanted)
    (tmp_path / ".gitconfig").write_text("[user]\nname = Dana\nemail = dana@example.com\n")
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "TZ": "UTC",
        "PYTHONPATH": str(ROOT),
    }
    ran = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300
    )
    printed = ran.stdout.split(f"{MARK}\n")
    for (command, lines), text in zip(wanted, printed, strict=False):
        assert (command, same(text)) == (command, same("\n".join(lines)))
