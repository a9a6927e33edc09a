"""Caches a forge's answers that can no longer change: merged pull requests, contents at a commit.

Approvals, open pull requests and missing objects are queried each time. Forges process a push with a delay:
an unknown commit is a fault at first, and counts as belonging to no pull request only if it stays unknown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

from reconciler.clock import Clock
from reconciler.forges.forge_port import Account, CommitState, Committer, Forge, Pull, Review
from schemas.errors import Fault

MOST = 4096
"""Cached answers; the least recently used one is dropped first."""

PATIENCE = timedelta(minutes=2)
"""How long a forge may take to know a commit's origin."""

T = TypeVar("T")


class Remembering:
    """`Forge` with a cache."""

    def __init__(self, forge: Forge, clock: Clock) -> None:
        self._forge, self._clock = forge, clock
        self._known: OrderedDict[tuple[object, ...], object] = OrderedDict()

    @property
    def kind(self) -> str:
        return self._forge.kind

    def pulls_of(self, commit: str) -> Sequence[Pull]:
        return self._once(("pulls", commit), partial(self._forge.pulls_of, commit), self._all_merged)

    def pull(self, number: int) -> Pull:
        return self._once(
            ("pull", number), partial(self._forge.pull, number), lambda p: self._all_merged([p])
        )

    def changed_paths(self, number: int) -> Sequence[str]:
        ask = partial(self._forge.changed_paths, number)
        return self._once(("paths", number), ask, lambda _: self._is_merged(number))

    def committers(self, number: int) -> Sequence[Committer]:
        ask = partial(self._forge.committers, number)
        return self._once(("committers", number), ask, lambda _: self._is_merged(number))

    def blob_at(self, commit: str, path: str) -> str | None:
        ask = partial(self._forge.blob_at, commit, path)
        return self._once(("blob", commit, path), ask, lambda oid: oid is not None)

    def pusher_of(self, branch: str, commit: str) -> Account | None:
        """Fault `NotKnownYet` instead of None for a recent commit."""
        ask = partial(self._forge.pusher_of, branch, commit)
        found = self._once(("pusher", branch, commit), ask, lambda account: account is not None)
        if found is None:
            now = self._clock.now()
            first = self._once(("first", branch, commit), lambda: now, lambda _: True)
            if now < first + PATIENCE:
                text = f"the forge does not know yet how {commit[:12]} got to {branch}; retrying for a while"
                raise Fault(text, "NotKnownYet")
        return found

    def open_pulls(self) -> Sequence[Pull]:
        return self._forge.open_pulls()

    def reviews(self, number: int) -> Sequence[Review]:
        return self._forge.reviews(number)

    def put_status(self, commit: str, state: CommitState, context: str, description: str, url: str) -> None:
        self._forge.put_status(commit, state, context, description, url)

    def put_comment(self, number: int, marker: str, body: str) -> None:
        self._forge.put_comment(number, marker, body)

    def open_pull(self, branch: str, base: str, title: str, body: str) -> Pull:
        return self._forge.open_pull(branch, base, title, body)

    def protection(self, branch: str) -> Sequence[str]:
        return self._forge.protection(branch)

    def _all_merged(self, pulls: Sequence[Pull]) -> bool:
        """True if all are merged, which is final; their numbers are cached as merged."""
        merged = bool(pulls) and all(pull.state == "merged" for pull in pulls)
        for pull in pulls if merged else ():
            self._keep(("merged", pull.number), True)
        return merged

    def _is_merged(self, number: int) -> bool:
        return ("merged", number) in self._known

    def _once(self, key: tuple[object, ...], ask: Callable[[], T], is_final: Callable[[T], bool]) -> T:
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]  # type: ignore[return-value] # each kind of key has answers of one type
        answer = ask()
        if is_final(answer):
            self._keep(key, answer)
        return answer

    def _keep(self, key: tuple[object, ...], answer: object) -> None:
        self._known[key] = answer
        while len(self._known) > MOST:
            self._known.popitem(last=False)
