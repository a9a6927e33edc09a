"""The paths that differ between two trees, found by walking both in parallel. Pure except for `read`.

Git's own `diff-tree` and `ls-tree` visit every path, and a few kilobytes of objects can encode more paths
than any memory holds, by nesting one folder ten times, ten levels deep. This walk reads every folder once per
level, skips what both sides share, and stops at a limit.

Held by tests/reconciler/store/git/test_tree_walk.py, compared with git's own result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from reconciler.store.git.git_objects import Row, tree_entry, tree_rows
from reconciler.store.store_port import Entry
from schemas.errors import Fault

Trees = Callable[[Sequence[str]], Mapping[str, bytes]]
"""The bytes of trees by id."""

MAX_PATHS = 300_000
"""Per result; above the limit for one change of main, which has a message of its own."""
MAX_LETTERS = 64 * 2**20
"""For all paths of one result together."""
_FOLDER = 0o040000

_Folder = dict[bytes, Row]
_Step = tuple[str, str | None, str | None]
"""A folder's path with a trailing slash, and the ids of its tree before and after."""


def differing(read: Trees, old: str | None, new: str) -> list[Entry]:
    """Paths that differ between two trees, sorted; all paths if `old` is None. O(differences).

    Fault `TooManyFiles` beyond the limits, `CorruptObjects` for an invalid tree.
    """
    found: list[Entry] = []
    steps: list[_Step] = [("", old, new)]
    letters = 0
    while steps:
        folders = _folders(read, steps)
        below: list[_Step] = []
        for prefix, before, after in steps:
            only = None if before is not None or after is None else folders[after]
            there = (
                _in_folder(prefix, folders[before], folders[after], below)
                if only is None
                else _in_new_folder(prefix, only, below)
            )
            for entry in there:
                found.append(entry)
                letters += len(entry.path)
            if len(found) + len(below) > MAX_PATHS or letters + len(prefix) > MAX_LETTERS:
                text = f"more than {MAX_PATHS} paths are not supported; rewrite the branch without them"
                raise Fault(text, "TooManyFiles")
        letters += sum(len(step[0]) for step in below)
        steps = below
    return sorted(found, key=lambda entry: entry.path)


def _folders(read: Trees, steps: Sequence[_Step]) -> dict[str | None, _Folder]:
    oids = dict.fromkeys(oid for step in steps for oid in step[1:] if oid is not None)
    try:
        parsed = {oid: {row[1]: row for row in tree_rows(data)} for oid, data in read(list(oids)).items()}
    except ValueError as error:
        raise Fault("a folder's object cannot be read; run git fsck", "CorruptObjects") from error
    folders: dict[str | None, _Folder] = {None: {}}
    folders.update(parsed)
    return folders


def _in_new_folder(prefix: str, folder: _Folder, below: list[_Step]) -> Iterator[Entry]:
    """As `_in_folder`, for a folder that is new."""
    for entry in map(tree_entry, folder.values()):
        if entry.mode == _FOLDER:
            below.append((f"{prefix}{entry.name}/", None, entry.oid))
        else:
            yield Entry(prefix + entry.name, entry.oid, entry.mode)


def _in_folder(prefix: str, before: _Folder, after: _Folder, below: list[_Step]) -> Iterator[Entry]:
    """The differing files of one folder; differing subfolders are added to `below`."""
    for name in {name for name, _ in before.items() ^ after.items()}:
        old, new = (None if row is None else tree_entry(row) for row in (before.get(name), after.get(name)))
        path = prefix + (old or new).name  # type: ignore[union-attr]  # one of both is there
        was_folder = old is not None and old.mode == _FOLDER
        is_folder = new is not None and new.mode == _FOLDER
        if was_folder or is_folder:
            trees = (old.oid if old and was_folder else None, new.oid if new and is_folder else None)
            below.append((f"{path}/", *trees))
        if new is not None and not is_folder:
            yield Entry(path, new.oid, new.mode)
        elif old is not None and not was_folder:
            yield Entry(path, None)
