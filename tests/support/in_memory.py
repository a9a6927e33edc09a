"""A folder in memory, where this machine has one with room: Git, SQLite and etcd wait for the disk at every step."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PLACE = Path("/dev/shm")
ROOM = 3 * 2**30
"""Bytes. All that tests leave is a few hundred megabytes, and etcd takes 64 MiB at once."""


def memory_folder() -> Path | None:
    """None: there is none, it is too small (a container's has 64 MiB), or programs in it cannot be run."""
    if not PLACE.is_dir() or not os.access(PLACE, os.W_OK | os.X_OK):
        return None
    is_plain = not os.statvfs(PLACE).f_flag & os.ST_NOEXEC
    return PLACE if is_plain and shutil.disk_usage(PLACE).free >= ROOM else None
