"""What commands read from a person's own Git work tree: its root, its commits, and who the person is.

Read-only. git runs isolated with fixed arguments, except for reading the person's own configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reconciler.sources.command_errors import WrongUse
from reconciler.store.git.git_objects import parse_listing
from reconciler.store.git.git_process import Git, as_person
from reconciler.store.git.git_reader import GitReader
from reconciler.store.git.remote_address import Address
from reconciler.store.store_port import REGULAR_MODE, Entry, Person
from schemas.errors import Fault
from schemas.reading.strict_yaml import MAX_BYTES
from schemas.rules.check import File

_LIMIT_S = 60.0
_FILES = (REGULAR_MODE, 0o100755)


class WorkTree:
    """The repository whose work tree is `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._git = Git(git_dir(root), root, Address(str(root), "file"))
        self.reader = GitReader(self._git, _LIMIT_S)
        """Its commits."""

    def commit_of(self, name: str) -> str:
        """The full id of a commit: a branch, a tag, `HEAD~1`, `origin/main`."""
        args = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        done = self._git.run(args, _LIMIT_S)
        if done.code != 0:
            raise WrongUse(f"this repository has no commit {name}; give one of its branches, tags or commits")
        return done.output.decode("ascii").strip()

    def has_branch(self, name: str) -> bool:
        return self._git.run(["show-ref", "--verify", "--quiet", f"refs/heads/{name}"], _LIMIT_S).code == 0

    def origin(self) -> str | None:
        """The address of the remote `origin`, a relative folder made absolute; None without one."""
        done = self._git.run(["config", "--get", "remote.origin.url"], _LIMIT_S)
        url = done.output.decode("utf-8", "replace").strip()
        if done.code != 0 or not url:
            return None
        folder = self.root / url
        return str(folder.resolve()) if "://" not in url and folder.is_dir() else url

    def files(self, commit: str, wanted: Iterable[str]) -> list[File]:
        """The files of a commit below the folders (or with the names) in `wanted`."""
        listing = self._git.check(["ls-tree", "-r", "-z", "--full-tree", commit, "--", *wanted], _LIMIT_S)
        entries = parse_listing(listing)
        contents = self._contents([entry for entry in entries if entry.mode in _FILES])
        return [(entry.path, entry.mode, contents.get(entry.path, b"")) for entry in entries]

    def _contents(self, entries: list[Entry]) -> dict[str, bytes]:
        question = "".join(f"{entry.oid}\n" for entry in entries).encode()
        heads = self._git.check(["cat-file", "--batch-check"], _LIMIT_S, question).splitlines()
        sizes = [int(head.rsplit(b" ", 1)[1]) for head in heads]
        # An oversized file is refused by its size; its content is never read.
        small = [entry for entry, size in zip(entries, sizes, strict=True) if size <= MAX_BYTES]
        found = {entry.path: bytes(MAX_BYTES + 1) for entry in entries}
        question = "".join(f"{entry.oid}\n" for entry in small).encode()
        output, at = self._git.check(["cat-file", "--batch"], _LIMIT_S, question), 0
        for entry in small:
            end = output.index(b"\n", at)
            size = int(output[at:end].rsplit(b" ", 1)[1])
            found[entry.path] = output[end + 1 : end + 1 + size]
            at = end + size + 2
        return found


def git_dir(root: Path) -> Path:
    found = root / ".git"
    return found if found.is_dir() else _linked(found)


def _linked(file: Path) -> Path:
    """The repository of a linked work tree or submodule, whose `.git` is a file with a path."""
    try:
        text = file.read_text()
    except OSError as error:
        raise WrongUse(f"{file} cannot be read: {error.strerror}") from error
    return (file.parent / text.removeprefix("gitdir:").strip()).resolve()


def person(author: str | None, folder: Path) -> Person:
    """The author: `Name <mail>` as given, else as git is configured for that folder."""
    text = author
    if text is None:
        done = as_person(["-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"], folder)
        text = done.output.decode("utf-8", "replace").rpartition(">")[0] + ">" if done.code == 0 else ""
    name, found, mail = text.strip().removesuffix(">").partition(" <")
    if not found or not name or "@" not in mail or set("<>\n") & set(name + mail):
        raise WrongUse("the author is unknown; give --author 'Name <mail>', or set git's user.name")
    return Person(name, mail)


def initialise(folder: Path) -> None:
    """Makes the folder a repository with the branch main, if it is not one."""
    if (folder / ".git").exists():
        return
    done = as_person(["init", "--quiet", "--initial-branch=main", "."], folder)
    if done.code != 0:
        raise Fault(f"git init failed: {done.error}", "GitFailed")
