"""Whether a process is alive and ready, from the progress of its loops. Pure.

Alive: every loop runs, that is, begins when due and finishes. An unreachable repository is no reason to
restart a process, a hanging loop is. Ready: at least one repository was read completely, whether the process
leads or follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.processes.wake import Progress

PATIENCE = timedelta(minutes=10)
"""How long a cycle may take, or be late. The first one copies the repository; git's own limits are shorter."""


@dataclass(frozen=True, slots=True)
class Health:
    """A probe's answer, with a reason and a sentence per repository."""

    ok: bool
    repositories: Mapping[str, tuple[str, str]]

    def document(self) -> dict[str, object]:
        found = {name: {"reason": r, "message": text} for name, (r, text) in self.repositories.items()}
        return {"ok": self.ok, "repositories": found}


def alive(loops: Mapping[str, Progress], now: datetime) -> Health:
    found = {name: _turning(progress, now) for name, progress in sorted(loops.items())}
    return Health(all(reason in {"Turning", "Resting"} for reason, _ in found.values()), found)


def ready(loops: Mapping[str, Progress]) -> Health:
    found = {name: _state(progress) for name, progress in sorted(loops.items())}
    reasons = {reason for reason, _ in found.values()}
    return Health(not reasons.isdisjoint({"Leading", "Following"}), found)


def _turning(progress: Progress, now: datetime) -> tuple[str, str]:
    if progress.busy_since is not None:
        took = now - progress.busy_since
        text = f"a cycle has been running since {_clock(progress.busy_since)}"
        return ("Turning" if took <= PATIENCE else "CycleHangs"), text
    if progress.due is None:
        return "Ended", "the loop is not running"
    text = f"the next cycle begins at {_clock(progress.due)} or earlier"
    return ("Resting" if now - progress.due <= PATIENCE else "LoopStopped"), text


def _state(progress: Progress) -> tuple[str, str]:
    if progress.leading is None:
        if progress.failing:
            return progress.failing, "no cycle has succeeded yet; see the log"
        return "Starting", "the first cycle has not ended yet"
    was = "it leads" if progress.leading else "another controller leads, or will"
    trouble = f"; the last cycle failed: {progress.failing}" if progress.failing else ""
    return ("Leading" if progress.leading else "Following"), was + trouble


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
