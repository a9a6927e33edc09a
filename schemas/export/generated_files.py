"""Generated files of a folder: which are stale, and writing them again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class GeneratedFiles:
    """The files that a module makes in a folder; `ours` matches them all, also those that it no longer makes."""

    module: str
    folder: Path
    texts: Callable[[], Mapping[str, str]]
    ours: str = ""

    def stale(self) -> list[str]:
        """Names of files that differ from the texts, are missing, or match `ours` but have no text."""
        texts = self.texts()
        there = {path.name for path in self.folder.glob(self.ours)} if self.ours else set()
        return sorted(there - texts.keys() | {n for n in texts if _read(self.folder / n) != texts[n]})

    def write(self) -> None:
        """Make the folder hold exactly the texts among the files that match `ours`."""
        texts = self.texts()
        for name in self.stale():
            path = self.folder / name
            if name in texts:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(texts[name], "utf-8")
            else:
                path.unlink()

    def command(self, arguments: Sequence[str]) -> int:
        """`python -m MODULE [--check]`; exit 0 done or fresh, 1 stale, 2 wrong use."""
        if list(arguments) not in ([], ["--check"]):
            sys.stderr.write(f"usage: python -m {self.module} [--check]\n")
            return 2
        if not arguments:
            self.write()
        names = self.stale()
        for name in names:
            sys.stderr.write(f"{name} is stale; run: make schemas\n")
        return 1 if names else 0


def _read(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None
