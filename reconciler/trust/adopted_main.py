"""What comes into force when an operator adopts a rewritten main, and which holds remain.

A hold concerns one content: if the new main still has the held content, it stays held, because nobody has
reviewed it. If main has another content, the operator accepts it, and the event reports that.

Pure except for listing the two trees. Held by tests/reconciler/trust/test_freezing.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from reconciler.model.differing import differing
from reconciler.store.store_port import Store
from reconciler.trust.policy import is_governed
from schemas.errors import Fault
from schemas.rules.problems import quoted
from schemas.status.judgements import HeldChange

MOST_LISTED = 20
"""Files that are listed by name."""

Content = tuple[str, int]
"""Git's id and mode."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an operator adopted; `changes` None: the old tree no longer exists to compare with."""

    main: str
    instead_of: str
    changes: tuple[str, ...] | None  # a line for each file whose content in force changes
    held: tuple[HeldChange, ...]  # changes that remain held

    @property
    def sentence(self) -> str:
        """The text of the event."""
        if self.changes is None:
            what = "the commit in force before no longer exists, so the changes cannot be listed"
        else:
            what = f"files changed by this: {len(self.changes)}"
        text = f"an operator adopted main at {self.main[:12]} in place of {self.instead_of[:12]}; {what}"
        return f"{text}; changes still held: {len(self.held)}"


def adopted(store: Store, main: str, instead_of: str, held: Collection[HeldChange]) -> Adoption:
    """What changes when `main` replaces `instead_of`, whose paths in `held` did not count. Lists both trees."""
    new = _tree(store, main)
    by_path = sorted(held, key=lambda change: change.path)
    kept = tuple(c for c in by_path if new.get(c.path, (None, 0))[0] == c.found and _is_here(store, c))
    try:
        old = _tree(store, instead_of)
    except Fault:
        return Adoption(main, instead_of, None, kept)
    return Adoption(main, instead_of, changes(_counting(old, held), _counting(new, kept)), kept)


def changes(before: Mapping[str, Content], after: Mapping[str, Content]) -> tuple[str, ...]:
    """A line for each file that differs, sorted by path."""
    paths = sorted(differing(before, after))
    return tuple(f"{_what(path, before, after)} {quoted(path)}" for path in paths)


def listed(lines: Collection[str]) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - MOST_LISTED
    return [*list(lines)[:MOST_LISTED], *([f"and {more} more"] if more > 0 else [])]


def _what(path: str, before: Mapping[str, Content], after: Mapping[str, Content]) -> str:
    if path not in before:
        return "new"
    return "changed" if path in after else "gone"


def _tree(store: Store, commit: str) -> dict[str, Content]:
    entries = store.diff(None, commit)
    return {e.path: (e.oid, e.mode) for e in entries if e.oid is not None and is_governed(e.path)}


def _counting(tree: Mapping[str, Content], held: Iterable[HeldChange]) -> dict[str, Content]:
    counts = dict(tree)
    for change in held:
        counts.pop(change.path, None)
        if change.authorised is not None:
            counts[change.path] = (change.authorised, change.mode)
    return counts


def _is_here(store: Store, change: HeldChange) -> bool:
    """True if the content that counts can be read: without it nothing could replace the held content."""
    try:
        store.sizes([] if change.authorised is None else [change.authorised])
    except Fault:
        return False
    return True
