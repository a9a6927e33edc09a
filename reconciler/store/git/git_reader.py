"""The reading part of every store on git: one object database, queried through helper processes.

Nothing here talks to a remote or writes. Faults are those of `Store`.

Held by tests/contract/test_store_contract.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO

from reconciler.store.git import git_names, git_objects
from reconciler.store.git.git_process import Git, Helper, read_exactly, read_line
from reconciler.store.git.tree_walk import differing
from reconciler.store.store_port import Commit, Entry, first_parents
from schemas.errors import Fault

_PORTION = 500  # ids per question: 20 kB, well below a pipe's buffer
_LISTINGS = 2  # for main and the status branch
_WALK_S = 20.0
"""An untrusted history may be slow to walk."""
_REGULAR_MODES = (0o100644, 0o100755)
_FOLDER_MODE = 0o40000
MAX_OBJECT = {b"commit": 2**20, b"tree": 32 * 2**20, b"blob": 16 * 2**20}
"""Limits for objects read as a whole; compressed they may have been a thousandth of that."""


class GitReader:
    """Reads the objects of one repository; `limit_s` limits each process started for one question."""

    def __init__(self, git: Git, limit_s: float) -> None:
        self._git = git
        self._limit_s = limit_s
        self._contents = Helper(git, ("cat-file", "--batch"))
        self._headers = Helper(git, ("cat-file", "--batch-check"))
        self._listings: dict[str, tuple[Entry, ...]] = {}

    def commit(self, oid: str) -> Commit:
        return git_objects.parse_commit(oid, self.commit_object(oid))

    def commit_object(self, oid: str) -> bytes:
        (found,) = self.commit_objects([oid]).values()
        return found

    def commit_objects(self, oids: Sequence[str]) -> Mapping[str, bytes]:
        """The same for several, in order, in one round."""
        return self._read_objects([git_names.full_oid(oid) for oid in oids], b"commit")

    def log(self, oid: str, limit: int) -> Sequence[Commit]:
        return first_parents(self.commit, oid, limit)

    def parent(self, oid: str) -> str | None:
        own, line = self._headers.ask(_lines([git_names.full_oid(oid), f"{oid}^1"]), _line_reader(2))
        _header(own, b"commit")
        return None if line.endswith(b" missing") else git_names.full_oid(line.split(b" ")[0].decode("ascii"))

    def is_ancestor(self, old: str, new: str) -> bool:
        args = ["merge-base", "--is-ancestor", git_names.full_oid(old), git_names.full_oid(new)]
        done = self._git.run(args, self._limit_s)
        if done.code not in (0, 1):
            raise Fault(f"git merge-base failed (exit {done.code}): {done.error}", "CorruptObjects")
        return done.code == 0

    def merge_bases(self, one: str, other: str) -> Sequence[str]:
        args = ["merge-base", "--all", git_names.full_oid(one), git_names.full_oid(other)]
        done = self._git.run(args, min(self._limit_s, _WALK_S))
        if done.code not in (0, 1):
            raise Fault(f"git merge-base failed (exit {done.code}): {done.error}", "CorruptObjects")
        return sorted(map(git_names.full_oid, done.output.decode("ascii").split()))

    def last_change(self, commit: str, path: str) -> str | None:
        literal = f":(top,literal){git_names.tree_path(path)}"
        args = ["rev-list", "-1", "--first-parent", git_names.full_oid(commit), "--", literal]
        found = self._git.check(args, self._limit_s).decode("ascii").strip()
        return found or None

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        if old is not None:
            return differing(self._trees, self.tree_of(old), self.tree_of(new))
        return self._listing(self.tree_of(new))

    def _listing(self, tree: str) -> Sequence[Entry]:
        """All files of a tree, cached: a starting process asks for the same several times."""
        known = self._listings.get(tree)
        if known is None:
            known = tuple(differing(self._trees, None, tree))
            self._listings = dict([*self._listings.items(), (tree, known)][-_LISTINGS:])
        return list(known)

    def _trees(self, oids: Sequence[str]) -> Mapping[str, bytes]:
        return self._read_objects(oids, b"tree")

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for portion in _portions(map(git_names.full_oid, oids)):
            lines = self._headers.ask(_lines(portion), _line_reader(len(portion)))
            for oid, line in zip(portion, lines, strict=True):
                found[oid] = _header(line, None)
        return found

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        return self._read_objects([git_names.full_oid(oid) for oid in oids], b"blob")

    def read_path(self, commit: str, path: str) -> bytes | None:
        """None also for anything but a plain file (a symlink, a folder)."""
        *folders, name = git_names.tree_path(path).split("/")
        tree = self.tree_of(commit)
        # Step by step: git's own `commit:path` does not distinguish a lost tree from a missing one.
        for folder in folders:
            inside = self._entry(tree, folder)
            if inside is None or inside.mode != _FOLDER_MODE:
                return None
            tree = inside.oid
        found = self._entry(tree, name)
        is_file = found is not None and found.mode in _REGULAR_MODES
        return self.read([found.oid])[found.oid] if found is not None and is_file else None

    def _entry(self, tree: str, name: str) -> git_objects.TreeEntry | None:
        return next((e for e in git_objects.parse_tree(self._trees([tree])[tree]) if e.name == name), None)

    def tree_of(self, commit: str) -> str:
        line = self._headers.ask(_lines([f"{git_names.full_oid(commit)}^{{tree}}"]), read_line)
        _header(line, b"tree")
        return line.split(b" ")[0].decode("ascii")

    def tips(self, refs: Mapping[str, str]) -> dict[str, str]:
        """The commits of refs, by the given names; missing ones and non-commits are left out."""
        found: dict[str, str] = {}
        for portion in _portions(refs):
            lines = self._headers.ask(_lines(refs[name] for name in portion), _line_reader(len(portion)))
            for name, line in zip(portion, lines, strict=True):
                oid, _, about = line.partition(b" ")
                if about.startswith(b"commit "):
                    found[name] = oid.decode("ascii")
        return found

    def close(self) -> None:
        """Ends the helpers; the next question starts new ones."""
        for helper in (self._contents, self._headers):
            helper.close()

    def _read_objects(self, oids: Sequence[str], kind: bytes) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for portion in _portions(oids):
            bodies = self._contents.ask(_lines(portion), _body_reader(len(portion), kind))
            found.update(zip(portion, bodies, strict=True))
        return found


def _portions(words: Iterable[str]) -> Iterable[list[str]]:
    every = list(dict.fromkeys(words))
    for start in range(0, len(every), _PORTION):
        yield every[start : start + _PORTION]


def _lines(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode("utf-8", "surrogateescape")


def _line_reader(count: int) -> Callable[[BinaryIO], list[bytes]]:
    return lambda output: [read_line(output) for _ in range(count)]


def _body_reader(count: int, kind: bytes) -> Callable[[BinaryIO], list[bytes]]:
    return lambda output: [_read_body(output, kind) for _ in range(count)]


def _read_body(output: BinaryIO, kind: bytes) -> bytes:
    return read_exactly(output, _small(_header(read_line(output), kind), kind) + 1)[:-1]


def _small(size: int, kind: bytes) -> int:
    """The size, if an object of this size may be read."""
    if size > MAX_OBJECT[kind]:
        what = f"a {kind.decode('ascii')} of {size} bytes"
        raise Fault(
            f"{what} is too large, at most {MAX_OBJECT[kind]} bytes are read; rewrite the branch", "TooLarge"
        )
    return size


def _header(line: bytes, kind: bytes | None) -> int:
    """The size in a header; a missing object, or one of another kind, is a fault."""
    words = line.rsplit(b" ", 2)
    if len(words) != 3 or (kind is not None and words[1] != kind) or not words[2].isdigit():
        what = line[:80].decode("ascii", "replace")
        wanted = (kind or b"object").decode("ascii")
        raise Fault(
            f"the mirror has no such {wanted} ({what}); fetch the branch that contains it", "CorruptObjects"
        )
    return int(words[2])
