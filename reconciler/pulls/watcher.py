"""Comments on open pull requests with their effects, and on merged ones with the outcome.

The controller posts, not the forge's CI: this works for forks without any permissions, and a stale check is
renewed. Everything is bounded: a budget of writes per minute, conditional reads, no repeated texts, one pull
request after the other. Failures of the forge or of one pull request are logged and retried; they never reach
the loop, which has its own thread and its own mirror.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from reconciler.cycle import Cycle
from reconciler.forges.forge_port import CommitState, Forge, Pull
from reconciler.model.evidence import Voucher
from reconciler.model.facts import Facts
from reconciler.pulls import check_comment, check_sentences
from reconciler.pulls.check import PullCheck
from reconciler.pulls.check_basis import Stamps, queue_digest
from reconciler.pulls.check_repository import PullToCheck, checked
from reconciler.pulls.markdown import plain
from reconciler.pulls.merged_requests import CONTEXT, CommitReport, is_followed, told
from reconciler.settings import Settings
from reconciler.store.store_port import Store
from reconciler.store.write_decision import postponed_until
from reconciler.trust.keyring import Keyring
from schemas.errors import EgsError, Fault, UserError
from schemas.reading.reader import rule_of

log = logging.getLogger(__name__)

PER_MINUTE = 20
"""Calls per minute that write, or that only a new pull request needs: a tenth of the strictest forge's limit."""
POLL = timedelta(minutes=1)
"""Interval of listing open pull requests; a webhook makes it earlier."""
REFRESH = timedelta(minutes=10)
"""Delay before updating a comment whose text is the same but was computed for an older main or queue."""
MOST_CHECKS = 20
"""Pull requests checked in one round; the others follow in the next."""
HISTORY = 200
"""Commits of main searched for those that brought the waiting requests."""
TRIES = 5
"""Tries to find a commit's pull request: forges know it some seconds later."""
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_NO_STAMPS = Stamps("", "", 0, None, None, True, "")
_OF_FORGE = frozenset({"ForgeUnreachable", "RateLimited"})


class HeadStore(Store, Protocol):
    """A store that also fetches commits outside branches."""

    def fetch_heads(self, refs: Sequence[str]) -> Mapping[str, str]:
        """Fetches heads of pull requests and returns their commits; absent: deleted, or refused."""


@dataclass(frozen=True, slots=True)
class _Basis:
    """The inputs of a check, besides the pull request."""

    main: str
    queue: str


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The commit status that one pull request's check gives."""

    state: CommitState
    line: str
    url: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """The last check of one pull request."""

    head: str
    basis: _Basis
    substance: object  # its text, without what it was computed against
    said: _Basis  # inputs of the comment on the forge
    at: datetime  # time of that comment
    verdict: _Verdict | None = None  # None: posting failed


@dataclass(slots=True)
class _Followed:
    """A commit of main with requests that have not all started."""

    keys: set[str] = field(default_factory=set)
    pull: int | None = None
    tries: int = 0
    said: CommitReport | None = None


