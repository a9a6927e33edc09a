"""A repository that a command reads and writes, as a port: a folder, a work tree, a bare repository or a URL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from reconciler.sources.command_errors import NotAllowed
from reconciler.status.tree import Loaded
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Contents, Outcome, Person, Store
from schemas.errors import UserError
from schemas.rules.check import File

MAIN = "main"
STATUS = "egs/status"
PROPOSED = "requests/"
"""Where branches that ask to be merged have their names; machines write below egs/ alone."""

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
        """Every file that is a document or lies where one belongs."""

    def loaded(self, now: datetime) -> Loaded | None:
        """The last written status; None without a status."""

    def skim(self) -> None:
        """From now on `loaded` looks at no finished request, and their files are read only if they changed since."""

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


def no_main() -> UserError:
    return NotAllowed(has_no(MAIN))


def has_no(main: str) -> str:
    return f"the repository has no branch {main}; create the first files with `egs init` and push them"
