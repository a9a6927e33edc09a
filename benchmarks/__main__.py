"""`make bench`: every benchmark, one after the other, with a description of the machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

PARTS = (
    "validation",
    "planner",
    "quality",
    "store",
    "growth",
    "check_pr",
    "cycle",
    "flood",
    "portal",
    "why",
    "what_if",
    "request_pages",
    "agent.judging",
    "agent.footprint",
    "telemetry",
    "pages.viewers",
    "pages.calendar",
    *(("kubernetes",) if os.environ.get("EGS_TEST_KUBE") else ()),
)
"""The last one needs a control plane, and is skipped without one. Those that replay a trace need its path."""


def main() -> None:
    """Run each part in a process of its own, so that none affects the next."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {git}", flush=True
    )
    for part in PARTS:
        print(f"\n== {part}: python -m benchmarks.{part}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{part}"], check=True)


if __name__ == "__main__":
    main()
