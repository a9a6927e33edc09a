"""The content of a request's file at a commit of main: exactly what a review or a merge let in.

An unreadable file gives None; it is read again the next time.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from reconciler.store.store_port import Commit, Store
from schemas.documents.gpr import GPR, GPRTemplate, RequestSpec, resolve
from schemas.errors import Fault
from schemas.reading.reader import read_document
from schemas.rules.view import template_path

MOST_READ = 10_000
"""Requests that are cached; a commit's content never changes."""


class Content:
    """Reads from one store. One owner."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._resolved = lru_cache(MOST_READ)(self._resolve)
        self._blobs = lru_cache(MOST_READ)(self._blob)

    def commit(self, oid: str) -> Commit | None:
        try:
            return self._store.commit(oid)
        except Fault:
            return None

    def request(self, commit: str, path: str) -> RequestSpec | None:
        """What a request asked for there, with its template as of that commit."""
        try:
            return self._resolved(commit, path)
        except Fault:
            return None

    def blob(self, commit: str, path: str) -> str | None:
        try:
            return self._blobs(commit, path)
        except Fault:
            return None

    def _resolve(self, commit: str, path: str) -> RequestSpec | None:
        gpr = self._document(commit, path)
        if not isinstance(gpr, GPR):
            return None
        name = gpr.spec.template
        template = None if name is None else self._document(commit, template_path(name))
        if name is not None and not isinstance(template, GPRTemplate):
            return None
        found = resolve(gpr.spec, template.spec if isinstance(template, GPRTemplate) else None)
        return found if isinstance(found, RequestSpec) else None

    def _document(self, commit: str, path: str) -> object:
        data = self._store.read_path(commit, path)
        return None if data is None else read_document(path, data)

    def _blob(self, commit: str, path: str) -> str | None:
        data = self._store.read_path(commit, path)
        return None if data is None else blob_id(data, commit)


def blob_id(data: bytes, beside: str) -> str:
    """Git's blob id of a content, in the hash format of `beside`."""
    kind = hashlib.sha1 if len(beside) == 40 else hashlib.sha256
    return kind(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