class Watcher:
    """Posts on one repository's forge. `note` may be called from any thread, the rest from one."""

    def __init__(
        self,
        forge: Forge,
        store: HeadStore,
        settings: Settings,
        keyring: Callable[[], Keyring] = Keyring,
        status: Callable[[str | None], str | None] = lambda tip: tip,
    ) -> None:
        """`status` returns the commit of the status branch that counts, given its head."""
        self._forge, self._store, self._settings = forge, store, settings
        self._keyring, self._status = keyring, status
        self._facts: Facts | None = None
        self._queue: tuple[Facts, str] | None = None
        self._heads: Mapping[str, str] = {}
        self._seen: dict[int, _Seen] = {}
        self._put: dict[str, object] = {}  # by head: the inputs of its commit status
        self._spent: list[datetime] = []
        self._brought: dict[str, str] = {}  # request: the commit of main that brought its current file
        self._walked: str | None = None
        self._followed: dict[str, _Followed] = {}

    def note(self, cycle: Cycle) -> None:
        """The result of a cycle; only the leader posts."""
        self._facts = cycle.facts if cycle.leading else None

    def close(self) -> None:
        """Ends the store's helpers; the watcher is not used afterwards."""
        self._store.close()

    def round(self, now: datetime) -> datetime:
        """Processes everything once; returns when to run again. Passes on faults of the forge and the remote."""
        facts = self._facts
        if facts is None:
            return now + POLL
        branches = [self._settings.main_branch, self._settings.status_branch]
        tips = self._store.fetch(branches)
        main = tips.get(self._settings.main_branch)
        if main is None:
            return now + POLL
        status = self._status(tips.get(self._settings.status_branch))
        left = self._check_all(_Basis(main, self._digest(facts)), status, now)
        left |= self._follow_all(facts, main, now)
        if not left:
            return now + POLL
        return min(now + POLL, postponed_until(self._spent, now, PER_MINUTE) or now)

    def _digest(self, facts: Facts) -> str:
        if self._queue is None or self._queue[0] is not facts:
            self._queue = (facts, queue_digest(facts.requests))
        return self._queue[1]

    def _may(self, now: datetime) -> bool:
        """Takes one call from the budget; False if it is used up."""
        self._spent = [at for at in self._spent if at > now - timedelta(minutes=1)]
        if postponed_until(self._spent, now, PER_MINUTE) is not None:
            return False
        self._spent.append(now)
        return True

    # -- open ones -------------------------------------------------------------------------------------------

    def _check_all(self, basis: _Basis, status: str | None, now: datetime) -> bool:
        """Checks what changed, new heads first; True if something had to wait."""
        pulls = [p for p in self._forge.open_pulls() if p.base_branch == self._settings.main_branch]
        self._seen = {p.number: self._seen[p.number] for p in pulls if p.number in self._seen}
        due = [pull for pull in pulls if self._is_due(pull, basis, now)]
        self._bring(due, pulls)
        due.sort(
            key=lambda pull: (seen.at if (seen := self._seen.get(pull.number)) else _NO_TIME, pull.number)
        )
        there = [pull for pull in due if self._heads.get(pull.head_ref) == pull.head]
        for count, pull in enumerate(there):
            if count >= MOST_CHECKS or not self._may(now):
                return True
            self._check(pull, basis, status, now)
        return self._settle(now)

    def _settle(self, now: datetime) -> bool:
        """Heads whose status came from a pull request that is closed now; True if something had to wait."""
        heads = {seen.head for seen in self._seen.values()}
        self._put = {head: put for head, put in self._put.items() if head in heads}
        for head in sorted(self._put):
            if self._is_told(head):
                continue
            if not self._may(now):
                return True
            try:
                self._put_status(head)
            except EgsError as error:
                if error.reason in _OF_FORGE:
                    self._put[head] = None  # it is posted again
                    raise
                log.warning("commit not told commit=%s reason=%s message=%s", head, error.reason, error)
        return False

    def _of_head(self, head: str) -> tuple[int, _Seen] | None:
        """The check that gives a head's status: of its open pull requests the first that is not refused.

        They differ only in their authors. A stranger cannot turn another's status red, nor make their own
        change pass: what passes is an entitled person's identical change.
        """
        every = [(n, seen) for n, seen in sorted(self._seen.items()) if seen.head == head and seen.verdict]
        good = (found for found in every if found[1].verdict and found[1].verdict.state != "failure")
        return next(good, next(iter(every), None))

    def _is_told(self, head: str) -> bool:
        found = self._of_head(head)
        return found is None or self._put.get(head) == (found[0], found[1].substance)

    def _put_status(self, head: str) -> None:
        found = self._of_head(head)
        if found is None or found[1].verdict is None:
            return
        verdict = found[1].verdict
        self._put[head] = (found[0], found[1].substance)
        self._forge.put_status(head, verdict.state, check_comment.CONTEXT, verdict.line, verdict.url)
        log.info("pull request checked number=%d head=%s state=%s", found[0], head, verdict.state)

    def _is_due(self, pull: Pull, basis: _Basis, now: datetime) -> bool:
        seen = self._seen.get(pull.number)
        if seen is None or seen.head != pull.head or seen.basis != basis:
            return True
        return seen.said != basis and now >= seen.at + REFRESH

    def _bring(self, due: Sequence[Pull], pulls: Sequence[Pull]) -> None:
        if any(self._heads.get(pull.head_ref) != pull.head for pull in due):
            self._heads = self._store.fetch_heads([pull.head_ref for pull in pulls])

    def _check(self, pull: Pull, basis: _Basis, status: str | None, now: datetime) -> None:
        """Checks one pull request; its failure stops no other."""
        is_noted = False
        try:
            verdict, comment, substance = self._answer(pull, basis, status, now)
            seen = self._seen.get(pull.number)
            same = seen is not None and (seen.head, seen.substance) == (pull.head, substance)
            if same and seen is not None and now < seen.at + REFRESH:
                self._seen[pull.number] = replace(seen, basis=basis)
                return
            self._may(now)
            self._forge.put_comment(pull.number, check_comment.MARKER, comment)
            self._seen[pull.number] = _Seen(pull.head, basis, substance, basis, now, verdict)
            is_noted = True
            if not self._is_told(pull.head):
                self._put_status(pull.head)
        except EgsError as error:
            if error.reason in _OF_FORGE:
                if is_noted:  # everything is posted again
                    del self._seen[pull.number], self._put[pull.head]
                raise
            log.warning(
                "pull request not told number=%d reason=%s message=%s", pull.number, error.reason, error
            )
            self._seen[pull.number] = _Seen(pull.head, basis, None, basis, now)

    def _answer(
        self, pull: Pull, basis: _Basis, status: str | None, now: datetime
    ) -> tuple[_Verdict, str, object]:
        """Status and comment; and their substance, without times and inputs."""
        asked = PullToCheck(basis.main, pull.head, status, *self._evidence(pull), self._keyring())
        try:
            check = checked(self._store, asked, now)
        except UserError as error:
            text = f"{check_comment.MARKER}\n\n### ❌ {plain(str(error))}\n"
            return _Verdict("failure", str(error), pull.url), text, str(error)
        verdict = _Verdict(check_comment.state(check), check_sentences.description(check), pull.url)
        return verdict, check_comment.markdown(check), _substance(check)

    def _evidence(self, pull: Pull) -> tuple[Mapping[str, Sequence[Voucher]], str | None]:
        """The author's evidence, if the forge's record counts; otherwise the author is judged after the merge."""
        if self._settings.trust.level not in ("forge", "both") or not pull.author.is_person:
            return {}, None
        return {"": (Voucher("forge", account=pull.author.id),)}, pull.author.login

    # -- merged ones -----------------------------------------------------------------------------------------

    def _follow_all(self, facts: Facts, main: str, now: datetime) -> bool:
        """Posts what became of requests; True if something had to wait."""
        self._walk(main)
        for key, status in facts.requests.items():
            known = status.provenance.commit if status.provenance is not None else self._brought.get(key)
            if known is not None and is_followed(status):
                self._followed.setdefault(known, _Followed()).keys.add(key)
        waiting = [commit for commit in sorted(self._followed) if self._follow(commit, facts, now)]
        return bool(waiting)

    def _walk(self, main: str) -> None:
        """Finds which commit brought each request's file, among main's new commits."""
        if main == self._walked:
            return
        steps = []
        for commit in self._store.log(main, HISTORY):
            if commit.oid == self._walked:
                break
            steps.append(commit)
        for commit in reversed(steps):
            if not commit.parents:
                continue  # the first commit brought everything
            for entry in self._store.diff(commit.parents[0], commit.oid):
                match rule_of(entry.path):
                    case (rule, names) if rule.kind == "GPR":
                        self._brought[f"{names['slice']}/{names['name']}"] = commit.oid
        self._walked = main

    def _follow(self, commit: str, facts: Facts, now: datetime) -> bool:
        followed = self._followed[commit]
        known = {key: facts.requests[key] for key in followed.keys if key in facts.requests}
        if not known:
            del self._followed[commit]
            return False
        said = told(known)
        if said == followed.said and (followed.pull is not None or followed.tries >= TRIES):
            return False
        if not self._may(now):
            return True
        try:
            self._tell(commit, said, facts)
        except Fault as fault:
            if fault.reason in _OF_FORGE:
                raise
            log.warning("commit not told commit=%s reason=%s message=%s", commit[:12], fault.reason, fault)
        followed.said = said
        if said.is_last and (followed.pull is not None or followed.tries >= TRIES):
            del self._followed[commit]
        return False

    def _tell(self, commit: str, said: CommitReport, facts: Facts) -> None:
        followed = self._followed[commit]
        self._forge.put_status(commit, said.state, CONTEXT, said.description, "")
        if followed.pull is None and followed.tries < TRIES:
            followed.tries += 1
            main = self._settings.main_branch
            pulls = [pull for pull in self._forge.pulls_of(commit) if pull.base_branch == main]
            followed.pull = pulls[0].number if pulls else None
        if followed.pull is not None:
            together = {
                key for other in self._followed.values() if other.pull == followed.pull for key in other.keys
            }
            requests = {key: facts.requests[key] for key in together if key in facts.requests}
            self._forge.put_comment(followed.pull, check_comment.MARKER, told(requests).comment)


def _substance(check: PullCheck) -> object:
    return replace(check, now=_NO_TIME, stamps=_NO_STAMPS)
