"""Our own documents as bytes. Unchanged rows of a long list come from a cache; the bytes are the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from reconciler.model.memo import Memo
from reconciler.status.record_text import plain_data, record_text, without_empty
from schemas.documents.base import API_VERSION, Document
from schemas.reading.yaml_text import dump


def document(content: Document) -> bytes:
    return record_text(content).encode()


def plain(kind: str, content: dict[str, Any]) -> bytes:
    return dump(without_empty({"apiVersion": API_VERSION, "kind": kind, **content})).encode()


def row(content: BaseModel | dict[str, Any]) -> str:
    """An item of a top-level list, as lines."""
    pairs = plain_data(content) if isinstance(content, BaseModel) else content
    return dump({"": [without_empty(pairs)]}).partition("\n")[2]


def with_rows(begin: bytes, name: str, rows: Iterable[str], end: str = "") -> bytes:
    """A document with this list after its other fields; an empty list is left out."""
    text = "".join(rows)
    return begin + (f"{name}:\n{text}" if text else "").encode() + end.encode()


@dataclass(frozen=True, slots=True)
class Written:
    """Caches what was written last. One owner.

    Worth it by `benchmarks.cycle`: without it a push costs 40 % more.
    """

    documents: Memo[bytes] = field(default_factory=Memo)
    """By path."""
    rows: dict[str, Memo[str]] = field(default_factory=lambda: defaultdict(Memo))
    """By list, then by key of the live request."""

    def document(self, path: str, content: Document) -> bytes:
        return self.documents.of(path, lambda: document(content), same=(content,))
