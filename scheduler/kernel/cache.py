"""The on-disk cache of the compiled engine. Imports no numba.

The folder's name depends on everything that machine code depends on: our sources, numba, Python and the processor;
and on path and time of our sources, because numba only reuses code compiled from the very same files. So the cache
always matches, and an upgrade or a second installation compiles into a folder of its own.
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
"""Names another folder than the user's cache; set by an image that contains the compiled engine."""
SOURCES = ("compilation", "displaced", "holders", "pools", "search", "shown", "slices", "steps", "timeline")
"""The compiled modules."""
COMPLETE = "complete"
"""Marker file: all entries are compiled."""


@cache
def folder() -> Path | None:
    """The folder for this engine; None if no home directory is known."""
    base = os.environ.get(VARIABLE) or os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:
        return None
    return home / "egs" / "kernel" / _digest()


def is_kept() -> bool:
    """Whether the engine only needs to be loaded."""
    kept = folder()
    return kept is not None and (kept / COMPLETE).exists()


def keep() -> None:
    """Mark the cache as complete, if it is writable."""
    kept = folder()
    try:
        if kept is not None and kept.is_dir():
            (kept / COMPLETE).touch()
    except OSError:
        pass


def is_installed() -> bool:
    """Whether numba is installed."""
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
    """The processor's model and features."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
