"""A change of some files, how it is to reach main, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reconciler.forges.forge_port import Pull
from reconciler.queries.state import State
from reconciler.sources.command_errors import WrongUse
from reconciler.sources.source import Changes, Source
from schemas.documents.project import ProjectSpec


@dataclass(frozen=True, slots=True)
class Means:
    """Where a change goes, who makes it, and how it reaches main."""

    repo: str | None = None
    author: str | None = None
    as_pull: bool | None = None
    """True: as a pull request; False: straight to main; None: not given."""
    by_default: Literal["push", "pull-request"] | None = None
    """How this kind of change goes if `as_pull` is None; None: as the project says."""

    def asks(self, project: ProjectSpec) -> bool:
        if self.as_pull is not None:
            return self.as_pull
        return (self.by_default or project.changes) == "pull-request"

    def aimed(self, source: Source) -> Source:
        """Where the change is made: in the folder, unless the person chose how to push it."""
        if self.as_pull is None or not source.is_folder:
            return source
        remote = source.upstream()
        if remote is None:
            raise WrongUse("this folder has no repository to push to; leave --pull-request and --push out")
        return remote


AS_USUAL = Means()


@dataclass(frozen=True, slots=True)
class Change:
    """The new contents of some files, and the commit's subject."""

    changes: Changes
    subject: str
    branch: str = ""
    """Name below requests/ if it becomes a branch; empty: derived from the subject."""
    text: Callable[[Submitted], str] | None = None
    """The text of a pull request, besides the subject."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A change that is made, the state it was built on, and its commit in `source.store`."""

    change: Change
    before: State
    base: str
    commit: str
    is_pushed: bool = False  # False: it is files of a folder, asks to be merged, or was only tried
    is_worktree: bool = False  # True: the folder has a history that the files can become part of
    asks: bool = False  # it is to become a pull request
    branch: str = ""  # on which it asks to be merged
    pull: Pull | None = None
    link: str = ""  # page of the forge on which a pull request for the branch can be opened

    @property
    def shown(self) -> str | None:
        """The commit's id for people; None while it is only local."""
        return self.commit if self.is_pushed or self.branch else None


Build = Callable[[State, str], Change]
"""From the state and the commit of main it was read from (a name for `source.store`) to the change."""
