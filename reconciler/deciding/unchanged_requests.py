"""Requests whose inputs did not change, so that judging them again would give what is on record. A memory.

A request is judged by its file and record, the approvals for it, its slice, the project and the pools, what its
slice used, the records of the slice's other requests, and the month. A waiting request is judged again when any
of these changed, a finished one when its file or record did. A request that holds nodes, whose approval may
expire, or that changed when it was last judged, is judged each time. The result is that of judging all.

Worth it by `benchmarks.cycle`: without it a push costs 40 % more, and a cycle in which nothing changed 90 %.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime

from reconciler.model.facts import Facts, Filed, RequestOutcome, Wanted
from reconciler.model.request_files import UnreadFile, raw
from reconciler.model.statuses import Records, UnreadRecord, changed, differing, live
from schemas.status.gpr_status import HOLDING, TERMINAL, GPRStatus

OF_ONE = frozenset(
    {
        "commit", "filed", "approvals", "decisions", "ignored_decisions", "slices", "trust", "workspaces", "worked_out",
        "templates", "bindings", "keys", "profiles",
    }
)  # fmt: skip
"""Fields of `Wanted` that are about one request or slice, or that do not matter to a request on record."""


class UnchangedRequests:
    """What this process remembers of its last fold. One owner."""

    def __init__(self) -> None:
        self._restless: set[str] = set()  # changed when last judged
        self._quiet: set[str] = set()  # finished, and did not change for the first time
        self._last: tuple[Facts, Wanted, datetime] | None = None  # the inputs of the last fold

    def due(self, facts: Facts, wanted: Wanted, now: datetime) -> Collection[str]:
        """Requests to judge again. O(requests that are not over, and changes since the last call)."""
        before, self._last = self._last, (facts, wanted, now)
        if before is None:
            return unsettled(facts.requests, wanted.filed)
        old, was, at = before
        found = self._restless | changed(old.requests, facts.requests)
        found |= differing(raw(was.filed), raw(wanted.filed))
        there = live(facts.requests)
        if at.month != now.month or differs_for_all(was, wanted):
            found |= there.keys()
        else:
            slices = {key.partition("/")[0] for key in found} | differing(old.usage, facts.usage)
            slices |= differing(was.slices, wanted.slices)
            found |= {key for key in there if key.partition("/")[0] in slices} if slices else set()
            found |= {key for key, status in there.items() if status.phase in HOLDING}
        found |= differing(was.decisions, wanted.decisions) | wanted.decisions.keys()
        return found | differing(was.ignored_decisions, wanted.ignored_decisions)

    def had(self, key: str, status: GPRStatus | None, outcome: RequestOutcome) -> None:
        """Remember what became of a request that was judged."""
        if outcome.status is status and not outcome.events and outcome.cause is None:
            self._restless.discard(key)
            if status is not None and status.phase in TERMINAL:
                self._quiet.add(key)
        else:
            self._restless.add(key)

    def newly_quiet(self) -> Collection[str]:
        """Finished requests that stopped changing since the last call."""
        found, self._quiet = self._quiet, set()
        return found


def unsettled(requests: Mapping[str, GPRStatus], filed: Mapping[str, Filed]) -> set[str]:
    """All but those unread on both sides: an earlier process found nothing to do there."""
    over = requests.over if isinstance(requests, Records) else {}
    found = {key for key, file in raw(filed).items() if not isinstance(file, UnreadFile)}
    found |= {key for key in requests if not isinstance(over.get(key), UnreadRecord)}
    return found | (over.keys() ^ filed.keys())


def differs_for_all(was: Wanted, wanted: Wanted) -> bool:
    """True if an input of every request changed."""
    names = [field.name for field in fields(Wanted) if field.name not in OF_ONE]
    pairs = [(getattr(was, name), getattr(wanted, name)) for name in names]
    return any(old is not new and old != new for old, new in pairs)


def without_news(outcome: RequestOutcome, status: GPRStatus | None) -> RequestOutcome:
    """The outcome with the old record object where the new one equals it, so that comparing by identity is enough."""
    if outcome.status is status or outcome.status != status:
        return outcome
    return RequestOutcome(status, outcome.events, outcome.cause)
