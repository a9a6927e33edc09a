"""When a mirror is doubted, looked at, and made anew.

Whatever fails for the mirror's own sake is tried once more: after what a call that was ended left is removed, and
after a mirror that is damaged was made anew. It is looked at once in so many fetches, and made anew less and less often
where that does not last: a disk that loses what it was given must not have the repository downloaded all day.

Held by tests/reconciler/store/git/test_mirror_repair.py.
"""

from __future__ import annotations

import logging

from reconciler.store.git.fetch import Fetcher
from reconciler.store.git.mirror import Limits, Mirror

log = logging.getLogger(__name__)

DOUBTED = frozenset({"CorruptObjects", "GitFailed", "RemoteUnreachable"})
"""Reasons of faults that a damaged mirror may be behind; a remote that is away is told from it by a look."""
_LONGEST = 64
"""Times as long as at first, between two new mirrors."""


class Mender:
    """Of one mirror. For whoever has the store's lock."""

    def __init__(self, mirror: Mirror, fetcher: Fetcher, limits: Limits) -> None:
        self._mirror, self._fetcher, self._limits = mirror, fetcher, limits
        self._next_look = self._next_new = 0  # in fetches
        self._rest = 1  # times `doubts`, after the next new mirror
        self.count = 0
        """Mirrors made anew."""

    def mend(self, why: str) -> bool:
        """Put right what is wrong with the mirror, after a call failed; True: it may go through now."""
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
            self._next_look = now + 1  # the remote may be back by then, or the disk have room
            return False
        self._rest = 1 if now > self._next_new + self._limits.doubts * _LONGEST else self._rest * 2
        self._next_new = now + self._limits.doubts * min(self._rest, _LONGEST)
        self._fetcher.renew()
        self.count += 1
        return True
