"""The auditor: sees every commit of the status branch and every change of a node, and says what they break."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from tests.simulation.auditor import acknowledged, commits, due, nodes
from tests.simulation.auditor.acknowledged import Main, read_main
from tests.simulation.auditor.nodes import Shown
from tests.simulation.auditor.reading import Page, Published, new_events, read

ONCE = frozenset({
    "GPRCreated", "GPRProvisioned", "GPRCompleted", "GPRCancelled", "GPREarlyReleased", "GPRDuration25",
    "GPRDuration50", "GPRDuration75",
})  # fmt: skip
"""Told once for each id of a request that is never queued again."""
PUT_BACK = timedelta(minutes=10)
"""docs/guides/back-up.md: a branch that was removed or set back is put back within a poll of the one that knows it."""

PAGES = 100
"""How many pages of before are remembered."""


class Allowances(Protocol):
    """What was wrong when: only to say by how much something may be late."""

    def delays(self, since: datetime, now: datetime) -> timedelta:
        """How much of that time a fault held that may delay what is due."""

    def stood_since(self, now: datetime) -> datetime:
        """Since when a process stands still that now goes on with what it knew; `now`: none does."""

    def doubt(self, now: datetime) -> timedelta:
        """How far clocks were apart lately."""


@dataclass(slots=True)
class Auditor:
    """`broken` collects sentences, each once."""

    published: Published
    allowed: Allowances
    look: timedelta
    """How long a controller may sleep."""
    broken: list[str] = field(default_factory=list)
    page: Page | None = None
    main: Main | None = None
    commits: int = 0
    shown: dict[str, Shown] = field(default_factory=dict)
    _past: deque[tuple[datetime, Page]] = field(default_factory=lambda: deque(maxlen=PAGES))
    """Pages of before, and until when each was the last."""
    _served: set[tuple[str, str, str]] = field(default_factory=set)  # cluster, node and id of every lease
    _told: Counter[tuple[str, str]] = field(default_factory=Counter)
    _said: set[str] = field(default_factory=set)
    _writers: dict[int, str] = field(default_factory=dict)  # of each term
    _cut: datetime | None = None  # when the branch was last damaged by hand

    # -- what it sees ----------------------------------------------------------------------------------------

    def committed(self, commit: str, now: datetime) -> None:
        """A push of the status branch has landed."""
        before, self.page = self.page, read(self.published, commit, self.page)
        self.commits += 1
        if before is not None:
            self._past.append((now, before))
        found = [*self._fenced(before), *commits.laws(before, self.page)]
        found += self._told_once(before)
        found += due.begun(self.page, now, self.allowed.doubt(now))
        if self._cut is None:
            found += nodes.has_its_nodes(before, self.page, self._served)
        found += acknowledged.beyond_quota(before, self.page, self.main)
        found += nodes.slice_twice(self.page, self.shown, now, self.allowed.doubt(now))
        self._say(found, now)

    def pushed(self, commit: str, now: datetime) -> None:
        """People's push of main was acknowledged."""
        self.main = read_main(self.published, commit, self.main, now)

    def damaged(self, commit: str | None, now: datetime) -> None:
        """Somebody deleted the branch, or set it back: what is lost may be filed and told again."""
        self._cut = now
        self.page = None if commit is None else read(self.published, commit, None)
        self._told.clear()
        self._writers.clear()

    def changed(self, shown: Shown) -> None:
        """A cluster's nodes are others than before."""
        before = self.shown.get(shown.cluster)
        self.shown[shown.cluster] = shown
        self._served |= {(shown.cluster, node, lease.uid) for node, lease in shown.leases.items()}
        found = [*nodes.changed_hands(before, shown), *nodes.stamps_grow(before, shown)]
        found += nodes.unchecked(before, shown)
        if self.page is not None:
            found += nodes.slice_twice(self.page, self.shown, shown.at, self.allowed.doubt(shown.at))
        if not self._is_cut(shown.at):
            found += self._unjustified(before, shown)
        self._say(found, shown.at)

    def _unjustified(self, before: Shown | None, shown: Shown) -> list[str]:
        """A write that stood still for long may follow what was committed when it began."""
        since, tolerance = self.allowed.stood_since(shown.at), self.allowed.doubt(shown.at)
        known = [page for until, page in self._past if until >= since]
        found: list[str] = []
        for page in (self.page or Page(""), *known):
            found = [*nodes.unjustified(page, before, shown, tolerance)]
            if not found:
                break
        return found

    def looked(self, now: datetime) -> None:
        """Time has passed."""
        if self.page is None or self._is_cut(now):
            return
        found = [
            *due.late_ends(self.page, self.shown, self.allowed.delays, now, self.look),
            *due.late_words(self.page, self.allowed.delays, now, self.look),
            *due.late_starts(self.page, self.allowed.delays, now, self.look),
        ]
        if self.main is not None:
            found += acknowledged.missing(self.page, self.main, self.allowed.delays, now, self.look)
        self._say(found, now)

    def rested(self, now: datetime) -> None:
        """Hours after the last fault: nothing is left over, and nothing was forgotten."""
        if self.page is not None:
            self._say([*due.left_over(self.page, self.shown), *due.unfinished(self.page, now)], now)

    # -- laws of the whole history ---------------------------------------------------------------------------

    def _is_cut(self, now: datetime) -> bool:
        return self._cut is not None and now - self._cut < PUT_BACK

    def _fenced(self, before: Page | None) -> Iterator[str]:
        """One writer a term, terms and numbers grow, and every commit is on top of the one before."""
        page = self.page
        assert page is not None
        if self._writers.setdefault(page.term, page.writer) != page.writer:
            yield f"term {page.term} is of {self._writers[page.term]} and of {page.writer}"
        if before is None:
            return
        if (page.term, page.seq) <= (before.term, before.seq):
            yield f"the branch went from {before.term}.{before.seq} to {page.term}.{page.seq}"

    def _told_once(self, before: Page | None) -> Iterator[str]:
        page = self.page
        assert page is not None
        requeued = {s["uid"] for s in page.requests.values() if s.get("retryCount") or s.get("remaining")}
        for row in new_events(self.published, before, page):
            uid, reason = row.get("uid", ""), row["reason"]
            self._told[uid, reason] += 1
            if reason in ONCE and uid and self._told[uid, reason] > 1 and uid not in requeued:
                yield f"{reason} of {row.get('request')} was told {self._told[uid, reason]} times"
        if before is None or self._cut is not None:
            return
        for key, status in page.requests.items():
            if before.requests.get(key) is not status:
                for reason in commits.news(before.requests.get(key), status):
                    if not self._told[status["uid"], reason]:
                        yield f"{key} is {status['phase']} and {reason} was never told"

    def _say(self, found: list[str] | Iterator[str], now: datetime) -> None:
        for sentence in found:
            if sentence not in self._said:
                self._said.add(sentence)
                self.broken.append(f"{now:%d %H:%M:%S} {sentence}")


def shown_of(cluster: str, at: datetime, held: Mapping[str, Any]) -> Shown:
    """A cluster's nodes as they describe themselves."""
    leases = {
        name: nodes.Lease(h.lease.uid, h.lease.request, h.lease.slice, h.lease.start, h.lease.end)
        for name, h in held.items()
        if h.lease is not None
    }
    stamps = {name: (h.stamp.term, h.stamp.seq) for name, h in held.items() if h.stamp is not None}
    runs = {name: h.checks["pre"] for name, h in held.items() if "pre" in h.checks}
    checked = {
        name: run.lease.uid
        for name, run in runs.items()
        if run.results is not None and all(result.passed for result in run.results)
    }
    return Shown(cluster, at, leases, stamps, checked)
