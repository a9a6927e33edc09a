"""Reads a large change of main in portions before it counts, so that no cycle waits for all of it.

The update that follows gets these outcomes and only applies its rules; the document cache gets them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import REGULAR_MODE, Contents, Entry
from schemas.errors import UserError
from schemas.rules.repository import Outcome

PORTION = 4000
"""Files read in one portion: about half a second."""
MAX_DOCUMENTS = 200_000
"""Most files of one change; a larger change is refused before anything is read."""


class Ahead:
    """The next change. One owner."""

    def __init__(
        self,
        store: Contents,
        cache: DocumentCache,
        read: Callable[[Sequence[Entry]], Mapping[str, Outcome]],
    ) -> None:
        """`read` reads files, also into the cache, and returns the outcomes by path."""
        self._store, self._cache, self._read = store, cache, read
        self._between: tuple[str | None, str] | None = None
        self._found: Sequence[Entry] = ()
        self._of: str | None = None  # the commit whose files are being read
        self._left: list[Entry] = []  # those not read yet
        self._done: dict[Entry, Outcome] = {}  # what was read of it

    def changes(self, since: str | None, commit: str) -> Sequence[Entry]:
        """The difference between two commits. Raises UserError `TooManyFiles`."""
        if self._between != (since, commit):
            found = self._store.diff(since, commit)
            if len(found) > MAX_DOCUMENTS:
                text = (
                    f"main changes {len(found)} files at once, but at most {MAX_DOCUMENTS} are allowed; "
                    "split the change"
                )
                raise UserError(text, "TooManyFiles")
            self._between, self._found = (since, commit), found
        return self._found

    def has_more(self, commit: str, entries: Callable[[], Iterable[Entry]]) -> bool:
        """Reads one portion of these entries, which lead to that commit; True if more remain."""
        if self._of != commit:
            self._of, self._left = commit, self._unread(entries())
        portion, self._left = self._left[:PORTION], self._left[PORTION:]
        if portion:
            found = self._read(portion)
            self._done |= {entry: found[entry.path] for entry in portion}
        return bool(self._left)

    def outcomes(self, entries: Iterable[Entry]) -> dict[str, Outcome]:
        """Of these entries, by path; reads those that were not read ahead."""
        wanted = list(entries)
        found = dict(self._read([entry for entry in wanted if entry not in self._done]))
        return found | {entry.path: self._done[entry] for entry in wanted if entry in self._done}

    def over(self) -> None:
        """The change is in force."""
        self._between, self._found, self._of, self._left, self._done = None, (), None, [], {}

    def _unread(self, entries: Iterable[Entry]) -> list[Entry]:
        """Empty if one portion suffices: the update reads it itself."""
        files = [e for e in entries if e.oid is not None and e.mode == REGULAR_MODE and e not in self._done]
        if len(files) <= PORTION:
            return []
        known = self._cache.get_many({entry.oid for entry in files if entry.oid is not None})
        left = [entry for entry in files if entry.oid not in known]
        return left if len(left) > PORTION else []
