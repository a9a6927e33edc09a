"""What a run tries: `EGS_TEST_PROFILE` is `quick`, `change` (the default), `main` or `night` (docs/explain/testing.md).

A smaller profile runs the same tests with fewer examples and fewer kill points, and skips nothing. A commit is always
tried with the same examples, so that a red build is a red change; those of `night` are new each time.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, settings

SHARES = {"quick": 0.05, "change": 0.1, "main": 1.0, "night": 10.0}
"""Examples of a property in each profile, as a share of what its test names."""
FEWEST = 4
"""A property with fewer examples than this says nothing; one that names fewer has its own reason."""
VARIABLE = "EGS_TEST_PROFILE"
PROFILE = os.environ.get(VARIABLE, "change")
if PROFILE not in SHARES:
    raise SystemExit(f"{VARIABLE} is {PROFILE!r}: write one of {', '.join(SHARES)}")
NIGHT = PROFILE == "night"


def examples(named: int) -> int:
    """Examples to try here of a property that names `named`."""
    return max(round(named * SHARES[PROFILE]), min(named, FEWEST))


def law(named: int = 100) -> settings:
    """Settings of a property."""
    return settings(max_examples=examples(named))


def load() -> None:
    """Make the profile Hypothesis' own: properties without settings name 100 examples."""
    settings.register_profile(
        "egs",
        max_examples=examples(100),
        deadline=None,  # a loaded machine is no failure
        derandomize=not NIGHT,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("egs")


def drawn(point: str, one_in: int) -> bool:
    """True if this run tries this point: one in `one_in` on a change, four times as many on main, at night all.

    Each commit draws others, so that a history of changes tries every one.
    """
    spread = 1 if NIGHT else max(1, one_in // 4) if PROFILE == "main" else one_in
    digest = hashlib.sha256(f"{_commit()} {point}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % spread == 0


def seed(what: str) -> int:
    """The first of this commit's seeds for that."""
    digest = hashlib.sha256(f"{_commit()} {what}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


@cache
def _commit() -> str:
    """The commit under test; a tree without Git always draws the same points."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
