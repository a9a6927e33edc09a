"""Rate limits: token buckets. Pure except for the buckets; time is an argument.

A bucket holds at most `burst` tokens and fills by `per_s`; each request takes one, or several if it costs more.
Every replica counts for itself.

Held by tests/portal/http/test_rate_limits.py: in any span of t seconds at most burst + per_s * t requests of one
caller pass.
"""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from portal.http.errors import ApiError, too_often


@dataclass(frozen=True, slots=True)
class Rate:
    """`per_s` sustained, and up to `burst` at once."""

    per_s: float
    burst: int

    def times(self, number: int) -> Rate:
        return Rate(number * self.per_s, number * self.burst)


@dataclass(frozen=True, slots=True)
class Rates:
    """The rate limits of one replica."""

    reads: Rate = Rate(50, 200)
    """Per key or person: requests that change nothing, quotes included. Per address: begun logins, and logouts."""
    writes: Rate = Rate(10, 50)
    """Per key or person: requests that make a commit or a token."""
    failures: Rate = Rate(0.2, 20)
    """Per address: invalid keys, sessions and logins."""
    strangers: Rate = Rate(20, 100)
    """Per address: unauthenticated requests; a large body counts as several. Probes are not counted."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Tokens left, and when they were counted."""

    left: float
    at: datetime


def taken(bucket: Bucket | None, rate: Rate, now: datetime, cost: int = 1) -> tuple[Bucket, float]:
    """The bucket after one more request, and the seconds to wait before it may pass; 0: it passed.

    A request that costs more than the bucket holds takes a full bucket.
    """
    cost = min(cost, rate.burst)
    left = float(rate.burst)
    if bucket is not None:
        # A clock that was set back adds no tokens.
        left = min(left, bucket.left + rate.per_s * max(0.0, (now - bucket.at).total_seconds()))
        now = max(now, bucket.at)
    if left >= cost:
        return Bucket(left - cost, now), 0.0
    return Bucket(left, now), (cost - left) / rate.per_s


class Limiter:
    """The buckets of recent callers. Safe to use from any thread."""

    def __init__(self, rate: Rate, remembered: int = 10_000) -> None:
        """`remembered`: most buckets to keep; beyond that the least recently used is dropped."""
        self._rate, self._remembered = rate, remembered
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, who: str, now: datetime, cost: int = 1) -> None:
        """Count one more request; ApiError 429 above the limit."""
        with self._lock:
            self._buckets[who], wait_s = taken(self._buckets.get(who), self._rate, now, cost)
            self._buckets.move_to_end(who)
            if len(self._buckets) > self._remembered:
                self._buckets.popitem(last=False)
        if wait_s > 0:
            raise refusal(wait_s)

    def check(self, who: str, now: datetime, cost: int = 1) -> None:
        """ApiError 429 if one more request would be above the limit; counts nothing."""
        with self._lock:
            _, wait_s = taken(self._buckets.get(who), self._rate, now, cost)
        if wait_s > 0:
            raise refusal(wait_s)


def refusal(wait_s: float) -> ApiError:
    """429, with the whole seconds to wait."""
    return too_often(max(1, math.ceil(wait_s)))


def neighbourhood(address: str) -> str:
    """The unit in which addresses are counted: for IPv6 the /64 network, which belongs to one customer."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
