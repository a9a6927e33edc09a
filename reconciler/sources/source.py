"""Where a command reads and writes: a folder, a work tree, a bare repository or a URL, all behind one
`Source`.

`--repo` decides which. A folder's documents are its present files; the status comes from the controller's
branch, at the remote `origin` if there is one. A plain folder has no status.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from reconciler.sources.command_errors import NotAllowed, WrongUse
from reconciler.status.tree import Loaded
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.remote_address import is_remote
from reconciler.store.store_port import Contents, Outcome, Person, Store
from schemas.errors import UserError
from schemas.rules.check import File

MAIN = "main"
STATUS = "egs/status"

Changes = Mapping[str, bytes | None]
"""New contents by path; None deletes the file."""


class Source(Protocol):
    """One repository, open for reading; documents are read from `store`, at its commits."""

    cache: DocumentCache

    @property
    def store(self) -> Store:
        """The store with the documents' commits."""

    @property
    def is_folder(self) -> bool:
        """True if changes are files that the person has to commit."""

    @property
    def is_worktree(self) -> bool:
        """True if that folder is a Git work tree."""

    def commit_of(self, ref: str | None) -> str:
        """The commit, in `store`, of a branch or commit; None: the present state (of a repository: main)."""

    def contents(self, ref: str | None) -> tuple[Contents, str]:
        """Where to read the documents of `commit_of` most cheaply, and the commit there."""

    def shown(self, ref: str | None) -> str | None:
        """The commit's id for display; None for a folder's present files."""

    def files(self, ref: str | None) -> list[File]:
        """Every file that is a document or in a document's place."""

    def loaded(self, now: datetime) -> Loaded | None:
        """The last written status; None without a status."""

    def note(self, notes: Mapping[str, str]) -> None:
        """Caches notes on files for the next command; see `reconciler.documents.unread_files`."""

    def status(self) -> tuple[Store, str] | None:
        """The store and head of the status branch."""

    def author(self, given: str | None) -> Person:
        """The author: as given, else as git is configured."""

    def publish(self, changes: Changes, commit: str, base: str) -> Outcome:
        """Applies the changes: as files of a folder, or as `commit` on main if its head is still `base`."""

    def upstream(self) -> Remote | None:
        """Where changes are pushed: this repository itself, or a work tree's origin; None: nowhere."""


class Remote(Source, Protocol):
    """A source that can be pushed to."""

    @property
    def address(self) -> str:
        """Path or URL as given; never shown."""

    def signed(self, commit: str) -> str:
        """The commit with the person's signature, if git has a key to sign with."""

    def refusal(self) -> str:
        """The server's message for the last refused push; empty: none."""

    def push_new(self, branch: str, commit: str) -> Outcome:
        """Pushes the commit as a new branch; Conflict: the branch exists."""


@contextlib.contextmanager
def opened(repo: str | None) -> Iterator[Source]:
    """The source given by `--repo` (or EGS_REPO, or the current folder); closed at the end."""
    given = repo or os.environ.get("EGS_REPO")
    with contextlib.ExitStack() as stack:
        try:
            yield _open(given, stack)
        except UserError as error:
            if error.reason in {"UnsupportedRemote", "BadCredentials", "BadBranch", "BadObjectId", "BadPath"}:
                raise WrongUse(str(error), error.reason) from error
            raise


def _open(given: str | None, stack: contextlib.ExitStack) -> Source:
    from reconciler.sources.bare_repository import Bare
    from reconciler.sources.folder import Folder
    from reconciler.sources.work_tree import WorkTree

    if given is not None and is_remote(given):
        return stack.enter_context(Bare.opened(given))
    folder = _root(Path.cwd()) if given is None else Path(given).expanduser()
    if not folder.is_dir():
        # A mistyped address may contain a password.
        shown = "what --repo names" if "@" in str(given) else str(given)
        raise WrongUse(f"{shown} is neither a folder nor a URL; give the repository with --repo PATH|URL")
    if is_bare(folder):
        return stack.enter_context(Bare.opened(str(folder)))
    tree = WorkTree(folder.resolve()) if (folder / ".git").exists() else None
    return stack.enter_context(Folder.opened(folder.resolve(), tree))


def _root(start: Path) -> Path:
    """The repository around the current folder; that folder itself if there is none."""
    for folder in (start, *start.parents):
        if (folder / "project.yaml").is_file() or (folder / ".git").exists() or is_bare(folder):
            return folder
    return start


def is_bare(folder: Path) -> bool:
    """True if the folder is a bare repository."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def no_main() -> UserError:
    """For a repository without any push yet."""
    return NotAllowed(
        f"the repository has no branch {MAIN}; create the first files with `egs init` and push them"
    )
