"""Messages beside a result: Python warnings, located at the calling program's line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def warn(told: Warning) -> None:
    """Warn at the nearest frame outside of this package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "egs":
        frame, level = frame.f_back, level + 1
    warnings.warn(told, stacklevel=level)
