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
    """One repository, open for reading; documents are read from `store`, at the commits that it names."""

    cache: DocumentCache

    @property
    def store(self) -> Store:
        """Holds the documents' commits."""

    @property
    def is_folder(self) -> bool:
        """True when changes are files that a person has yet to commit."""

    @property
    def is_worktree(self) -> bool:
        """True when that folder is a Git work tree."""

    def commit_of(self, ref: str | None) -> str:
        """The commit, in `store`, of a branch or commit; None: what is there now (of a repository: main)."""

    def contents(self, ref: str | None) -> tuple[Contents, str]:
        """Where the documents of what `commit_of` means are read with the least work, and the commit there."""

    def shown(self, ref: str | None) -> str | None:
        """The commit's id for people; None for files as they lie in a folder."""

    def files(self, ref: str | None) -> list[File]:
        """Every file that is a document or lies where documents do."""

    def loaded(self, now: datetime) -> Loaded | None:
        """The status as last written; None where there is no status."""

    def note(self, notes: Mapping[str, str]) -> None:
        """Keep what is known of files for the next command; see `reconciler.documents.unread_files`."""

    def status(self) -> tuple[Store, str] | None:
        """The store and tip of the status branch."""

    def author(self, given: str | None) -> Person:
        """Who writes: as given, else as git is configured."""

    def publish(self, changes: Changes, commit: str, base: str) -> Outcome:
        """Make the changes true: files of a folder, or `commit` as the tip of main if `base` still is."""

    def upstream(self) -> Remote | None:
        """Where changes are pushed to: this repository itself, of a work tree its origin; None: nowhere."""


class Remote(Source, Protocol):
    """A source that is pushed to."""

    @property
    def address(self) -> str:
        """Path or URL, as it was given; never to be shown."""

    def signed(self, commit: str) -> str:
        """The same commit with the person's signature, if they have a key that git signs with."""

    def refusal(self) -> str:
        """What the server said when it refused the last push; empty: nothing."""

    def push_new(self, branch: str, commit: str) -> Outcome:
        """Push the commit as a branch that is not there yet; Conflict: it is."""


def no_main() -> UserError:
    """Of a repository in which nobody has pushed anything yet."""
    return NotAllowed(
        f"the repository has no branch {MAIN}; `egs init` writes the first files, push them there"
    )
