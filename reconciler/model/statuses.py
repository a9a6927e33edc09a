"""The records of all requests, with finished ones apart: these are the majority and never change.

A decision walks the requests that wait or hold nodes (`live`) and those that changed since the last one
(`changed`), so that a cycle costs what is active, not the whole history. Finished records are read on access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass

from schemas.status.gpr_status import HOLDING, TERMINAL, GPRStatus


@dataclass(slots=True, eq=False)
class UnreadRecord:
    """The record of a finished request, as a blob of the status branch; read once, on access."""

    oid: str
    read: Callable[[str], GPRStatus]
    _status: GPRStatus | None = None

    @property
    def status(self) -> GPRStatus:
        """The blob's content; raises what the store raises."""
        if self._status is None:
            self._status = self.read(self.oid)
        return self._status

    def __eq__(self, other: object) -> bool:
        """Equal blobs are equal records; anything else is compared by content."""
        if isinstance(other, UnreadRecord):
            return self.oid == other.oid or self.status == other.status
        return isinstance(other, GPRStatus) and self.status == other

    __hash__ = None  # type: ignore[assignment]  # never kept in sets


class Records(MutableMapping[str, GPRStatus]):
    """Statuses by `slice/name`. A copy costs the live ones; finished ones are shared until one of them changes."""

    __slots__ = ("_holders", "_is_shared", "_over", "live")

    def __init__(self, live: dict[str, GPRStatus], over: dict[str, GPRStatus | UnreadRecord]) -> None:
        """Owns `live`; `over` is shared, and copied before a change."""
        self.live = live
        """Those that wait or hold nodes; read-only."""
        self._over, self._is_shared = over, True
        self._holders: dict[str, GPRStatus] | None = None  # computed on demand

    @property
    def holders(self) -> Mapping[str, GPRStatus]:
        """Those of `live` that hold nodes, in its order; computed once between two changes."""
        if self._holders is None:
            self._holders = _holders_of(self.live)
        return self._holders

    @property
    def over(self) -> Mapping[str, GPRStatus | UnreadRecord]:
        """Finished requests, unread; the same object as long as none changes."""
        return self._over

    def copy(self) -> Records:
        self._is_shared = True
        other = Records(dict(self.live), self._over)
        other._holders = self._holders
        return other

    def sort(self) -> None:
        """Sorts the live ones by name, for readers that show them in order."""
        self.live, self._holders = dict(sorted(self.live.items())), None

    def __getitem__(self, key: str) -> GPRStatus:
        found = self.live.get(key)
        return self._read(self._over[key]) if found is None else found

    def get(self, key: str, default: GPRStatus | None = None) -> GPRStatus | None:  # type: ignore[override]
        """As in any dictionary; faster than the inherited one, which matters in most cycles."""
        found = self.live.get(key)
        if found is not None:
            return found
        over = self._over.get(key)
        return default if over is None else self._read(over)

    def __setitem__(self, key: str, status: GPRStatus) -> None:
        self._forget_holders(key, status)
        if status.phase in TERMINAL:
            if self._over.get(key) is not status:
                self._own()[key] = status
            self.live.pop(key, None)
        else:
            self.live[key] = status
            if key in self._over:
                del self._own()[key]

    def __delitem__(self, key: str) -> None:
        self._forget_holders(key, None)
        if key in self.live:
            del self.live[key]
        else:
            del self._own()[key]

    def __contains__(self, key: object) -> bool:
        return key in self.live or key in self._over

    def __iter__(self) -> Iterator[str]:
        yield from self.live
        yield from self._over

    def __len__(self) -> int:
        return len(self.live) + len(self._over)

    def __eq__(self, other: object) -> bool:
        """Without reading unread records: two blobs of one id are equal."""
        if not isinstance(other, Records):
            return isinstance(other, Mapping) and dict(self) == dict(other)
        return self.live == other.live and (self._over is other._over or self._over == other._over)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def _forget_holders(self, key: str, status: GPRStatus | None) -> None:
        known = self._holders
        if known is not None and (key in known or (status is not None and status.phase in HOLDING)):
            self._holders = None

    def _own(self) -> dict[str, GPRStatus | UnreadRecord]:
        if self._is_shared:
            self._over, self._is_shared = dict(self._over), False
        return self._over

    @staticmethod
    def _read(found: GPRStatus | UnreadRecord) -> GPRStatus:
        return found.status if isinstance(found, UnreadRecord) else found


def records(requests: Mapping[str, GPRStatus]) -> Records:
    """An independent copy of these."""
    if isinstance(requests, Records):
        return requests.copy()
    live = {key: status for key, status in requests.items() if status.phase not in TERMINAL}
    over: dict[str, GPRStatus | UnreadRecord] = {
        key: status for key, status in requests.items() if status.phase in TERMINAL
    }
    return Records(live, over)


def live(requests: Mapping[str, GPRStatus]) -> Mapping[str, GPRStatus]:
    """Those that wait or hold nodes."""
    if isinstance(requests, Records):
        return requests.live
    return {key: status for key, status in requests.items() if status.phase not in TERMINAL}


def holders(requests: Mapping[str, GPRStatus]) -> Mapping[str, GPRStatus]:
    """Those that hold nodes."""
    return requests.holders if isinstance(requests, Records) else _holders_of(requests)


def _holders_of(requests: Mapping[str, GPRStatus]) -> dict[str, GPRStatus]:
    return {key: status for key, status in requests.items() if status.phase in HOLDING}


def changed(before: Mapping[str, GPRStatus], after: Mapping[str, GPRStatus]) -> set[str]:
    """Keys whose records differ, or that only one has. Compared by identity."""
    if isinstance(before, Records) and isinstance(after, Records):
        found = differing(before.live, after.live)
        return found if before.over is after.over else found | differing(before.over, after.over)
    return differing(before, after)


def differing(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """Keys whose objects are not identical."""
    if before is after:
        return set()
    found = {key for key, value in after.items() if before.get(key) is not value}
    if len(before) + len(found) != len(after):  # otherwise only new keys can differ
        found |= before.keys() - after.keys()
    return found
