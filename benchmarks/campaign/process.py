"""`egs-reconciler` with a clock set by the campaign, while its clusters keep the true time.

`python -m benchmarks.campaign.process OFFSET -- run --repo …`: the file OFFSET holds the error of the machine's clock
in seconds for this process. It is read at every access, so that the clock can jump while the process runs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from reconciler import main
from reconciler.clock import steady_s
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.model.clock_reading import Heard
from reconciler.model.cluster_port import ClusterView

TRUE = datetime.now  # noqa: TID251 - a campaign is about clocks
"""The true time."""


def offset(file: Path) -> timedelta:
    """The current error of the clock."""
    try:
        return timedelta(seconds=float(file.read_text() or 0))
    except (OSError, ValueError):
        return timedelta()


def wrong_clock(file: Path) -> type[datetime]:
    """The class `datetime` of a machine with a wrong clock."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return TRUE(tz) + offset(file)

    return Wrong


def install(file: Path) -> None:
    """Make the modules that read the clock, ours and the scheduler's, read the wrong one; clusters keep the true one.

    Clusters report the true time, as API servers do with each answer.
    """
    wrong = wrong_clock(file)
    for name, module in list(sys.modules.items()):
        reads = name == "reconciler.clock" or name.startswith("apscheduler")
        if reads and getattr(module, "datetime", None) is datetime:
            vars(module)["datetime"] = wrong
    real = EmbeddedCluster._call

    def call(self: EmbeddedCluster, _: datetime, *rest: Any) -> Any:
        return real(self, TRUE(UTC), *rest)

    look = EmbeddedCluster.observe

    def observe(self: EmbeddedCluster, now: datetime) -> ClusterView:
        """As an API server answers: with the date."""
        return replace(look(self, now), clock=Heard(TRUE(UTC), steady_s()))

    EmbeddedCluster._call = call  # type: ignore[method-assign, assignment]
    EmbeddedCluster.observe = observe  # type: ignore[method-assign]


if __name__ == "__main__":
    install(Path(sys.argv[1]))
    sys.argv = ["egs-reconciler", *sys.argv[3:]]
    main.main()
