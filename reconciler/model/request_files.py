"""What main says of every request; the files of requests that are over may be left unread until somebody asks.

Held by tests/reconciler/model/test_statuses.py: to whoever asks, this is a dictionary like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.model.facts import Filed
from reconciler.model.statuses import Records
from schemas.status.gpr_status import GPRStatus


@dataclass(slots=True, eq=False)
class UnreadFile:
    """The file of a request that is over, with nothing wrong in it, as a blob of main."""

    oid: str
    read: Callable[[], Filed]
    _filed: Filed | None = None

    @property
    def filed(self) -> Filed:
        """What the file says; raises what the store raises."""
        if self._filed is None:
            self._filed = self.read()
        return self._filed


class Filings(Mapping[str, Filed]):
    """By `slice/name`; never changes."""

    __slots__ = ("raw",)

    def __init__(self, raw: Mapping[str, Filed | UnreadFile]) -> None:
        self.raw = raw
        """As they lie there."""

    def __getitem__(self, key: str) -> Filed:
        found = self.raw[key]
        return found.filed if isinstance(found, UnreadFile) else found

    def __contains__(self, key: object) -> bool:
        return key in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)


def raw(filed: Mapping[str, Filed]) -> Mapping[str, Filed | UnreadFile]:
    """Each as it lies there, so that two can be told apart without reading them."""
    return filed.raw if isinstance(filed, Filings) else filed


def with_filed(filed: Mapping[str, Filed], more: Mapping[str, Filed]) -> Filings:
    """These, with others in the place of some or beside them."""
    return Filings({**raw(filed), **more})


def unrecorded(filed: Mapping[str, Filed], requests: Mapping[str, GPRStatus]) -> set[str]:
    """Requests that main has and that are on no record; nothing is read, and no name is looked at one by one."""
    if isinstance(requests, Records):
        return raw(filed).keys() - requests.over.keys() - requests.live.keys()
    return raw(filed).keys() - requests.keys()


def read_filings(filed: Mapping[str, Filed]) -> Iterator[tuple[str, Filed]]:
    """Those that somebody has read: all in which anything is wrong are among them."""
    for key, found in raw(filed).items():
        if not isinstance(found, UnreadFile):
            yield key, found
