"""The content that a change starts from, and what others changed in the same file meanwhile.

If main is verified and holds a change of the file, a new change starts from the content that was authorised last
(`reconciler.changes.reinstate`).

Held by tests/portal/test_verified.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from portal.http.errors import ApiError, conflict
from portal.writes.main_tree import Changed, MainTree
from portal.writes.parsed_files import read_document
from portal.writes.write_request import Changes
from reconciler.changes.reinstate import FileVersions, versions_of
from reconciler.documents.restored_files import last_read
from reconciler.store.store_port import Store
from schemas.documents.base import Document
from schemas.rules.problems import quoted
from schemas.status.judgements import HeldChange

MOST_FIELDS = 30
"""Most changed fields named in a conflict."""
MOST_STEPS = 200
"""Most commits of a file that are searched for authors."""


@dataclass(slots=True)
class BaseContent:
    """`write_request.Tree`: main at its tip, plus the changes that are about to be written with this one."""

    main_tree: MainTree
    held: Mapping[str, HeldChange]
    above: Mapping[str, bytes | None] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        if path in self.above:
            return self.above[path]
        return self.versions(path).data if path in self.held else self.main_tree.content(path)

    def versions(self, path: str) -> FileVersions:
        store, tip = self.main_tree.store, self.main_tree.tip
        return versions_of(path, store.read_path(tip, path), self.held.get(path), self._blob)

    def _blob(self, oid: str | None) -> bytes | None:
        return None if oid is None else self.main_tree.store.read([oid])[oid]

    def last(self, path: str) -> bytes | None:
        return last_read(self.main_tree.store, self.main_tree.tip, path)

    def below(self, folder: str) -> Sequence[str]:
        """Files that are not documents are left out: they have no effect."""
        repository = self.main_tree.documents.repository
        there = (*repository.documents, *repository.refused)
        return sorted(path for path in there if path.startswith(f"{folder}/"))

    def authors(self, path: str) -> Collection[str]:
        """ApiError 409 while another change of the file is under way."""
        if path in self.above:
            raise conflict(f"{quoted(path)} is being changed; look at it again, then try again")
        return authors_of(self.main_tree.store, self.main_tree.tip, path)


def authors_of(store: Store, tip: str, path: str) -> set[str]:
    """Authors of the file at that commit since it was created, within its latest `MOST_STEPS` changes.

    If a merge took the file unchanged from a branch, the branch's authors; else the merge's author too.
    """
    found, seen, ahead = set[str](), set[str](), [tip]
    while ahead and len(seen) < MOST_STEPS:
        at = store.last_change(ahead.pop(), path)
        if at is None or at in seen:
            continue
        seen.add(at)
        commit, content = store.commit(at), store.read_path(at, path)
        before = {parent: store.read_path(parent, path) for parent in commit.parents}
        if content not in list(before.values())[1:]:
            found.add(commit.author.email)
        ahead += [parent for parent, data in before.items() if data is not None]
    return found


def overtaken(store: Store, path: str, by: Changed, tip: str) -> ApiError:
    """409: another user changed the file since the caller looked."""
    before = store.parent(by.commit)
    old = None if before is None else store.read_path(before, path)
    fields = list(fields_changed(path, old, store.read_path(by.commit, path)))
    more = f" ({', '.join(fields[:MOST_FIELDS])})" if fields else ""
    data = {"path": path, "who": by.email, "commit": by.commit, "main": tip, "fields": fields[:MOST_FIELDS]}
    text = f"{quoted(by.email)} changed {quoted(path)} meanwhile{more}; look at it again, then try again"
    return conflict(text, "Conflict", data)


def fields_changed(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Names of the fields that differ; `*` if either content is not a document."""
    before, after = _fields(path, old), _fields(path, new)
    if before is None or after is None:
        if old != new:
            yield "*"
        return
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield name


def _fields(path: str, data: bytes | None) -> dict[str, Any] | None:
    found = None if data is None else read_document(path, data)
    if not isinstance(found, Document):
        return None
    content = found.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    spec = {f"spec.{name}": value for name, value in content.pop("spec", {}).items()}
    return {**content, **spec}


def new_contents(base: BaseContent, changes: Changes) -> Changes:
    """The changes that differ from the current content."""
    return {path: data for path, data in changes.items() if base.read(path) != data}
