"""Contents of files as documents, each parsed once: a change is looked at several times on its way to main.

Held by tests/portal/writes/test_main_tree.py.
"""

from __future__ import annotations

from functools import lru_cache

from reconciler.store.git.git_objects import blob_oid
from schemas.reading.reader import Reading, read_with_text
from schemas.reading.strict_yaml import MAX_BYTES

REMEMBERED = 2048


def read_document(path: str, data: bytes) -> Reading:
    """As `schemas.reading.reader.read_document` for a plain file."""
    return _read(path, data)[0] if len(data) <= MAX_BYTES else read_with_text(path, data)[0]


def cached_text(path: str, data: bytes) -> tuple[str, bytes] | None:
    """Id and text of the document for a `DocumentCache`, so that the reader of the commit need not parse it again."""
    text = _read(path, data)[1]
    return None if text is None else (blob_oid(data), text)


@lru_cache(maxsize=REMEMBERED)
def _read(path: str, data: bytes) -> tuple[Reading, bytes | None]:
    return read_with_text(path, data)
