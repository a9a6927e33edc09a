"""Ends that have come by every clock: what is carried out while our own clock is in doubt. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.acting.actions import Action, Do, actions
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.model.holdings import lease_ref
from reconciler.model.statuses import holders


def agreed_ends(
    wanted: Wanted, facts: Facts, seen: Seen, earliest: datetime, tolerance: timedelta
) -> tuple[Action, ...]:
    """Only what releases nodes, or gives notice, at a time that has passed by every clock."""
    over = set()
    for key, status in holders(facts.requests).items():
        lease = lease_ref(key, status)
        if lease is not None and lease.end <= earliest:
            over.add(status.uid)
    return tuple(
        action
        for action in actions(wanted, facts, seen, earliest, tolerance)
        if action.lease is not None
        and (action.do is Do.EVICT or (action.do is Do.REMOVE and action.lease.uid in over))
    )


def next_end(facts: Facts, earliest: datetime) -> timedelta | None:
    """How long until the next end by the clock that is furthest behind."""
    leases = (lease_ref(key, status) for key, status in holders(facts.requests).items())
    left = [lease.end - earliest for lease in leases if lease is not None and lease.end > earliest]
    return min(left, default=None)
