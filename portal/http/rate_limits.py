"""How often somebody may ask: token buckets. Pure but for the memory of who asked when; time is an argument.

A bucket holds at most `burst` and fills by `per_s`; each request takes one, or several where it costs more.
Every replica counts for itself.

Held by tests/portal/http/test_rate_limits.py: in any span of t seconds nobody is let through more than burst + per_s
* t times.
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
    """How often: `per_s` for ever, and up to `burst` at once."""

    per_s: float
    burst: int

    def times(self, number: int) -> Rate:
        """So many times as often."""
        return Rate(number * self.per_s, number * self.burst)


@dataclass(frozen=True, slots=True)
class Rates:
    """The bounds of one replica."""

    reads: Rate = Rate(50, 200)
    """Of each key or person: what changes nothing, quotes too. Of each address: logins that begin, and logouts."""
    writes: Rate = Rate(10, 50)
    """Of each key or person: what becomes a commit, or a token."""
    failures: Rate = Rate(0.2, 20)
    """Of each address: keys, sessions and logins that are no good."""
    strangers: Rate = Rate(20, 100)
    """Of each address: all that shows nobody, and more of it where its body is large. Probes are not counted."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """What is left, and when that was counted."""

    left: float
    at: datetime


def taken(bucket: Bucket | None, rate: Rate, now: datetime, cost: int = 1) -> tuple[Bucket, float]:
    """The bucket after one more request, and the seconds until it would be let through; 0: it was.

    What costs more than the bucket holds takes a full one.
    """
    cost = min(cost, rate.burst)
    left = float(rate.burst)
    if bucket is not None:
        # A clock that was set back fills nothing.
        left = min(left, bucket.left + rate.per_s * max(0.0, (now - bucket.at).total_seconds()))
        now = max(now, bucket.at)
    if left >= cost:
        return Bucket(left - cost, now), 0.0
    return Bucket(left, now), (cost - left) / rate.per_s


class Limiter:
    """The buckets of everybody who asked lately. Safe to use from any thread."""

    def __init__(self, rate: Rate, remembered: int = 10_000) -> None:
        """`remembered`: how many are kept in mind; of more, whoever was quiet for longest is forgotten."""
        self._rate, self._remembered = rate, remembered
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, who: str, now: datetime, cost: int = 1) -> None:
        """Count one more request; ApiError 429 where it is one too many."""
        with self._lock:
            self._buckets[who], wait_s = taken(self._buckets.get(who), self._rate, now, cost)
            self._buckets.move_to_end(who)
            if len(self._buckets) > self._remembered:
                self._buckets.popitem(last=False)
        if wait_s > 0:
            raise refusal(wait_s)

    def check(self, who: str, now: datetime, cost: int = 1) -> None:
        """ApiError 429 where one more request would be one too many; counts nothing."""
        with self._lock:
            _, wait_s = taken(self._buckets.get(who), self._rate, now, cost)
        if wait_s > 0:
            raise refusal(wait_s)


def refusal(wait_s: float) -> ApiError:
    """429, with the whole seconds until it is worth asking again."""
    return too_often(max(1, math.ceil(wait_s)))


def neighbourhood(address: str) -> str:
    """What is counted as one address: of IPv6 the network of 64 bits, which one customer has to themselves."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
