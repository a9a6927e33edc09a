"""What a change is made of, and what others made of the same file meanwhile.

Where main is verified, of a file whose change is held that content counts which was authorised last: a change is made
of it, never of what somebody slipped in (`reconciler.changes.reinstate` does the same for people).

Held by tests/portal/test_verified.py and tests/portal/writes/test_writer.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from portal.http.errors import ApiError, conflict
from portal.views.view import View
from portal.writes.main_tree import Changed, MainTree
from portal.writes.parsed_files import read_document
from portal.writes.write_request import Changes
from reconciler.documents.restored_files import last_read
from reconciler.store.store_port import Store
from schemas.documents.base import Document
from schemas.rules.problems import quoted
from schemas.status.judgements import HeldChange

MOST_FIELDS = 30
"""Fields that are told of one change."""
MOST_STEPS = 200
"""Changes of one file whose authors are looked for."""


@dataclass(slots=True)
class BaseContent:
    """`writing.Tree`: main at its tip, with the changes on top that are about to be written with this one."""

    main_tree: MainTree
    held: Mapping[str, HeldChange]
    above: Mapping[str, bytes | None] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        """See `writing.Tree.read`."""
        if path in self.above:
            return self.above[path]
        hold = self.held.get(path)
        if hold is None or hold.authorised is None:
            return self.main(path)
        return self.main_tree.store.read([hold.authorised])[hold.authorised]

    def last(self, path: str) -> bytes | None:
        """See `writing.Tree.last`."""
        return last_read(self.main_tree.store, self.main_tree.tip, path)

    def below(self, folder: str) -> Sequence[str]:
        """See `writing.Tree.below`; files that are no documents are left out, they do nothing."""
        repository = self.main_tree.repository
        there = (*repository.documents, *repository.refused)
        return sorted(path for path in there if path.startswith(f"{folder}/"))

    def authors(self, path: str) -> Collection[str]:
        """See `writing.Tree.authors`. ApiError 409 while a change of it is on its way: then it is asked again."""
        if path in self.above:
            raise conflict(f"{quoted(path)} is being changed; look at it again, then try again")
        return authors_of(self.main_tree.store, self.main_tree.tip, path)

    def main(self, path: str) -> bytes | None:
        """As main itself has it."""
        return self.main_tree.content(path)


def authors_of(store: Store, tip: str, path: str) -> set[str]:
    """Of the file as that commit has it, since it was made; of its latest `MOST_STEPS` changes.

    Of a merge that took the file from a branch as it is, those of the branch; else who merged wrote a part, too.
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


def held_in(view: View) -> Mapping[str, HeldChange]:
    """Changes of main that do not count, by path."""
    trust = view.facts.trust
    return {} if trust is None else {hold.path: hold for hold in trust.held}


def overtaken(store: Store, path: str, by: Changed, tip: str) -> ApiError:
    """409: somebody else changed the file since the caller looked; who, where, and which fields."""
    before = store.parent(by.commit)
    old = None if before is None else store.read_path(before, path)
    fields = list(fields_changed(path, old, store.read_path(by.commit, path)))
    more = f" ({', '.join(fields[:MOST_FIELDS])})" if fields else ""
    data = {
        "path": path,
        "who": by.email,
        "commit": by.commit,
        "main": tip,
        "fields": fields[:MOST_FIELDS],
    }
    text = (
        f"{quoted(path)} was changed meanwhile by {quoted(by.email)}{more}; look at it again, then try again"
    )
    return conflict(text, "Conflict", data)


def fields_changed(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Names of the fields that differ; `*` where one of both is no document."""
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
    """Of these changes, those that change something."""
    return {path: data for path, data in changes.items() if base.read(path) != data}
