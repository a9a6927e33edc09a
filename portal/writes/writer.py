"""Carries callers' changes to the repository: one thread, one commit per write, many writes per push.

What always holds:
  * an answer means that the remote has the commit, whatever process is killed afterwards;
  * an invalid write fails alone; after a lost race for main a write is made again on the new tip;
  * after a push with unknown outcome main is read again: a write that is there is answered, never made a second
    time;
  * proposals wait for pushes to main: they are pushed afterwards, within the same budget.

Held by test_writer_laws.py, test_crash.py and test_budget.py in tests/portal/.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from uuid import uuid4

from portal.http.errors import ApiError, unavailable
from portal.http.headers import REQUEST_ORIGIN, RequestOrigin
from portal.identity.callers import Caller
from portal.settings import PortalSettings
from portal.views.reader import Reader
from portal.writes.idempotency import History, believer, digest_of
from portal.writes.main_tree import MainTree
from portal.writes.outcomes import Outcomes, is_accepted
from portal.writes.parsed_files import cached_text
from portal.writes.proposals import Proposals
from portal.writes.write_request import Landed, WriteRequest
from portal.writes.write_round import RoundResult, Step, Waiting, WriteRound, first_answer, made_before
from reconciler.changes.push import overrun, push, refused_push, unanswered
from reconciler.clock import Clock, monotonic_s
from reconciler.documents.unread_files import recorded
from reconciler.forges.open_forge import open_forge
from reconciler.model import backoff
from reconciler.sources.source import has_no
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Outcome, Store
from reconciler.store.write_decision import postponed_until
from schemas.errors import EgsError, Fault

log = logging.getLogger(__name__)

TRIES = 30
"""Lost races before callers are refused."""
MOST_AT_ONCE = 200
"""Most writes in one push."""
MOST_WAITING = 5000
"""Most waiting writes; further ones are refused."""
ANSWER_S = 25.0
"""How long a caller waits for the outcome before it is answered as unknown."""
PACE_S = 0.1
"""Time between two pushes: writes that come meanwhile share one push."""
SHARED_PACE_S = 0.35
"""The same while others push too: after a lost race main must be read again, which takes about as long."""
SHARED_S = 5.0
"""How long others are expected to keep pushing."""
PATIENCE = timedelta(seconds=5)
"""A write that would wait longer than this for the forge's budget is answered `accepted`."""
SETTLE_S = tuple(backoff.ANSWERS.after(failures).total_seconds() for failures in range(1, 6))
"""Pauses between fetches from a remote that does not answer, after a push with unknown outcome."""


