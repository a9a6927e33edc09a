"""A remote in memory that fails as a test says: its hook is called before and after each fetch and push."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from reconciler.store import memory_store
from reconciler.store.store_port import Commit, Outcome
from schemas.errors import Fault


class Fate(Enum):
    """The hook's decision about an operation."""

    PASS = "Pass"
    REFUSE = "Refuse"  # the server refuses; for a fetch: the remote is unreachable
    LOSE = "Lose"  # a push is lost, with an unknown outcome
    DELAY = "Delay"  # a push is delayed, with an unknown outcome: see MemoryRemote.land
    HIDE = "Hide"  # after a push: it succeeded, but the answer is lost


@dataclass(frozen=True, slots=True)
class Operation:
    """One contact with the remote, before or after it; `branch`, `new` and `expected` are for a push."""

    kind: str  # "fetch" or "push"
    when: str  # "before" or "after"
    branch: str = ""
    new: str = ""
    expected: str | None = None


def pass_all(_: Operation) -> Fate:
    """The hook of a network without faults."""
    return Fate.PASS


@dataclass(slots=True)
class MemoryRemote(memory_store.MemoryRemote):
    """`forbids_rewinds` is receive.denyNonFastForwards."""

    hook: Callable[[Operation], Fate] = pass_all
    down: bool = False
    forbids_rewinds: bool = False
    delayed: list[Operation] = field(default_factory=list)
    too_large: set[str] = field(default_factory=set)  # commits too large for any store

    def commit(self, oid: str) -> Commit:
        found = memory_store.MemoryRemote.commit(self, oid)
        if oid in self.too_large:
            raise Fault(f"commit {oid} is too large; rewrite the branch", "TooLarge")
        return found

    def fetch(self, patterns: Sequence[str]) -> dict[str, str]:
        fate = self.hook(Operation("fetch", "before"))
        if self.down or fate is not Fate.PASS:
            raise Fault("the remote could not be read: it is down", "RemoteUnreachable")
        found = memory_store.MemoryRemote.fetch(self, patterns)
        self.hook(Operation("fetch", "after"))
        return found

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        fate = self.hook(Operation("push", "before", branch, new, expected))
        push = Operation("push", "after", branch, new, expected)
        if self.down or fate is Fate.LOSE:
            return Outcome.UNKNOWN
        if fate is Fate.DELAY:
            self.delayed.append(push)
            return Outcome.UNKNOWN
        outcome = Outcome.REFUSED if fate is Fate.REFUSE else self._move(push)
        return Outcome.UNKNOWN if self.hook(push) is Fate.HIDE else outcome

    def _move(self, push: Operation) -> Outcome:
        tip = self.tips.get(push.branch)
        is_rewind = tip is not None and tip == push.expected and tip not in self.history(push.new)
        if self.forbids_rewinds and is_rewind:
            return Outcome.REFUSED
        return memory_store.MemoryRemote.push(self, push.branch, push.new, push.expected)

    def land(self) -> list[Outcome]:
        """Delivers the delayed pushes now, oldest first, and returns their outcomes."""
        arriving, self.delayed = self.delayed, []
        return [self._move(push) for push in arriving]

    def delete(self, branch: str) -> None:
        """Deletes a branch, as a person would at the server."""
        self.tips.pop(branch, None)
