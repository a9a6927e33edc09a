"""The files of all requests on main; those of finished requests may stay unread until accessed.

Held by tests/reconciler/model/test_statuses.py: it behaves like any dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.model.facts import Filed
from reconciler.model.statuses import Records
from schemas.status.gpr_status import GPRStatus


@dataclass(slots=True, eq=False)
class UnreadFile:
    """The file of a finished request without problems, as a blob of main."""

    oid: str
    read: Callable[[], Filed]
    _filed: Filed | None = None

    @property
    def filed(self) -> Filed:
        """The file's content; raises what the store raises."""
        if self._filed is None:
            self._filed = self.read()
        return self._filed


class Filings(Mapping[str, Filed]):
    """By `slice/name`; immutable."""

    __slots__ = ("raw",)

    def __init__(self, raw: Mapping[str, Filed | UnreadFile]) -> None:
        self.raw = raw
        """The entries, possibly unread."""

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
    """The entries, possibly unread, so that two can be compared without reading them."""
    return filed.raw if isinstance(filed, Filings) else filed


def with_filed(filed: Mapping[str, Filed], more: Mapping[str, Filed]) -> Filings:
    """These, with some replaced or added."""
    return Filings({**raw(filed), **more})


def unrecorded(filed: Mapping[str, Filed], requests: Mapping[str, GPRStatus]) -> set[str]:
    """Requests on main without a record; reads nothing, and avoids a lookup per name."""
    if isinstance(requests, Records):
        return raw(filed).keys() - requests.over.keys() - requests.live.keys()
    return raw(filed).keys() - requests.keys()


def read_filings(filed: Mapping[str, Filed]) -> Iterator[tuple[str, Filed]]:
    """The entries that were read: all with problems are among them."""
    for key, found in raw(filed).items():
        if not isinstance(found, UnreadFile):
            yield key, found
