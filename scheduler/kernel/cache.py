"""Where the compiled engine is kept on this machine, and whether it is there. Imports no numba.

The folder's name follows from what machine code depends on: our sources, numba, Python and the processor; and from
where our sources lie and since when, for numba takes back only what it compiled of the very same files. So what is
found there always fits, and an upgrade or a second installation compiles into a folder of its own.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

VARIABLE = "EGS_KERNEL_CACHE"
"""Names another folder than the user's cache; an image that is built with the engine in it sets it."""
SOURCES = ("compilation", "displaced", "holders", "pools", "search", "shown", "slices", "steps", "timeline")
"""The modules that are compiled."""
COMPLETE = "complete"
"""The file that says that all entries are compiled."""


@cache
def folder() -> Path | None:
    """The folder for this very engine; None where no home says where caches belong."""
    base = os.environ.get(VARIABLE) or os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:
        return None
    return home / "egs" / "kernel" / _digest()


def is_kept() -> bool:
    """Whether loading is all that is left to do."""
    kept = folder()
    return kept is not None and (kept / COMPLETE).exists()


def keep() -> None:
    """Says that everything is compiled. Where nothing can be written, nothing is said."""
    kept = folder()
    try:
        if kept is not None and kept.is_dir():
            (kept / COMPLETE).touch()
    except OSError:
        pass


def is_installed() -> bool:
    """Whether there is a compiler at all."""
    return bool(_version("numba"))


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _digest() -> str:
    sources = [Path(__file__).parent / f"{name}.py" for name in SOURCES]
    parts = [source.read_bytes() for source in sources]
    parts += [f"{source} {source.stat().st_mtime_ns}".encode() for source in sources]
    parts += [text.encode() for text in (_version("numba"), _version("numpy"), sys.version, _processor())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _processor() -> str:
    """What code is compiled for: the model and what it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
