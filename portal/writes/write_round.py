"""One round of writes: the result of each write on top of main and of earlier writes, and which writes must wait.

Each write is judged alone. If it fails while unpushed changes of others lie below it, it is deferred until those have
landed, so that no write is refused because of a change that never came to be.

Held by tests/portal/test_writer_laws.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime

from portal.http.errors import ApiError, conflict, forbidden
from portal.http.headers import RequestOrigin
from portal.views.view import View
from portal.writes.base_content import BaseContent, new_contents, overtaken
from portal.writes.idempotency import KEY, REQUEST_ID, SERVICE, History, Made, digest_of, trailer_of
from portal.writes.main_tree import MainTree
from portal.writes.permission import goes, refuse
from portal.writes.write_request import Changes, Landed, WriteRequest
from reconciler.changes.main_documents import Undo
from reconciler.changes.reinstate import held_by_path, settled
from reconciler.store.store_port import Draft, Person
from reconciler.store.trailers import person_name, with_trailers
from reconciler.trust.vouchers import speaking_for
from schemas.errors import EgsError
from schemas.rules.problems import quoted

MOST_SUBJECT = 200
MOST_PROPOSED = 10
"""Most branches per round: each is a push of its own, and pushes to main wait meanwhile."""
MOST_OF_ONE = 5
"""Most of these branches for one caller."""


@dataclass(slots=True)
class Waiting:
    """A write whose caller waits for the answer."""

    write: WriteRequest
    origin: RequestOrigin
    turn: int
    """The turn of main when the write came."""
    seen: str
    """Commit of main that the caller may have seen."""
    since: datetime
    future: Future[Landed] = field(default_factory=Future)
    accepted: bool = False
    """The caller got `accepted` and follows the change by its id."""

    @property
    def key(self) -> str:
        """Digest of caller and idempotency key; empty: none was given."""
        given = self.write.idempotency
        return digest_of(self.write.caller.email, given) if given else ""


@dataclass(frozen=True, slots=True)
class Step:
    """A write turned into a change."""

    waiting: Waiting
    changes: Changes
    draft: Draft
    undo: Undo


@dataclass(slots=True)
class RoundResult:
    """The result of a round; a write that is in none of these lists was answered."""

    pushed: list[Step] = field(default_factory=list)
    proposed: list[Step] = field(default_factory=list)
    deferred: list[Waiting] = field(default_factory=list)
    overflow: list[Waiting] = field(default_factory=list)
    """Proposals beyond the limit of this round; they queue behind writes that wait already."""
    answered: list[tuple[Waiting, Landed]] = field(default_factory=list)
    refused: list[tuple[Waiting, Exception]] = field(default_factory=list)


class _Deferred(Exception):  # noqa: N818 - not an error: the write waits for the next round
    pass


class _Overflow(Exception):  # noqa: N818 - not an error: the round is full
    pass


@dataclass(slots=True)
class WriteRound:
    """Sorts one round; afterwards `main_tree` contains what is to be pushed."""

    main_tree: MainTree
    history: History
    view: View
    now: datetime
    round: RoundResult = field(default_factory=RoundResult)
    _above: dict[str, bytes | None] = field(default_factory=dict)
    _by: dict[str, str] = field(default_factory=dict)  # who changed a path in this round
    _proposing: Counter[str] = field(default_factory=Counter)  # branches by caller

    def sort(self, batch: Sequence[Waiting]) -> RoundResult:
        """Process all of them, in order of arrival."""
        taken: set[str] = set()
        for waiting in batch:
            if waiting.key and waiting.key in taken:
                self.round.deferred.append(waiting)  # a repeated call: it gets the first one's answer
                continue
            try:
                self._one(waiting)
            except _Deferred:
                self.round.deferred.append(waiting)
            except _Overflow:
                self.round.overflow.append(waiting)
            except Exception as error:
                self.round.refused.append((waiting, error))
            else:
                taken.add(waiting.key)
        return self.round

    def _one(self, waiting: Waiting) -> None:
        made = made_before(self.history, waiting.write.caller.email, waiting.origin.id, waiting.key)
        if made is not None:
            self.round.answered.append((waiting, first_answer(waiting.origin, made)))
            return
        waiting.write = self._with_rights_of_now(waiting.write)
        if self._is_surely_proposed(waiting.write):
            self._check_room(waiting)  # before any work is done for it
        base = BaseContent(self.main_tree, held_by_path(self.view.facts.trust), self._above)
        try:
            step, way = self._step(waiting, base)
        except EgsError:
            # A rule may look at any document, so a failure is certain only while the round has no changes yet.
            if self._above:
                raise _Deferred from None
            raise
        if step is None:
            self.round.answered.append((waiting, Landed("pushed", self.main_tree.tip)))
        elif way == "propose":
            self.main_tree.documents.take_back(step.undo)
            self._check_room(waiting)
            self._proposing[waiting.write.caller.email] += 1
            self.round.proposed.append(step)
        else:
            self.round.pushed.append(step)
            self._above |= step.changes
            self._by |= dict.fromkeys(step.changes, waiting.write.caller.email)

    def _with_rights_of_now(self, write: WriteRequest) -> WriteRequest:
        """The write may have waited for minutes, in which its key was deleted or its caller removed from a slice."""
        known = write.caller
        if known.again is None:
            return write
        try:
            found = known.again(self.view, self.now)
        except ApiError as error:
            raise forbidden(f"nothing is changed, because meanwhile {error}") from error
        if found.email != known.email:
            raise forbidden(
                f"nothing is changed, because the API key {known.key} belongs to another person meanwhile"
            )
        return replace(write, caller=replace(found, name=known.name))

    def _is_surely_proposed(self, write: WriteRequest) -> bool:
        project = self.main_tree.project
        is_asked = project is not None and project.changes == "pull-request"
        return write.asks or (is_asked and not write.must_push)

    def _check_room(self, waiting: Waiting) -> None:
        is_full = self._proposing.total() >= MOST_PROPOSED
        if is_full or self._proposing[waiting.write.caller.email] >= MOST_OF_ONE:
            raise _Overflow

    def _step(self, waiting: Waiting, base: BaseContent) -> tuple[Step | None, str]:
        """The write as a change, and its way to main; None: main says so already."""
        made = waiting.write.make(self.view, base)
        changes = new_contents(base, made)
        # First of all: without permission the caller learns nothing else.
        way = goes(waiting.write, changes or made, base.read, self.main_tree.project)
        if not changes:
            return None, way
        self._check_news(waiting, changes)
        held = {path: data for path, data in changes.items() if path in base.held}
        changes = {**changes, **settled(held, base.versions, author_of(waiting), self.now)[0]}
        problems, undo = self.main_tree.documents.judged(changes, self.view.facts.requests)
        refuse(problems)
        draft = Draft(changes, message_of(waiting), author_of(waiting), self.now, committer=SERVICE)
        return Step(waiting, changes, draft, undo), way

    def _check_news(self, waiting: Waiting, paths: Iterable[str]) -> None:
        """ApiError 409 if another user changed one of the files since the caller looked."""
        email, store = waiting.write.caller.email, self.main_tree.store
        for path in paths:
            if self._by.get(path, email) != email:
                raise _Deferred
            last = self.main_tree.last.get(path)
            if last is None or last.turn <= waiting.turn or last.email == email:
                continue
            if not store.is_ancestor(last.commit, waiting.seen):
                raise overtaken(store, path, last, self.main_tree.tip)


def made_before(history: History, email: str, id_: str, key: str) -> Made | None:
    """That caller's write on main with this request id, or under this key; `key`: a digest, empty: none."""
    return history.of_id(email, id_) or (history.of_key(email, key) if key else None)


def first_answer(origin: RequestOrigin, made: Made) -> Landed:
    """The first answer again. ApiError 409 if the key was used for something else."""
    if made.id != origin.id and origin.print and made.print != origin.print:
        raise conflict(
            "this Idempotency-Key was already used for another change; use a new key for each change",
            "IdempotencyKeyReused",
            {"commit": made.commit},
        )
    return Landed("pushed", made.commit, id=made.id)


def author_of(waiting: Waiting) -> Person:
    """The caller."""
    caller = waiting.write.caller
    return Person(person_name(caller.name) or caller.email, caller.email)


def message_of(waiting: Waiting) -> str:
    """The commit message: the subject, and trailers that identify the write and its author."""
    who = author_of(waiting)
    trailers = [f"{REQUEST_ID}: {waiting.origin.id}"]
    if waiting.key:
        trailers.append(f"{KEY}: {trailer_of(waiting.key, waiting.origin.print)}")
    trailers.append(speaking_for(who.name, who.email))
    return with_trailers(_subject(waiting.write.subject), trailers)


def _subject(text: str) -> str:
    return quoted(" ".join(text.split()))[:MOST_SUBJECT] or "Change"
