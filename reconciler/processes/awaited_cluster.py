"""An applier started before its cluster's document is merged: reports this once, and checks at each poll.

A person may merge at any time. A growing pause, as after other failures, would delay a newly merged cluster
by minutes.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from reconciler.cycle import Cycle
from reconciler.processes.wake import Cycling
from schemas.errors import UserError

log = logging.getLogger(__name__)

AWAITED = frozenset({"NoProject", "NotPulled", "UnknownCluster"})
"""Reasons that a merge resolves."""


class Awaiting:
    """Wraps another cycle; before the merge, nothing is done."""

    def __init__(self, applier: Cycling, cluster: str, poll: timedelta) -> None:
        self._applier, self._cluster, self._poll = applier, cluster, poll
        self._said = ""

    def cycle(self, now: datetime) -> Cycle:
        """Raises what no merge resolves."""
        try:
            cycle = self._applier.cycle(now)
        except UserError as error:
            if error.reason not in AWAITED:
                raise
            return self._waits(error, now)
        if self._said:
            log.info("cluster is on main now cluster=%s; starting", self._cluster)
            self._said = ""
        return cycle

    def _waits(self, error: UserError, now: datetime) -> Cycle:
        if self._said != str(error):
            log.warning(
                "waits for a merge cluster=%s reason=%s message=%s; starting at the first poll after it",
                self._cluster,
                error.reason,
                error,
            )
            self._said = str(error)
        return Cycle(now, False, now + self._poll, waits=error.reason)
