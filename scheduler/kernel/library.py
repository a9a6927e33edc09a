"""Where the compiled part of planning is: one library, built of `native/` and named after its sources.

A wheel has it beside this module. Otherwise it is in the user's cache, once it was built there
(`reconciler.machine_code`). A library of other sources or for another machine has another name, so it is never loaded.
Imports nothing of ours: the wheel's build loads this file alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
from functools import cache
from pathlib import Path

VARIABLE = "EGS_KERNEL_CACHE"
"""Names another folder than the user's cache."""
SOURCES = Path(__file__).parent / "native"
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O3", "-shared", "-fPIC", "-fvisibility=hidden")
"""Code for any processor of its kind: with the newest instructions it is no faster."""

_opened: list[ctypes.CDLL] = []


def load() -> ctypes.CDLL | None:
    """The library; None where it was not built. Its functions let other threads run."""
    if not _opened:
        for folder in (SOURCES, cache_folder()):
            path = None if folder is None else folder / name()
            if path is not None and path.is_file():
                try:
                    _opened.append(ctypes.CDLL(str(path)))
                    break
                except OSError:
                    continue  # damaged, or of another system: as if it were not there
    return _opened[0] if _opened else None


def command(compiler: str, target: Path) -> list[str]:
    """Builds the library as `target`."""
    return [compiler, *FLAGS, "-o", str(target), str(SOURCES / "engine.c")]


def cache_folder() -> Path | None:
    """Where the library is built if the installation has none; None if no home directory is known."""
    base = os.environ.get(VARIABLE) or os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:
        return None
    return home / "egs" / "kernel"


@cache
def name() -> str:
    """The file's name: a digest of all that the machine code depends on."""
    parts = [path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]"))]
    parts += [text.encode() for text in (*FLAGS, sys.platform, platform.machine())]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return f"engine-{digest[:16]}.so"
