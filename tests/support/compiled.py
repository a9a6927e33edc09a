"""Clones of the same sources share what was compiled of them on this machine: it takes a minute, and is the same.

An installation's own cache bears path and time of its files in its name, so that a fresh clone would compile anew. Here
the folders in it are links to ones that are named after the contents of all sources of the scheduler.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from pathlib import Path

from scheduler.kernel import cache

ROOMS = ("kernel", "replay")
"""Folders with modules that numba compiles."""


def share_compiled() -> None:
    """Before these modules are imported; an installation that has compiled on its own goes on so."""
    own = cache.folder()
    if own is None:
        return
    sources = Path(cache.__file__).parents[1]
    shared = own.parents[1] / "kernel-of-tests" / _digest(sources)
    for room in ROOMS:
        # As numba calls it. Where it calls it otherwise, nothing is shared.
        link = own / f"{room}_{hashlib.sha1(str(sources / room).encode(), usedforsecurity=False).hexdigest()}"
        with contextlib.suppress(OSError):  # another process was here, or nothing can be written
            (shared / room).mkdir(parents=True, exist_ok=True)
            own.mkdir(parents=True, exist_ok=True)
            link.symlink_to(shared / room)


def _digest(sources: Path) -> str:
    """Of all that machine code depends on."""
    parts = [path.read_bytes() for path in sorted(sources.rglob("*.py"))]
    parts += [
        text.encode() for text in (*map(cache._version, ("numba", "numpy")), sys.version, cache._processor())
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
