"""The only writer of a branch: terms, compare-and-swap, and a bounded history.

A process takes the branch with Term+1 before it writes anything, so that the head itself is the fence: pushes
of the previous writer fail from then on. What always holds:
  * a commit of ours is only pushed onto the head that it was made for;
  * without a change there is no commit;
  * with signed commits, only authentic ones count: for terms, contents, and ownership;
  * a push with an unknown outcome is settled by reading the branch, however late it lands.

Held by tests/reconciler/store/test_branch_writer.py and, with signatures,
tests/reconciler/store/test_believed_commit.py.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from datetime import datetime

from reconciler.store import write_decision
from reconciler.store.believed_commit import Belief, Believes
from reconciler.store.git.git_names import branch_name
from reconciler.store.push_attempts import Attempt, Work, blocked, foreign
from reconciler.store.store_port import REGULAR_MODE, Draft, Outcome, Person, Store
from reconciler.store.trailers import Epoch, Stamp, is_writer, message, parse_stamp
from reconciler.store.write_decision import KEEP_AGAIN, Keeps, WriterSettings
from reconciler.store.write_results import NotLeading, Postponed, Result, Unchanged, Written
from schemas.errors import Fault

log = logging.getLogger(__name__)

TAKE_OVER = "Take over"
"""Summary of a commit that takes a term without a decision."""
RECOVERY = f"{TAKE_OVER}, and recover what was lost"
"""The same if the branch was lost: its content may be older than what was done."""
# Foreign commits on top of ours that are searched for the last term.
_LOOK_BACK = 200
_PUSHES_REMEMBERED = 64  # more than any sensible budget per minute


class BranchWriter:
    """Writes one branch for one process; `writer` is unique to it. For one thread.

    Nothing is written before `take_over` has landed. A foreign head ends our lead: if it has a later term,
    the writer is `superseded`, otherwise it is a stranger's push, with an alarm; in both cases `take_over` is
    the way to continue.
    """

    def __init__(  # noqa: PLR0913 - optional arguments are keyword-only
        self,
        store: Store,
        branch: str,
        writer: str,
        author: Person,
        settings: WriterSettings | None = None,
        *,
        believes: Believes | None = None,
        remembers: bool = False,
        keeps: Keeps | None = None,
    ) -> None:
        """`believes` recognises our own commits, of any process; None: all are believed.

        `remembers`: a deleted or reset branch is restored as this process, or the mirror, knows it. `keeps`: called
        before a history is left behind.
        """
        if not is_writer(writer):
            raise ValueError(f"{writer!r} cannot be used in a trailer; use letters, digits and ._:@/+-")
        self._store = store
        self._branch = branch_name(branch)
        remembered = self._branch if remembers else ""
        self._belief = Belief(store, believes, store.tips().get(self._branch), remembered)
        self._writer = writer
        self._author = author
        self._settings = settings or WriterSettings()
        self._keeps = keeps
        self._leading = False
        self._by: Stamp | None = None
        self._alarms: list[str] = []
        self._tip: str | None = None
        self._base: str | None = None  # the commit whose content counts, usually the head
        self._files: dict[str, str] = {}
        self._epoch: Epoch | None = None
        self._term = self._seq = 0
        self._pending: dict[str, Attempt] = {}  # pushes that may still land, by commit
        self._unsettled = False
        self._pushes: deque[datetime] = deque(maxlen=_PUSHES_REMEMBERED)
        self._linear_until: datetime | None = None
        self._warned = False
        self.put_back = ""
        """How the branch was damaged when it was last taken over; empty: it was not."""

    @property
    def tip(self) -> str | None:
        """The branch's last known head; the base of the next commit."""
        return self._tip

    def blob(self, path: str) -> str | None:
        """The blob at that path of the head; None: none."""
        return self._files.get(path)

    @property
    def term(self) -> int:
        """The term that we last took; 0 before the first."""
        return self._term

    @property
    def seq(self) -> int:
        """Number of our newest commit; it never decreases within a process."""
        return self._seq

    @property
    def epoch(self) -> Epoch | None:
        """The length of the branch's history since its root; None before the first take-over."""
        return self._epoch

    @property
    def leading(self) -> bool:
        """True if the branch is ours, as far as known."""
        return self._leading

    @property
    def superseded(self) -> bool:
        """True if another process has a later term."""
        return self._by is not None

    @property
    def alarms(self) -> tuple[str, ...]:
        """Sentences about foreign commits, until a later write has landed."""
        return tuple(self._alarms)

    @property
    def belief(self) -> Belief:
        """The commits of the branch that count, also without a writer."""
        return self._belief

    # -- taking the branch -----------------------------------------------------------------------------------

    def take_over(self, now: datetime) -> Written:
        """Takes the branch with the next term: above the head's and our last one.

        The content stays, or becomes the authentic one; a missing branch starts empty. Reads the list of
        files once. CONFLICT: another writer was faster. Raises Fault `RemoteUnreachable`.
        """
        tip = self._store.fetch([self._branch]).get(self._branch)
        base = self._belief.newest(tip)
        if (complaint := self._belief.complaint(tip)) is not None:
            self._raise_alarm(complaint)
        last = self._last_stamp(base)
        self.put_back = complaint or "" if self._belief.lacks(tip) else ""
        is_behind = bool(self.put_back) and self._tip != base  # others may have written after the known state
        self._leading, self._by = False, None
        self._tip, self._base, self._pending = tip, base, {}
        self._files = self._listing(base)
        self._epoch = (last and last.epoch) or Epoch(now)
        term = max(self._term, last.term if last else 0) + 1
        work = Work({}, {}, last.intent if last else None, RECOVERY if is_behind else TAKE_OVER)
        written = self._push(self._attempt(work, now, term, reroot=tip is None), now)
        if tip is None and written.outcome is Outcome.REFUSED:
            self._tell_what_is_in_the_way()
        return written

    def rise(self, now: datetime, above: int) -> Written | None:
        """Takes a term above `above`, while the branch is ours; None if it is not, or unreadable.

        If a later term is used elsewhere but no other writer has the branch, the branch lost that term.
        """
        self._unsettled = True
        if not self.settle() or not self._leading or self._tip is None:
            return None
        last = self._belief.stamp_of(self._tip)
        work = Work({}, {}, last.intent if last else None, RECOVERY)
        return self._push(self._attempt(work, now, max(self._term, above) + 1, reroot=False), now)

    def _listing(self, tip: str | None) -> dict[str, str]:
        entries = () if tip is None else self._store.diff(None, tip)
        # A non-file gets an id that no content has, so that writing the path is a change.
        return {e.path: e.oid if e.oid and e.mode == REGULAR_MODE else "" for e in entries}

    def _last_stamp(self, tip: str | None) -> Stamp | None:
        commits = [] if tip is None else self._belief.history(tip, _LOOK_BACK)
        stamps = [parse_stamp(commit.trailers) for commit in commits]
        if stamps and stamps[0] is None:
            self._raise_alarm(f"its head {commits[0].oid[:12]} has no writer's stamp")
        return next((stamp for stamp in stamps if stamp is not None), None)

    # -- writing ---------------------------------------------------------------------------------------------

    def write(
        self,
        changes: Mapping[str, bytes | None],
        intent: str | None,
        now: datetime,
        summary: str,
        *,
        urgent: bool = False,
    ) -> Result:
        """Commits what differs from the head (None deletes a path) and pushes it. O(changes).

        `intent` is the commit of `main` that the content covers. Beyond the budget a push waits, unless it is
        urgent. After CONFLICT or NotLeading the content must be made again: others have written.
        """
        if not self.settled():
            return Written(Outcome.UNKNOWN)
        if not self._leading:
            return NotLeading(self._by)
        kept, files = write_decision.changed(self._files, changes)
        if not files:
            return Unchanged()
        until = write_decision.postponed_until(self._pushes, now, self._settings.pushes_per_minute)
        if until is not None and not urgent:
            return Postponed(until)
        return self._commit(Work(kept, files, intent, summary), now)

    def _commit(self, work: Work, now: datetime) -> Written:
        if not self._may_reroot(now):
            return self._write(work, now, reroot=False)
        written = self._write(work, now, reroot=True)
        if written.outcome is not Outcome.REFUSED:
            return written
        # Either the server forbids non-fast-forward pushes, or it refuses everything: pushing the same
        # content on the old history shows which.
        self._linear_until = now + self._settings.reroot_after
        written = self._write(work, now, reroot=False)
        if written.landed and not self._warned:
            self._warned = True
            text = "history kept branch=%s; the server forbids rewriting it, its admin should allow that"
            log.warning(text, self._branch)
        return written

    def _may_reroot(self, now: datetime) -> bool:
        if self._tip is None or self._epoch is None:
            return False
        if self._linear_until is not None and now < self._linear_until:
            return False
        is_due = write_decision.reroot_due(self._epoch, now, self._settings)
        return is_due and (
            self._keeps is None or self._has_kept(self._keeps(self._tip, now), self._epoch, now)
        )

    def _has_kept(self, pushes: int | None, epoch: Epoch, now: datetime) -> bool:
        """True if the history is kept elsewhere, or grew too long to wait for that."""
        self._pushes.extend([now] * (pushes or 0))
        if pushes is None and not write_decision.reroot_due(epoch, now, self._settings.doubled()):
            self._linear_until = now + KEEP_AGAIN
            return False
        return True

    def _write(self, work: Work, now: datetime, *, reroot: bool) -> Written:
        written = self._push(self._attempt(work, now, self._term, reroot=reroot), now)
        if written.landed:
            self._alarms.clear()
        return written

    def _attempt(self, work: Work, now: datetime, term: int, *, reroot: bool) -> Attempt:
        self._seq += 1
        size = sum(len(content) for content in work.changes.values() if content is not None)
        epoch = (Epoch(now) if reroot or self._epoch is None else self._epoch).grown(size)
        stamp = Stamp(self._writer, term, self._seq, work.intent, epoch)
        parent = None if reroot else self._tip
        text = message(work.summary, stamp)
        oid = self._store.write(Draft(work.changes, text, self._author, now, self._base, parent))
        return Attempt(oid, term, work.files, epoch)

    def _push(self, attempt: Attempt, now: datetime) -> Written:
        self._pushes.append(now)
        # Whatever the answer, a sent push may still land, so it is remembered until the head changes.
        self._pending[attempt.oid] = attempt
        outcome = self._store.push(self._branch, attempt.oid, self._tip)
        if outcome is Outcome.COMMITTED:
            self._accept(attempt)
        elif outcome is Outcome.CONFLICT:
            self._unsettled = True
            self.settle()
        elif outcome is Outcome.UNKNOWN:
            self._unsettled = True
        landed = outcome is Outcome.COMMITTED or self._tip == attempt.oid
        return Written(Outcome.COMMITTED, attempt.oid) if landed else Written(outcome)

    def _accept(self, attempt: Attempt) -> None:
        for path, oid in attempt.files.items():
            if oid is None:
                self._files.pop(path, None)
            else:
                self._files[path] = oid
        self._tip, self._term, self._epoch = attempt.oid, attempt.term, attempt.epoch
        self._base = attempt.oid
        self._belief.wrote(attempt.oid)
        self._leading, self._by = True, None
        # They were made for the previous head: the server's compare-and-swap rejects them from now on.
        self._pending = {}

    # -- whose branch it is ----------------------------------------------------------------------------------

    def settled(self) -> bool:
        """True if no push is unsettled; reads the branch if one is. `tip` then has the result."""
        return not self._unsettled or self.settle()

    def settle(self) -> bool:
        """Reads the branch, decides who owns it and which pushes landed; False if it cannot be read."""
        try:
            tip = self._store.fetch([self._branch]).get(self._branch)
        except Fault as fault:
            log.debug("branch not settled branch=%s reason=%s", self._branch, fault.reason)
            return False
        self._unsettled = False
        self._judge(tip)
        return True

    def check(self) -> bool:
        """Judges the last fetched head, without the remote; True if it is ours."""
        self._judge(self._store.tips().get(self._branch))
        return self._leading

    def _judge(self, tip: str | None) -> None:
        if tip == self._tip:
            return
        if tip is not None and tip in self._pending:
            self._accept(self._pending[tip])
            return
        was_leading, self._leading = self._leading, False
        counts = self._belief.newest(tip)
        stamp = None if counts is None else self._belief.stamp_of(counts)
        if stamp is not None and stamp.term > self._term:
            self._follow(stamp)
        elif was_leading:
            stranger = f"its head {(tip or '')[:12]} is a foreign commit"
            self._raise_alarm(
                "the branch is gone" if tip is None else self._belief.complaint(tip) or stranger
            )

    def _follow(self, stamp: Stamp) -> None:
        # Once per leader: a follower judges every one of its commits.
        if self._by is None or self._by.writer != stamp.writer:
            log.info(
                "writer superseded branch=%s term=%d by_term=%d by=%s",
                self._branch, self._term, stamp.term, stamp.writer,
            )  # fmt: skip
        self._by = stamp

    def _tell_what_is_in_the_way(self) -> None:
        """Once: Git has no branch `a` beside `a/b`, so a branch `a/b` blocks the branch `a`."""
        try:
            others = self._store.in_the_way(self._branch)
        except Fault as fault:
            log.debug("branch not asked about branch=%s reason=%s", self._branch, fault.reason)
            return
        if not others:
            return
        sentence = blocked(self._branch, others)
        if sentence not in self._alarms:
            log.warning("branch blocked branch=%s message=%s", self._branch, sentence)
            self._alarms.append(sentence)

    def _raise_alarm(self, what: str) -> None:
        sentence = foreign(self._branch, what)
        log.warning("foreign commit branch=%s what=%s; protect the branch", self._branch, what)
        if sentence not in self._alarms:
            self._alarms.append(sentence)
