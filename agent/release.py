"""When the agent lets go of the driver: a GPU is reset only while no client of NVML lives.

The controller has no way to call an agent and the agent none to call its cluster. What reaches it is a file: the pod's
annotation `egs.dev/release-nvml`, which the kubelet writes into a volume of the downward API; on other machines a
person writes it. It names the time until which the driver is released, so that a controller that disappears leaves no
node unwatched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from schemas.reading.units import parse_instant

log = logging.getLogger(__name__)

MOST_BYTES = 100
"""A time has 20 characters."""

Release = Callable[[datetime], bool]
"""Whether the driver is to be released now; never fails."""


def never(_: datetime) -> bool:
    """Without a file nothing asks the agent to let go."""
    return False


def from_file(path: Path) -> Release:
    """Asked for while the file holds a later time. A missing or empty file, or one that is not a time, asks nothing."""

    def wanted(now: datetime) -> bool:
        text = _content(path)
        if not text:
            return False
        try:
            return now < parse_instant(text)
        except ValueError:
            log.warning(
                "release not understood path=%s; it must hold a time such as 2026-11-21T08:00:00Z", path
            )
            return False

    return wanted


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        log.warning("release not read path=%s error=%s", path, error.strerror)
        return ""
