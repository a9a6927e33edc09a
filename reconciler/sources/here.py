"""Which folder a command means, and where what it keeps lies. Imports nothing of ours, so that it costs nothing."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder of mirrors and caches; it may be deleted at any time."""
    given = os.environ.get("EGS_CACHE")
    if given:
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "egs"


def root_of(start: Path) -> Path:
    """The repository around the current folder; that folder itself if there is none."""
    for folder in (start, *start.parents):
        if (folder / "project.yaml").is_file() or (folder / ".git").exists() or is_bare(folder):
            return folder
    return start


def is_bare(folder: Path) -> bool:
    """True if the folder is a repository's store without a work tree."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
