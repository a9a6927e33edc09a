"""A local repository as a read-only store: a person's clone, a CI checkout, a server's bare one.

Nothing is fetched or written. In a receive hook the objects of a push not accepted yet are in quarantine:
`quarantine` takes the variables that point there out of the hook's environment, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reconciler.store.git import git_names
from reconciler.store.git.git_process import Git
from reconciler.store.git.git_reader import GitReader
from reconciler.store.git.mirror import Limits
from reconciler.store.git.remote_address import Address
from reconciler.store.store_port import Commit, Draft, Entry, Outcome
from schemas.errors import UserError

_HEADS, _TRACKING = "refs/heads/", "refs/remotes/origin/"
_QUARANTINE = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH")
_NOWHERE = Path("/nonexistent")
_LIMIT_S = Limits().local.total_seconds()
# Commit names that people and CI use: a name with steps back. No ranges, searches or paths.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+#=-]{0,240}(?:[~^][0-9]{0,4}){0,8}")


def quarantine(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a receive hook's environment that point git to the pushed objects."""
    return {name: environment[name] for name in _QUARANTINE if environment.get(name)}


class LocalStore:
    """`Store` on a git directory (`.git`, or a bare repository). Writing raises UserError `ReadOnly`.

    A bare repository has its own branches. A clone has those of its origin as last fetched, and its own if
    origin has none of that name.
    """

    def __init__(self, git_dir: Path, variables: Mapping[str, str] | None = None) -> None:
        # No protocol at all: a clone that lacks objects must not fetch them silently.
        self._git = Git(git_dir.absolute(), _NOWHERE, Address(str(git_dir), ""), variables=variables)
        self._reader = GitReader(self._git, _LIMIT_S)

    # -- names -----------------------------------------------------------------------------------------------

    def commit_of(self, name: str) -> str | None:
        """The commit with that name (`HEAD~1`, `origin/main`, an id); None: there is none."""
        if not _NAME.fullmatch(name) or ".." in name:
            return None
        done = self._git.run(["rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], _LIMIT_S)
        return git_names.full_oid(done.output.decode("ascii").strip()) if done.code == 0 else None

    def fetch(self, patterns: Sequence[str]) -> Mapping[str, str]:
        return git_names.matching([git_names.branch_pattern(pattern) for pattern in patterns], self.tips())

    def tips(self) -> Mapping[str, str]:
        """Every branch, read now."""
        found: dict[str, str] = {}
        for prefix in self._prefixes():
            args = ["for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", prefix]
            text = self._git.check(args, _LIMIT_S).decode("utf-8", "surrogateescape")
            for oid, kind, ref in (line.split(" ", 2) for line in text.splitlines()):
                if kind == "commit" and ref != f"{_TRACKING}HEAD":  # origin's default branch
                    found[ref.removeprefix(prefix)] = oid
        return found

    def _prefixes(self) -> tuple[str, ...]:
        """Later ones take precedence."""
        # Anyone who may push to a server can create refs below refs/remotes there: they mean nothing.
        is_bare = self._git.check(["rev-parse", "--is-bare-repository"], _LIMIT_S).strip() == b"true"
        return (_HEADS,) if is_bare else (_HEADS, _TRACKING)

    def alarms(self) -> Sequence[str]:
        return ()

    # -- reading ---------------------------------------------------------------------------------------------

    def commit(self, oid: str) -> Commit:
        return self._reader.commit(oid)

    def log(self, oid: str, limit: int) -> Sequence[Commit]:
        return self._reader.log(oid, limit)

    def parent(self, oid: str) -> str | None:
        return self._reader.parent(oid)

    def is_ancestor(self, old: str, new: str) -> bool:
        return self._reader.is_ancestor(old, new)

    def last_change(self, commit: str, path: str) -> str | None:
        return self._reader.last_change(commit, path)

    def keep(self, oid: str) -> bool:
        """True if it is here; nothing is fetched."""
        return self.commit_of(git_names.full_oid(oid)) == oid

    def remember(self, branch: str, oid: str) -> None:
        """Does nothing: nothing is written here."""

    def remembered(self, branch: str) -> str | None:  # noqa: ARG002 - the port's
        return None

    def mended(self) -> Sequence[str]:
        return ()

    def merge_bases(self, one: str, other: str) -> Sequence[str]:
        return self._reader.merge_bases(one, other)

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        return self._reader.diff(old, new)

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        return self._reader.sizes(oids)

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        return self._reader.read(oids)

    def read_path(self, commit: str, path: str) -> bytes | None:
        return self._reader.read_path(commit, path)

    def in_the_way(self, branch: str) -> Sequence[str]:
        return git_names.in_the_way(branch, self.tips())

    # -- not writing -----------------------------------------------------------------------------------------

    def write(self, draft: Draft) -> str:  # noqa: ARG002 - the port's
        raise _read_only()

    def write_all(self, drafts: Sequence[Draft]) -> list[str]:  # noqa: ARG002 - the port's
        raise _read_only()

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:  # noqa: ARG002 - the port's
        raise _read_only()

    def close(self) -> None:
        self._reader.close()


def _read_only() -> UserError:
    return UserError("this repository is read-only here; give its remote's address to write", "ReadOnly")
