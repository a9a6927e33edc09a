"""When a mirror is checked and replaced.

A call that fails because of the mirror is retried once: after removing the remains of a killed call, and
after replacing a damaged mirror. Checks are limited to one in so many fetches, and replacements become rarer
if they do not last: a failing disk must not cause endless downloads.
"""

from __future__ import annotations

import logging

from reconciler.store.git.fetch import Fetcher
from reconciler.store.git.mirror import Limits, Mirror

log = logging.getLogger(__name__)

DOUBTED = frozenset({"CorruptObjects", "GitFailed", "RemoteUnreachable"})
"""Reasons of faults that a damaged mirror may cause; a check distinguishes it from an unreachable remote."""
_LONGEST = 64
"""Largest factor between two replacements, relative to the first pause."""


class Mender:
    """For one mirror. Call it while holding the store's lock."""

    def __init__(self, mirror: Mirror, fetcher: Fetcher, limits: Limits) -> None:
        self._mirror, self._fetcher, self._limits = mirror, fetcher, limits
        self._next_look = self._next_new = 0  # in fetches
        self._rest = 1  # times `doubts`, after the next replacement
        self.count = 0
        """Number of replacements."""

    def mend(self, why: str) -> bool:
        """Repairs the mirror after a failed call; True: a retry may succeed."""
        if self._mirror.sweep():
            return True
        now = self._fetcher.fetches
        if now < self._next_look:
            return False
        self._next_look = now + self._limits.doubts
        found = self._mirror.damage()
        if not found or now < self._next_new:
            log.debug("mirror doubted found=%s error=%s", found or "sound", why)
            return False
        return self._remade(found, now)

    def _remade(self, found: str, now: int) -> bool:
        if not self._mirror.remake(self._fetcher.bring_all, found):
            self._next_look = now + 1  # the remote may be back by then, or the disk have space
            return False
        self._rest = 1 if now > self._next_new + self._limits.doubts * _LONGEST else self._rest * 2
        self._next_new = now + self._limits.doubts * min(self._rest, _LONGEST)
        self._fetcher.renew()
        self.count += 1
        return True
