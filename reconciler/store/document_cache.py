"""A persistent cache of parsed documents, by blob id.

The contents are the caller's text (JSON), never executed when read. `version` identifies the loader and the
models: entries of another version are dropped on opening, so a document is always parsed by the current
rules. Nothing depends on the file: a broken, locked or unwritable one only costs time, and one that breaks
while open is created again. Every entry has a checksum: one changed on disk counts as missing.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from zlib import crc32

log = logging.getLogger(__name__)

_MANY = 50_000  # for more than these, all entries are read and filtered
_PORTION = 500  # SQLite builds may be limited to 999 variables per statement
_MAKE = """
CREATE TABLE IF NOT EXISTS documents (
    version TEXT NOT NULL, oid TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (version, oid)
) WITHOUT ROWID
"""


class DocumentCache:
    """Blob id to document text. `path` None: in memory only. For one thread."""

    def __init__(self, path: Path | None, version: str) -> None:
        self._path = path
        self._version = version
        self._database = self._open()

    def get_many(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The cached ones among the documents."""
        found: dict[str, bytes] = {}
        wanted = dict.fromkeys(oids)
        with self._guarded():
            if len(wanted) > _MANY:
                rows = self._database.execute(
                    "SELECT oid, content FROM documents WHERE version = ?", (self._version,)
                )
                return {oid: _checked(oid, content) for oid, content in rows if oid in wanted}
            for portion in _portions(wanted):
                marks = ",".join("?" * len(portion))
                query = f"SELECT oid, content FROM documents WHERE version = ? AND oid IN ({marks})"  # noqa: S608
                rows = self._database.execute(query, (self._version, *portion))
                found.update((oid, _checked(oid, content)) for oid, content in rows)
        return found

    def put_many(self, documents: Mapping[str, bytes]) -> None:
        """Stores documents, all or none."""
        # In the order of the key, which spares SQLite half of its work.
        rows = [(self._version, oid, _marked(oid, content)) for oid, content in sorted(documents.items())]
        with self._guarded(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", rows)

    def retain(self, live: Iterable[str]) -> None:
        """Removes documents whose blobs are not among the live ones. O(entries)."""
        with self._guarded(), self._database:
            query = "SELECT oid FROM documents WHERE version = ?"
            known = {oid for (oid,) in self._database.execute(query, (self._version,))}
            self._delete(sorted(known.difference(live)))

    def drop(self, oids: Iterable[str]) -> None:
        with self._guarded(), self._database:
            self._delete(sorted(oids))

    def close(self) -> None:
        """Writes and closes the file."""
        self._database.close()

    def _delete(self, oids: Iterable[str]) -> None:
        # By the whole key: without its version each row would be searched for in all of the table.
        rows = ((self._version, oid) for oid in oids)
        self._database.executemany("DELETE FROM documents WHERE version = ? AND oid = ?", rows)

    def _open(self) -> sqlite3.Connection:
        if self._path is not None:
            with contextlib.suppress(_Unusable):
                return self._connected(self._path)
        return _connect(None, self._version)

    def _connected(self, path: Path) -> sqlite3.Connection:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return _connect(path, self._version)
        except (OSError, sqlite3.OperationalError) as error:
            # Locked, read-only or full: the file may be valid and in use, so it is left alone.
            log.warning("document cache kept in memory path=%s error=%s", path, error)
            raise _Unusable from error
        except sqlite3.DatabaseError as error:
            log.warning("document cache remade path=%s error=%s", path, error)
        try:
            _remove(path)
            return _connect(path, self._version)
        except (OSError, sqlite3.Error) as error:
            log.warning("document cache kept in memory path=%s error=%s", path, error)
            raise _Unusable from error

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """The call that meets a broken file reads or stores nothing; the next one has a working cache."""
        try:
            yield
        except (sqlite3.Error, _Broken) as error:
            log.warning("document cache reopened path=%s error=%s", self._path, error)
            damaged = isinstance(error, _Broken) or type(error) is sqlite3.DatabaseError  # unlike a full disk
            self._database.close()
            if damaged and self._path is not None:
                with contextlib.suppress(OSError):
                    _remove(self._path)
            self._database = self._open()


class _Broken(Exception):  # noqa: N818 - not an error outside: the cache is then created again
    pass


def _marked(oid: str, content: bytes) -> bytes:
    """SQLite does not detect a flipped bit in a value, and a wrong document must never be returned."""
    return crc32(oid.encode() + content).to_bytes(4, "big") + content


def _checked(oid: str, marked: object) -> bytes:
    content = marked[4:] if isinstance(marked, bytes) else b""
    if _marked(oid, content) != marked:
        raise _Broken(f"the content of {oid} changed")
    return content


class _Unusable(Exception):  # noqa: N818 - not an error outside: the cache is then in memory
    pass


def _connect(path: Path | None, version: str) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:" if path is None else path, timeout=1, check_same_thread=False)
    try:
        # Losing the last writes in a power failure only costs time; waiting for the disk would slow every cycle.
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = OFF")
        with database:
            database.execute(_MAKE)
            database.execute("DELETE FROM documents WHERE version <> ?", (version,))
    except BaseException:
        database.close()
        raise
    return database


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _portions(oids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(oids)
    while portion := list(islice(rest, _PORTION)):
        yield portion