class GroupWriter:
    """See `write_request.Writer`. Call `start`; `stop` returns when all waiting writes are handled."""

    def __init__(
        self, store: Store, cache: DocumentCache, settings: PortalSettings, reader: Reader, clock: Clock
    ) -> None:
        self._store, self._cache, self._settings, self._clock = store, cache, settings, clock
        self._reader, self._main = reader, settings.base.main_branch
        self._proposals = Proposals(store, self._main, settings.base.forge, open_forge, self._count_push)
        self._history = History(store, believer(settings.base.trust))
        self._main_tree: MainTree | None = None
        self._is_doubtful = False
        self._queue: deque[Waiting] = deque()
        self._news = threading.Condition()
        self._ended = False
        self._pushes: deque[datetime] = deque(maxlen=600)
        self._pushed_s = self._others_s = -SHARED_S
        self._outcomes = Outcomes()
        self._forging = ThreadPoolExecutor(2, thread_name_prefix="forge")
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    # -- called by other threads -------------------------------------------------------------------------------

    async def submit(self, write: WriteRequest) -> Landed:
        waiting = self._queued(write)
        inner = asyncio.wrap_future(waiting.future)
        inner.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            # A disconnected caller takes nothing back: the change may be on its way already.
            return await asyncio.wait_for(asyncio.shield(inner), ANSWER_S)
        except TimeoutError as error:
            raise outcome_unknown(waiting.origin.id) from error

    def follow(self, id_: str, caller: Caller) -> Landed | None:
        """Any replica knows what landed. Raises the refusal, if this replica knows it."""
        what = self._outcomes.of(id_, caller.email)
        if what is not None and not is_accepted(what):
            if isinstance(what, Exception):
                raise what
            return what
        self._follow_main()
        made = self._history.of_id(caller.email, id_)
        if made is not None:
            return Landed("pushed", made.commit, id=id_)
        return what if isinstance(what, Landed) else None

    async def known(self, caller: Caller, key: str) -> Landed | None:
        if not key:
            return None
        await asyncio.to_thread(self._follow_main)
        origin = REQUEST_ORIGIN.get() or RequestOrigin(uuid4().hex)
        made = made_before(self._history, caller.email, origin.id, digest_of(caller.email, key))
        return None if made is None else first_answer(origin, made)

    def _follow_main(self) -> None:
        tip = self._store.tips().get(self._main)
        if tip is not None:
            self._history.follow(tip)

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Accept nothing more; returns when every waiting write was carried out or refused."""
        with self._news:
            self._ended = True
            self._news.notify()
        if self._thread.is_alive():
            self._thread.join()
        self._forging.shutdown(wait=True)

    def wake(self) -> None:
        """Check the clock again: for clocks that are set by hand."""
        with self._news:
            self._news.notify()

    def _queued(self, write: WriteRequest) -> Waiting:
        origin = REQUEST_ORIGIN.get() or RequestOrigin(uuid4().hex)
        turn = 0 if self._main_tree is None else self._main_tree.turn
        waiting = Waiting(write, origin, turn, self._reader.view().main, self._clock.now())
        with self._news:
            if self._ended:
                raise unavailable("the portal is shutting down; try again, another replica answers")
            if len(self._queue) >= MOST_WAITING:
                raise unavailable(f"{MOST_WAITING} changes wait already; try again later")
            self._queue.append(waiting)
            self._news.notify()
        return waiting

    # -- the writer's thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        while (batch := self._taken()) is not None:
            self._pushed_s = monotonic_s()
            try:
                self._carry(batch)
            except EgsError as error:
                log.warning("writes not carried reason=%s message=%s", error.reason, error)
                self._give_up(batch, error)
            except Exception as error:
                log.exception("writes not carried; please report it")
                self._give_up(batch, error)

    def _give_up(self, batch: Sequence[Waiting], error: Exception) -> None:
        self._is_doubtful = True  # tried changes may be left half applied
        for waiting in batch:
            self._answer(waiting, error)

    def _taken(self) -> list[Waiting] | None:
        """The next writes, when the budget allows a push; None: the writer ends."""
        with self._news:
            while True:
                now = self._clock.now()
                until = self._postponed_until(now)
                if self._ended and (not self._queue or until is not None):
                    break
                soon_s = self._pushed_s + self._pace_s() - monotonic_s()
                if self._queue and until is None and soon_s > 0 and not self._ended:
                    self._news.wait(soon_s)
                    continue
                if self._queue and until is None:
                    return [self._queue.popleft() for _ in range(min(len(self._queue), MOST_AT_ONCE))]
                if until is not None and until - now > PATIENCE:
                    self._accept()
                self._news.wait(None if until is None else max(0.01, (until - now).total_seconds()))
        self._give_up(
            list(self._queue), unavailable("the portal ended before the change was pushed; try again")
        )
        self._queue.clear()
        return None

    def _postponed_until(self, now: datetime) -> datetime | None:
        return postponed_until(self._pushes, now, self._settings.pushes_per_minute)

    def _count_push(self) -> None:
        self._pushes.append(self._clock.now())

    def _pace_s(self) -> float:
        return SHARED_PACE_S if monotonic_s() - self._others_s < SHARED_S else PACE_S

    def _accept(self) -> None:
        for waiting in self._queue:
            if not waiting.accepted:
                waiting.accepted = True
                landed = Landed("accepted", id=waiting.origin.id)
                self._outcomes.keep(waiting.origin.id, waiting.write.caller.email, landed)
                waiting.future.set_result(landed)

    def _carry(self, batch: list[Waiting]) -> None:
        """Until each write has an answer or waits for the next round."""
        left = batch
        for _ in range(TRIES):
            main_tree = self._tip_tree()
            self._history.follow(main_tree.tip)
            found = WriteRound(main_tree, self._history, self._reader.view(), self._clock.now()).sort(left)
            self._tell(found)
            outcome, left = self._push(main_tree, found.pushed)
            if outcome is Outcome.COMMITTED:
                self._propose_all(found.proposed, main_tree.tip)
                return
            # They were made on top of changes that did not land.
            left += [step.waiting for step in found.proposed]
            if not left:
                return
        self._give_up(left, unavailable(overrun(TRIES, "try again")))

    def _tell(self, found: RoundResult) -> None:
        with self._news:
            self._queue.extendleft(reversed(found.deferred))
            self._queue.extend(found.overflow)
        for waiting, landed in found.answered:
            self._answer(waiting, landed)
        for waiting, error in found.refused:
            self._answer(waiting, error)

    def _tip_tree(self) -> MainTree:
        """Main as fetched last, read up to its tip."""
        tip = self._store.tips().get(self._main) or self._store.fetch([self._main]).get(self._main)
        if tip is None:
            raise unavailable(has_no(self._main))
        if self._main_tree is None or self._is_doubtful:
            old, self._is_doubtful = self._main_tree, False
            at = tip if old is None else old.tip
            self._main_tree = MainTree.at(self._store, self._cache, at, self._is_recorded)
            if old is not None:
                self._main_tree.turn, self._main_tree.last = old.turn, old.last
        if tip != self._main_tree.tip:
            self._others_s = monotonic_s()
            self._main_tree.follow(tip)
        return self._main_tree

    def _is_recorded(self, path: str) -> bool:
        """Whether the controller accepted the request of that file, by the latest status."""
        return recorded(self._reader.view().facts.requests)(path)

    def _push(self, main_tree: MainTree, steps: list[Step]) -> tuple[Outcome, list[Waiting]]:
        """The outcome, and the writes that must be made again."""
        if not steps:
            return Outcome.COMMITTED, []
        self._count_push()
        drafts = [step.draft for step in steps]
        outcome, oids = push(self._store, self._main, drafts, main_tree.tip, main_tree.tip)
        if outcome is Outcome.COMMITTED:
            self._landed(main_tree, steps, oids)
            return outcome, []
        for step in reversed(steps):
            main_tree.documents.take_back(step.undo)
        if outcome is Outcome.REFUSED:
            self._refused(steps)
            return outcome, []
        log.info("push lost outcome=%s changes=%d", outcome.value, len(steps))
        left = [step.waiting for step in steps]
        return outcome, left if self._fetched(left) else []

    def _landed(self, main_tree: MainTree, steps: Sequence[Step], oids: Sequence[str]) -> None:
        made = {
            oid: (step.changes, step.waiting.write.caller.email, step.draft.author.name)
            for oid, step in zip(oids, steps, strict=True)
        }
        main_tree.landed(oids[-1], made)
        self._keep_read(steps)
        answers = [
            (step.waiting, Landed("pushed", oid, id=step.waiting.origin.id))
            for oid, step in zip(oids, steps, strict=True)
        ]
        # Answered after the reader has seen the commit: a caller who reads next finds their own write.
        self._reader.look(partial(self._answer_all, answers))

    def _keep_read(self, steps: Sequence[Step]) -> None:
        """Put the parsed documents into the cache that the reader shares."""
        written = ((path, data) for step in steps for path, data in step.changes.items() if data is not None)
        found = (cached_text(path, data) for path, data in written)
        self._cache.put_many(dict(text for text in found if text is not None))

    def _answer_all(self, answers: Sequence[tuple[Waiting, Landed]]) -> None:
        for waiting, landed in answers:
            self._answer(waiting, landed)

    def _fetched(self, left: Sequence[Waiting]) -> bool:
        """Whether main was read again; if that fails for a while, the callers are answered "unknown"."""
        for pause_s in (*SETTLE_S, None):
            try:
                self._store.fetch([self._main])
            except Fault as fault:
                if pause_s is None or self._ended:
                    log.warning("outcome unknown changes=%d reason=%s", len(left), fault.reason)
                    break
                self._pause(pause_s)
            else:
                return True
        for waiting in left:
            self._answer(waiting, outcome_unknown(waiting.origin.id))
        return False

    def _pause(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def _refused(self, steps: Sequence[Step]) -> None:
        """The server refused the push: all of it, or one commit. Each write is pushed alone to find out."""
        if len(steps) > 1:
            for step in steps:
                self._carry([step.waiting])
            return
        (step,) = steps
        if self._settings.base.forge is not None and not step.waiting.write.must_push:
            # Regardless of the budget: another push to main would be refused again.
            if self._looked(steps):
                self._propose(step, self._tip_tree().tip)
            return
        said = self._store.refusal if isinstance(self._store, GitStore) else ""
        log.warning("push refused by the server said=%s", said)
        text = refused_push(self._main, "let the portal push there")
        self._answer(step.waiting, ApiError(HTTPStatus.FORBIDDEN, "PushRefused", text))

    def _propose_all(self, steps: Sequence[Step], tip: str) -> None:
        """Within the budget; the rest go to the end of the queue."""
        if not steps or not self._looked(steps):
            return
        for number, step in enumerate(steps):
            if self._postponed_until(self._clock.now()) is not None:
                with self._news:
                    self._queue.extend(step.waiting for step in steps[number:])
                return
            self._propose(step, tip)

    def _looked(self, steps: Sequence[Step]) -> bool:
        """Whether the remote's branches could be read; if not, these writes are answered with the error."""
        try:
            self._proposals.look()
        except EgsError as error:
            for step in steps:
                self._answer(step.waiting, error)
            return False
        return True

    def _propose(self, step: Step, tip: str) -> None:
        try:
            landed = self._proposals.push(step, tip)
        except EgsError as error:
            self._answer(step.waiting, error)
            return
        self._forging.submit(self._open, step, landed)

    def _open(self, step: Step, landed: Landed) -> None:
        try:
            self._answer(step.waiting, self._proposals.opened(step, landed))
        except Exception as error:
            log.exception("pull request not opened; please report it")
            self._answer(step.waiting, error)

    def _answer(self, waiting: Waiting, what: Landed | Exception) -> None:
        if waiting.accepted:
            self._outcomes.keep(waiting.origin.id, waiting.write.caller.email, what)
        elif waiting.future.done():
            return
        elif isinstance(what, Exception):
            waiting.future.set_exception(what)
        else:
            waiting.future.set_result(what)


def outcome_unknown(id_: str) -> ApiError:
    """503: the change may be on its way; it is found by that id."""
    text = unanswered("the change", "look for it, or try again with the same Idempotency-Key")
    return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "OutcomeUnknown", text, {"id": id_}, {"Retry-After": "5"})
