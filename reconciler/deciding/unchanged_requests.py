"""Skips requests whose inputs did not change: processing them would give their present record. A memory.

Processing a request reads its file, record and approvals, its slice, the project and the pools, the slice's
usage and other requests, and the month. A waiting request is processed if any of these changed, a finished
one if its file or record changed; a request that holds nodes, has an expiring approval, or changed last time
is always processed.

Held by tests/reconciler/deciding/test_unchanged_requests.py: with and without this memory a fold gives the
same result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime

from reconciler.model.facts import Facts, Filed, Turn, Wanted
from reconciler.model.request_files import UnreadFile, raw
from reconciler.model.statuses import Records, UnreadRecord, changed, differing, live
from schemas.status.gpr_status import HOLDING, TERMINAL, GPRStatus

OF_ONE = frozenset(
    {
        "commit", "filed", "approvals", "words", "doubts", "slices", "trust", "workspaces", "worked_out",
        "templates", "bindings", "keys", "profiles",
    }
)  # fmt: skip
"""Fields of `Wanted` about one request or slice, or not read when a recorded request is processed."""


class Settled:
    """What this process remembers of its last fold. One owner."""

    def __init__(self) -> None:
        self._restless: set[str] = set()  # requests that changed the last time
        self._quiet: set[str] = set()  # finished requests that did not change for the first time
        self._last: tuple[Facts, Wanted, datetime] | None = None  # the inputs of the last fold

    def due(self, facts: Facts, wanted: Wanted, now: datetime) -> Collection[str]:
        """The requests to process. Costs the live requests, and what changed since the last time."""
        before, self._last = self._last, (facts, wanted, now)
        if before is None:
            return unsettled(facts.requests, wanted.filed)
        old, was, at = before
        found = self._restless | changed(old.requests, facts.requests) | _differing_files(was, wanted)
        there = live(facts.requests)
        if at.month != now.month or differs_for_all(was, wanted):
            found |= there.keys()
        else:
            slices = {key.partition("/")[0] for key in found} | _differing_slices(old, facts)
            slices |= differing(was.slices, wanted.slices)
            found |= {key for key in there if key.partition("/")[0] in slices} if slices else set()
            found |= {key for key, status in there.items() if status.phase in HOLDING}
        words = differing(was.words, wanted.words) | differing(was.doubts, wanted.doubts)
        return found | words | wanted.words.keys()

    def had(self, key: str, status: GPRStatus | None, turn: Turn) -> None:
        """Records the result of processing a request."""
        if turn.status is status and not turn.events and turn.cause is None:
            self._restless.discard(key)
            if status is not None and status.phase in TERMINAL:
                self._quiet.add(key)
        else:
            self._restless.add(key)

    def newly_quiet(self) -> Collection[str]:
        """Finished requests that needed no processing since the last call."""
        found, self._quiet = self._quiet, set()
        return found


def unsettled(requests: Mapping[str, GPRStatus], filed: Mapping[str, Filed]) -> set[str]:
    """All but those unread on both sides: an earlier process found nothing to do there."""
    over = requests.over if isinstance(requests, Records) else {}
    found = {key for key, file in raw(filed).items() if not isinstance(file, UnreadFile)}
    found |= {key for key in requests if not isinstance(over.get(key), UnreadRecord)}
    return found | (over.keys() ^ filed.keys())


def _differing_files(was: Wanted, wanted: Wanted) -> set[str]:
    return differing(raw(was.filed), raw(wanted.filed))


def _differing_slices(old: Facts, facts: Facts) -> set[str]:
    """Slices whose usage differs."""
    return differing(old.usage, facts.usage)


def differs_for_all(was: Wanted, wanted: Wanted) -> bool:
    """True if anything differs that the processing of every request reads."""
    names = [field.name for field in fields(Wanted) if field.name not in OF_ONE]
    pairs = [(getattr(was, name), getattr(wanted, name)) for name in names]
    return any(old is not new and old != new for old, new in pairs)


def without_news(turn: Turn, status: GPRStatus | None) -> Turn:
    """The same record object instead of an equal one: then the request counts as unchanged."""
    if turn.status is status or turn.status != status:
        return turn
    return Turn(status, turn.events, turn.cause)
