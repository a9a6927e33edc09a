"""Caches request records across processes, by the ids of their blobs. Results never depend on it.

For a live request the whole record is kept, in a format faster to read than its file; for a finished one only
that fact, and the note on its file (see `reconciler.documents.unread_files`). A reader who never shows finished
requests `skims`: their texts say that they are finished, and nothing else is looked at. Others do not trust that.

Held by tests/reconciler/documents/test_unread_files.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice

from pydantic import ValidationError

from reconciler.status.parse import request_status
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Store
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import TERMINAL, GPRRecord, GPRStatus

RECORDS_VERSION = f"{READER_VERSION}.1"
"""Raised whenever records are read differently, or other fields are kept."""
_SKIMMED = b"~"
"""Where the entry of a finished request begins whose record was not parsed."""
PORTION = 2000
"""Records written to the cache per call, about a seventh of a second; the rest waits for the next calls."""


class Remembered:
    """The cache for one repository's records. One owner."""

    def __init__(self, store: Store, cache: DocumentCache | None = None) -> None:
        """`cache` None: only in memory."""
        self._store = store
        self._cache = cache or DocumentCache(None, RECORDS_VERSION)
        self._grew = False  # since the last `tidy`
        self._waiting: dict[str, GPRRecord] = {}  # not in the cache yet
        self.skims = False

    def of(self, oids: Mapping[str, str]) -> tuple[dict[str, GPRRecord], dict[str, str]]:
        """From blobs by path: records of live requests, and notes on finished ones."""
        live: dict[str, GPRRecord] = {}
        over: dict[str, str] = {}
        known = self._cache.get_many(oids.values())
        for path, oid in oids.items():
            text = _text(self._waiting[oid]) if oid in self._waiting else known.get(oid)
            if text is None or (text.startswith(_SKIMMED) and not self.skims):
                continue
            if not text.startswith(b"{"):
                over[path] = text.removeprefix(_SKIMMED).decode("ascii", "replace")
            elif (record := _record(text)) is not None:
                live[path] = record
        return live, over

    def keep(self, records: Mapping[str, GPRRecord]) -> None:
        """Adds records, by the ids of their blobs; of very many a portion, and the others in later calls."""
        self._grew = self._grew or bool(records)
        self._waiting |= records
        portion = {oid: self._waiting.pop(oid) for oid in list(islice(self._waiting, PORTION))}
        self._cache.put_many({oid: _text(record) for oid, record in portion.items()})

    def forget(self, oids: Collection[str]) -> None:
        """Removes blobs that are no longer a request's record."""
        for oid in oids:
            self._waiting.pop(oid, None)
        if oids:
            self._cache.drop(oids)

    def note(self, notes: Mapping[str, str]) -> None:
        """Adds notes on finished requests' files, by the ids of their records' blobs."""
        for oid in notes:
            self._waiting.pop(oid, None)
        self._cache.put_many({oid: note.encode("ascii") for oid, note in notes.items()})

    def skimmed(self, notes: Mapping[str, str]) -> None:
        """Adds finished requests whose records were not parsed, with notes on their files, by the ids of the blobs."""
        self._cache.put_many({oid: _SKIMMED + note.encode("ascii") for oid, note in notes.items()})
        self._grew = self._grew or bool(notes)

    def retain(self, oids: Collection[str]) -> None:
        kept = set(oids)
        self._waiting = {oid: record for oid, record in self._waiting.items() if oid in kept}
        self._cache.retain(kept)
        self._grew = False

    def tidy(self, oids: Collection[str]) -> None:
        """Removes all others, if anything was added since the last time."""
        if self._grew:
            self.retain(oids)

    def status(self, oid: str) -> GPRStatus:
        """The status in a blob that was readable before."""
        return request_status(self._store.read([oid])[oid])


def _text(record: GPRRecord) -> bytes:
    if record.status.phase in TERMINAL:
        return b""
    return record.model_dump_json(by_alias=True, exclude_none=True).encode()


def _record(text: bytes) -> GPRRecord | None:
    try:
        return GPRRecord.model_validate_json(text)
    except ValidationError:
        return None
