"""Generated files of a folder: which are stale, and refreshing them.

Each maker (`schemas.export.generate`, `schemas.export.crds`, `reconciler.deploying.generate`) gives its texts and
uses these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def differing(folder: Path, texts: Mapping[str, str], ours: str = "") -> list[str]:
    """Names of files that differ from `texts` or are missing, and of files that match `ours` but are not in it."""
    there = {path.name for path in folder.glob(ours)} if ours else set()
    return sorted(there - texts.keys() | {name for name in texts if _read(folder / name) != texts[name]})


def refresh(folder: Path, texts: Mapping[str, str], ours: str = "") -> None:
    """Make the folder hold exactly `texts` among the files that match `ours`."""
    for name in differing(folder, texts, ours):
        path = folder / name
        if name in texts:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[name], "utf-8")
        else:
            path.unlink()


def command(
    arguments: Sequence[str], module: str, write: Callable[[], None], stale: Callable[[], list[str]]
) -> int:
    """`python -m MODULE [--check]`; exit 0 done or fresh, 1 stale, 2 wrong use."""
    if list(arguments) not in ([], ["--check"]):
        sys.stderr.write(f"usage: python -m {module} [--check]\n")
        return 2
    if not arguments:
        write()
    names = stale()
    for name in names:
        sys.stderr.write(f"{name} is stale; run: make schemas\n")
    return 1 if names else 0


def _read(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None
