"""Who comes first: the total order in which waiting requests are served."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.snapshot import Request


def rank_key(request: Request) -> tuple[int, int, str]:
    """Higher priority first, then first filed; the key breaks ties so that the order is total."""
    return (-request.priority, request.filed_at, request.key)


def in_rank_order(requests: Iterable[Request]) -> list[Request]:
    """First served first."""
    return sorted(requests, key=rank_key)
