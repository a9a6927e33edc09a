"""Who comes first: the total order in which waiting requests are served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.snapshot import Request

Rank = tuple[int, int, int, str]
"""Lower is served first."""


def rank(priority: int, move: int, filed_at: int, key: str) -> Rank:
    """Higher priority first, then as an admin moved it, then first filed; the key breaks ties: the order is total."""
    return (-priority, -move, filed_at, key)


def rank_key(request: Request) -> Rank:
    """The place of a request."""
    return rank(request.priority, request.move, request.filed_at, request.key)


def in_rank_order(requests: Iterable[Request]) -> list[Request]:
    """First served first."""
    return sorted(requests, key=rank_key)


def overtaking(before: Mapping[str, Rank], after: Mapping[str, Rank]) -> frozenset[str]:
    """Who is behind somebody in `before` and ahead of them in `after`, both being in both. O(n log n)."""
    common = sorted(before.keys() & after.keys(), key=before.__getitem__)
    places = {key: place for place, key in enumerate(common)}
    found, foremost = set[str](), len(places)
    # From the last on: who stood behind somebody that is behind him now has overtaken them.
    for key in sorted(common, key=after.__getitem__, reverse=True):
        if places[key] > foremost:
            found.add(key)
        foremost = min(foremost, places[key])
    return frozenset(found)
