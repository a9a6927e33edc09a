"""What a caller is told beside a result: Python warnings, at the line of the program that called."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def warn(told: Warning) -> None:
    """Warn, as seen from the nearest frame outside of this package: where somebody can do something about it."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "egs":
        frame, level = frame.f_back, level + 1
    warnings.warn(told, stacklevel=level)
