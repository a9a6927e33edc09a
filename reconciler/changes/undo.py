"""Undo a commit of main: the change that takes it back, field by field, so that later changes of others stay.

If a field changed again since, the undo is refused and names it. Nothing is pushed here; like any other change it is
judged and brought by the one way to publish.

Held by tests/reconciler/changes/test_undo.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.documents.yaml_edit import Field, with_field
from reconciler.model.differing import differing
from reconciler.sources.command_errors import NotAllowed, NotFound
from reconciler.sources.source import Changes
from reconciler.store.store_port import Commit, Store
from schemas.errors import Fault
from schemas.reading.reader import rule_of
from schemas.reading.strict_yaml import Refused, load

MOST_FILES = 200
LOOKED_BACK = 2000
"""Commits of main among which the first characters of a name are searched."""
_NAME = re.compile(r"[0-9a-f]{7,64}")
_ABSENT = None
"""As the value of a field: YAML's null means the same in our documents."""

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Step:
    """What the undo does to one file."""

    path: str
    data: bytes | None
    """None: it is removed."""
    fields: tuple[str, ...]
    """Fields that get their earlier values; empty: the whole file is removed, or comes back."""


@dataclass(frozen=True, slots=True)
class Undo:
    """The change that takes a commit back."""

    commit: Commit
    steps: tuple[Step, ...]
    left: tuple[str, ...]
    """Changed files that are no documents, and stay as they are."""

    @property
    def changes(self) -> Changes:
        return {step.path: step.data for step in self.steps}

    @property
    def digest(self) -> str:
        """Of the whole change: what is filed is what was shown."""
        found = hashlib.sha256(self.commit.oid.encode())
        for path, data in sorted(self.changes.items()):
            found.update(
                f"\n{path} {'removed' if data is None else hashlib.sha256(data).hexdigest()}".encode()
            )
        return found.hexdigest()[:32]


def subject_of(commit: Commit) -> str:
    """The subject of the commit that takes it back."""
    return f"Undo {commit.oid[:12]}: {commit.message.partition(chr(10))[0]}"[:100].rstrip()


def commit_on(store: Store, main: str, name: str) -> Commit:
    """The commit of main with that name, or whose name begins so. Raises NotFound."""
    if _NAME.fullmatch(name) is not None:
        found = next((c for c in store.log(main, LOOKED_BACK) if c.oid.startswith(name)), None)
        if found is not None:
            return found
        if len(name) >= 40 and _is_below(store, name, main):
            return store.commit(name)
    raise NotFound("commit of main", name[:80], ())


def _is_below(store: Store, name: str, main: str) -> bool:
    try:
        return store.is_ancestor(name, main)
    except (Fault, ValueError):
        return False


def touched(store: Store, commit: Commit) -> list[str]:
    """Paths that the commit changed, of a merge those that it brought. Raises NotAllowed for the first commit."""
    if not commit.parents:
        raise NotAllowed(
            f"{commit.oid[:12]} is the first commit of main; there is nothing before it to go back to"
        )
    paths = [entry.path for entry in store.diff(commit.parents[0], commit.oid)]
    if len(paths) > MOST_FILES:
        raise NotAllowed(
            f"{commit.oid[:12]} changed {len(paths)} files; at most {MOST_FILES} are undone at once"
        )
    return paths


def undo(store: Store, commit: Commit, read: Read) -> Undo:
    """The change that takes the commit back from the files that `read` gives. Raises NotAllowed."""
    steps, left = list[Step](), list[str]()
    for path in touched(store, commit):
        if path.startswith("keys/"):
            raise NotAllowed(f"{path}: keys are not brought back; make or revoke one with `egs key`")
        if rule_of(path) is None:
            left.append(path)
            continue
        before, done = (store.read_path(oid, path) for oid in (commit.parents[0], commit.oid))
        step = _step(path, before, done, read(path))
        if step is not None:
            steps.append(step)
    if not steps:
        what = "has no documents" if left else "is undone already"
        raise NotAllowed(f"nothing is changed: {commit.oid[:12]} {what}")
    return Undo(commit, tuple(steps), tuple(left))


def _step(path: str, before: bytes | None, done: bytes | None, now: bytes | None) -> Step | None:
    """None: nothing of the commit is left in the file."""
    if now == before or before == done:
        return None
    if before is None or done is None or now is None:
        if now != done:
            raise NotAllowed(
                f"{path} was changed again since; undo the later change first, or edit it by hand"
            )
        return Step(path, before, ())
    was, made, there = (_content(path, data) for data in (before, done, now))
    names, again, data = list[str](), list[str](), now
    for field in _differing(was, made):
        old, new, current = (_at(content, field) for content in (was, made, there))
        wanted = old if current == new else _without_items(old, new, current)
        if current == old:
            continue
        if current != new and wanted is None:
            again.append(".".join(field))
            continue
        names.append(".".join(field))
        data = _without_empty(with_field(data, field, wanted), field, was)
    if again:
        what = ", ".join(again)
        raise NotAllowed(
            f"{path}: {what} changed again since; undo the later change first, or edit it by hand"
        )
    if not names:
        return None
    return Step(path, before if now == done else data, tuple(names))


def _content(path: str, data: bytes) -> Any:
    try:
        content = load(data)
    except Refused as error:
        raise NotAllowed(f"{path}:{error.line}: {error}; edit it by hand") from error
    if not isinstance(content, dict):
        raise NotAllowed(f"{path} is no document; edit it by hand")
    return content


def _differing(was: Any, made: Any) -> list[Field]:
    before, after = dict(_leaves(was, ())), dict(_leaves(made, ()))
    return sorted(differing(before, after))


def _leaves(value: Any, field: Field) -> Iterator[tuple[Field, Any]]:
    """Values by path; a list is one value."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from _leaves(one, (*field, str(name)))
    elif field:
        yield field, value


def _at(content: Any, field: Field) -> Any:
    for name in field:
        content = content.get(name) if isinstance(content, dict) else _ABSENT
    return content


def _without_items(old: Any, new: Any, current: Any) -> Any:
    """The list of now without what the commit added, and with what it removed; None: that cannot be told apart."""
    lists = [[] if value is None else value for value in (old, new, current)]
    if not all(isinstance(value, list) for value in lists):
        return None
    was, made, there = lists
    added, removed = ([x for x in made if x not in was], [x for x in was if x not in made])
    if any(item not in there for item in added) or any(item in there for item in removed):
        return None
    return [item for item in there if item not in added] + removed


def _without_empty(data: bytes, field: Field, was: Any) -> bytes:
    """Without mappings that became empty and were not there before the commit."""
    for end in range(len(field) - 1, 0, -1):
        parent = field[:end]
        if _at(was, parent) is None and _at(load(data), parent) == {}:
            data = with_field(data, parent, None)
    return data
