"""What a process life read of the records of requests, for the next one: found again by the ids of their blobs.

Of a request that lives the whole record is kept, in a form that is read faster than its file; of one that is over only
that it is, and what is known of its file (see `reconciler.documents.unread_files`): nobody looks at it again.
Nothing depends on it.

Held by tests/reconciler/documents/test_unread_files.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import ValidationError

from reconciler.status.parse import request_status
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Store
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import TERMINAL, GPRRecord, GPRStatus

RECORDS_VERSION = f"{READER_VERSION}.1"
"""Raised whenever a record reads differently, or another thing is kept of it."""


class Remembered:
    """One process life's memory of one repository's records. One owner."""

    def __init__(self, store: Store, cache: DocumentCache | None = None) -> None:
        """`cache` None: nothing outlives the process."""
        self._store = store
        self._cache = cache or DocumentCache(None, RECORDS_VERSION)
        self._grew = False  # since only what counts was kept

    def of(self, oids: Mapping[str, str]) -> tuple[dict[str, GPRRecord], dict[str, str]]:
        """Of blobs by path: records of requests that live, and what was noted of those that are over."""
        live: dict[str, GPRRecord] = {}
        over: dict[str, str] = {}
        known = self._cache.get_many(oids.values())
        for path, oid in oids.items():
            text = known.get(oid)
            if text is None:
                continue
            if not text.startswith(b"{"):
                over[path] = text.decode("ascii", "replace")
            elif (record := _record(text)) is not None:
                live[path] = record
        return live, over

    def keep(self, records: Mapping[str, GPRRecord]) -> None:
        """Records by the ids of their blobs."""
        self._grew = self._grew or bool(records)
        self._cache.put_many({oid: _text(record) for oid, record in records.items()})

    def forget(self, oids: Collection[str]) -> None:
        """Blobs that are no request's record any more."""
        if oids:
            self._cache.drop(oids)

    def note(self, notes: Mapping[str, str]) -> None:
        """What is known of the files of requests that are over, by the ids of their records' blobs."""
        self._cache.put_many({oid: note.encode("ascii") for oid, note in notes.items()})

    def retain(self, oids: Collection[str]) -> None:
        """Forget all others."""
        self._cache.retain(oids)
        self._grew = False

    def tidy(self, oids: Collection[str]) -> None:
        """Forget all others, where something was kept since that was done: else there is nothing to forget."""
        if self._grew:
            self.retain(oids)

    def status(self, oid: str) -> GPRStatus:
        """What a blob says that was readable before."""
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
