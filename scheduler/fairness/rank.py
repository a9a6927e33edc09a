"""The rank: the total order in which waiting requests are served.

Effective priority first (the request's, raised by ageing within its band), then an admin's move, then the share that
its slice had used when it took its place, then the order among equals (shorter service, if the project wants it),
then the time of filing. The key breaks ties, so the order is total.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler.snapshot import Request

Rank = tuple[int, int, int, int, int, str]
"""Lower is served first."""

HOUR = 3600
BAND = 100
"""Width of a priority band: low 1-100, medium 101-200, high 201-300."""


@dataclass(frozen=True, slots=True)
class RankInputs:
    """The fields of a request that determine its rank; `snapshot.Request` explains each."""

    key: str
    priority: int
    boost: int = 0
    move: int = 0
    share: int = 0
    service: int = 0
    filed_at: int = 0


def service_of(gpus: int, duration: int) -> int:
    """GPU-seconds in whole GPU-hours: smaller differences are ignored."""
    return round(gpus * duration / HOUR)


def rank_key(request: Request | RankInputs) -> Rank:
    return (
        -(request.priority + request.boost),
        -request.move,
        request.share,
        request.service,
        request.filed_at,
        request.key,
    )


def in_rank_order(requests: Iterable[Request]) -> list[Request]:
    return sorted(requests, key=rank_key)


def rank_order(numbers: NDArray[np.int64], keys: Sequence[str]) -> NDArray[np.int64]:
    """The same order for many requests at once, as positions: `numbers` has a row each, with `RankInputs`'s fields."""
    priority, boost, move, share, service, filed_at = numbers.T
    columns = [-(priority + boost), -move, share, service, filed_at]
    telling = [column for column in columns if column.size and (column != column[0]).any()]
    order = np.lexsort(telling[::-1]) if telling else np.arange(len(keys))
    same = np.ones(max(0, len(keys) - 1), dtype=np.bool_)
    for column in telling:
        same &= column[order[1:]] == column[order[:-1]]
    tied = order[np.append(same, False) | np.append(False, same)] if same.any() else order[:0]
    if tied.size:
        place = np.zeros(len(keys), dtype=np.int64)
        place[sorted(tied.tolist(), key=keys.__getitem__)] = np.arange(tied.size)
        order = np.lexsort([place, *telling[::-1]])
    return order


def band(priority: int) -> int:
    """0 low, 1 medium, 2 high; a priority outside 1..300 (bare engine only) has a band of its own."""
    return (priority - 1) // BAND


def room_in_band(priority: int) -> int:
    """How much this priority can be raised within its band."""
    return (band(priority) + 1) * BAND - priority


def overtaking(before: Mapping[str, Rank], after: Mapping[str, Rank]) -> frozenset[str]:
    """Requests in both orders that overtook another one between `before` and `after`. O(n log n)."""
    common = sorted(before.keys() & after.keys(), key=before.__getitem__)
    places = {key: place for place, key in enumerate(common)}
    found, foremost = set[str](), len(places)
    # From the last on: a request behind another that is behind it now has been overtaken.
    for key in sorted(common, key=after.__getitem__, reverse=True):
        if places[key] > foremost:
            found.add(key)
        foremost = min(foremost, places[key])
    return frozenset(found)


def mover(key: str, moved: Collection[str], before: Mapping[str, Rank], after: Mapping[str, Rank]) -> str:
    """The moved request that put `key` ahead of others: itself, or the first of `moved` that it has overtaken."""
    if key in moved:
        return key
    there = sorted(other for other in moved if other in before and other in after)
    passed = (o for o in there if before[o] < before[key] and after[key] < after[o])
    return next(passed, min(moved, default=""))
