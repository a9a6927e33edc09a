"""Whether the leader owes an answer and is silent: then a reader takes the branch.

A leader answers with a commit, or with none if nothing changed, so silence alone proves nothing. What must lead
to a commit: a request, an approval or a workspace request whose content differs from the last covered commit of
main, and a node whose agent contradicts its record. What changed nothing while this process led is not owed,
and a process that took the branch in vain waits twice as long the next time, so that two never keep swapping it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.health.remedies import going_on
from reconciler.model.facts import Facts, NodeKey
from reconciler.model.memo import Memo
from reconciler.settings import Settings
from reconciler.status.render import request_key
from reconciler.store.store_port import Entry, Store
from schemas.documents.base import Document
from schemas.errors import Fault
from schemas.reading.reader import read_document, rule_of
from schemas.reading.strict_yaml import MAX_BYTES
from schemas.status.gpr_status import TERMINAL, Phase
from schemas.status.node_status import AgentReport, NodeState

OWED = frozenset({"GPR", "Approval", "WorkspaceRequest"})
"""Kinds of documents where each change is answered."""
MOST_READ = 50
"""Changed files compared by content; among more, at least one is surely a real change."""
POLLS = 2
LONGEST = timedelta(hours=1)
BUDGET_WINDOW = timedelta(minutes=1)
"""A leader with a push budget may have to wait this long for its next push."""


def owed_nodes(facts: Facts, reports: Mapping[NodeKey, AgentReport]) -> Iterator[str]:
    """Nodes whose committed record contradicts their agent."""
    treated = {(remedy.cluster, remedy.node) for remedy in going_on(facts.remedies)}
    for key, report in reports.items():
        if key in treated:
            continue  # it stays out until its checks passed, whatever its agent says
        record = facts.nodes.get(key)
        is_out = record is not None and record.state is NodeState.UNHEALTHY and record.until is None
        is_ready = record is None or record.state is NodeState.READY
        if (is_ready and not report.healthy) or (is_out and report.healthy):
            yield f"{'/'.join(key)} {report.at.isoformat()} {report.healthy}"


@dataclass(slots=True)
class Answers:
    """What main is owed, from one store."""

    store: Store
    _last: Memo[tuple[Entry, ...]] = field(default_factory=Memo)

    def owed(self, answered: str | None, main: str, facts: Facts) -> Iterator[str]:
        """Documents of `main` that must lead to a commit, and differ in content from the last covered commit."""
        entries = self._last.of("", lambda: tuple(self._between(answered, main)), equal=(answered, main))
        return (f"{entry.path} {entry.oid}" for entry in entries if _matters(entry, facts))

    def _between(self, answered: str | None, main: str) -> Iterator[Entry]:
        if answered == main:
            return
        try:
            entries = [e for e in self.store.diff(answered, main) if _kind_of(e.path) in OWED]
            for entry in entries:
                if len(entries) > MOST_READ or self._differs(entry.path, answered, main):
                    yield entry
        except Fault:
            return  # one of them is missing, or unreadable: the leader reports that

    def _differs(self, path: str, answered: str | None, main: str) -> bool:
        before = None if answered is None else self._document(answered, path)
        return before is None or before != self._document(main, path)

    def _document(self, commit: str, path: str) -> Document | None:
        data = self.store.read_path(commit, path)
        found = None if data is None or len(data) > MAX_BYTES else read_document(path, data)
        return found if isinstance(found, Document) else None


def _kind_of(path: str) -> str:
    found = rule_of(path)
    return "" if found is None else found[0].kind


def _matters(entry: Entry, facts: Facts) -> bool:
    """False for a file of a finished request, or an approval that no request waits for."""
    kind = _kind_of(entry.path)
    if kind == "WorkspaceRequest":
        return True
    if kind == "Approval":
        _, slice_, name, _ = entry.path.split("/")
        status = facts.requests.get(f"{slice_}/{name}")
        return status is not None and status.phase is Phase.PENDING_APPROVAL
    status = facts.requests.get(request_key(entry.path))
    if status is None:
        return entry.oid is not None
    return status.phase not in TERMINAL or entry.oid is None


@dataclass(slots=True)
class Silence:
    """How long the leader has owed something. One owner."""

    settings: Settings
    _void: frozenset[str] = frozenset()  # seemingly owed, but we led and it changed nothing
    _since: datetime | None = None
    _tip: str | None = None  # of the status branch
    _tries: int = 0
    _owed: frozenset[str] = field(default_factory=frozenset)

    def lasts(self, owed: Collection[str], tip: str | None, now: datetime) -> bool:
        """True if something was owed for two polls while the status branch, now at `tip`, did not move."""
        self._owed = frozenset(owed)
        if not self._owed - self._void:
            self._since, self._tip = None, tip
            return False
        if self._since is None or tip != self._tip:
            self._since, self._tip = now, tip
        return now - self._since >= self._patience()

    def took(self) -> None:
        """We took the branch for it; our own decision shows whether that was right."""
        self._tries += 1
        self._since = None

    def decided(self) -> None:
        """We led, and the decision is committed, or changed nothing: what seemed owed then is not."""
        self._void, self._owed, self._tries = self._void | self._owed, frozenset(), 0

    def _patience(self) -> timedelta:
        polls = POLLS * self.settings.poll
        least = polls if self.settings.pushes_per_minute is None else max(polls, BUDGET_WINDOW)
        longest: timedelta = max(LONGEST, polls)
        return min(least * int(2**self._tries), longest)
