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
        for folder in filter(None, (SOURCES, cache_folder())):
            try:
                if folder is SOURCES or is_ours(folder):
                    _opened.append(ctypes.CDLL(str(folder / name())))
                    break
            except OSError:
                continue  # not there, damaged, of another system, or not ours to read
    return _opened[0] if _opened else None


def is_ours(folder: Path) -> bool:
    """Whether no other user can put machine code there. OSError: it is not there."""
    us = os.geteuid() if hasattr(os, "geteuid") else None
    found = [path.stat() for path in (folder, folder / name())]
    return us is None or all(one.st_uid in (0, us) and not one.st_mode & 0o022 for one in found)


def command(compiler: str, target: Path) -> list[str]:
    """Builds the library as `target`."""
    return [compiler, *FLAGS, "-o", str(target), str(SOURCES / "engine.c")]


def cache_folder() -> Path | None:
    """Where the library is built if the installation has none; None if no home directory is known.

    A relative path is ignored: it would name a folder of the repository that one stands in.
    """
    base = os.environ.get(VARIABLE) or os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return home / "egs" / "kernel"


@cache
def name() -> str:
    """The file's name: a digest of all that the machine code depends on."""
    parts = [path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]"))]
    parts += [text.encode() for text in (*FLAGS, sys.platform, platform.machine(), platform.libc_ver()[0])]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return f"engine-{digest[:16]}.so"
