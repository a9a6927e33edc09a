"""What the project needs of a forge, and nothing else.

Drivers: GitHub, GitLab, Gitea (and Forgejo). All data comes from a forge's API, never from a webhook. Any
method may raise `schemas.errors.Fault` (`ForgeUnreachable`, `ForgeRefused`, `RateLimited`), whose text has no
token; then nothing is known, and nothing counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from schemas.errors import Fault


class RateLimited(Fault):
    """The forge's rate limit was reached; no call is made before `until`."""

    reason = "RateLimited"

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


@dataclass(frozen=True, slots=True)
class Account:
    """An account by its number; `is_person` is False for applications and bots."""

    id: int
    login: str
    is_person: bool = True


GHOST = Account(0, "ghost", is_person=False)
"""Stands for deleted accounts."""


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull request (or merge request)."""

    number: int
    author: Account
    head: str  # commit id of its branch's head
    base_branch: str
    title: str = ""
    url: str = ""
    state: Literal["open", "merged", "closed"] = "open"
    head_ref: str = ""
    """Ref of `head` in the base repository, also for forks: refs/pull/7/head."""
    merge_commit: str = ""  # its commit on the base branch, according to the forge
    merged_by: Account | None = None
    """Who merged it as it is; None also for an automatic merge requested before a later push, or a merge by a bot."""
    last_pusher: Account | None = None
    """Who pushed `head`; None: the forge does not say, or it was not queried (`open_pulls` does not)."""


@dataclass(frozen=True, slots=True)
class Review:
    """A person's latest review of a pull request."""

    by: Account
    decision: Literal["approve", "reject", "comment"]
    commit: str  # the head that was reviewed; empty: the forge does not say
    at: datetime
    id: str
    text: str = ""
    is_dismissed: bool = False


@dataclass(frozen=True, slots=True)
class Committer:
    """An author or committer of a pull request's commit, as far as the forge knows the account."""

    account: int  # 0: no known account
    email: str


CommitState = Literal["pending", "success", "failure", "error"]


class Forge(Protocol):
    """One repository on one forge."""

    @property
    def kind(self) -> str:
        """github, gitlab or gitea."""

    # -- reading: evidence ------------------------------------------------------------------------------------

    def pulls_of(self, commit: str) -> Sequence[Pull]:
        """Merged pull requests that brought this commit to their base branch."""

    def pull(self, number: int) -> Pull:
        """One pull request as it is now."""

    def open_pulls(self) -> Sequence[Pull]:
        """Every open pull request of the repository, including those from forks."""

    def reviews(self, number: int) -> Sequence[Review]:
        """Each reviewer's latest review; dismissed ones are marked."""

    def committers(self, number: int) -> Sequence[Committer]:
        """Authors and committers of all its commits."""

    def changed_paths(self, number: int) -> Sequence[str]:
        """Files changed since its merge base; for renamed ones both names."""

    def blob_at(self, commit: str, path: str) -> str | None:
        """Git's blob id of a file at a commit; None: no such file."""

    def pusher_of(self, branch: str, commit: str) -> Account | None:
        """Who pushed this commit directly to the branch; None: a merge did, or the forge does not say.

        Only for commits without a pull request. May raise Fault `NotKnownYet`.
        """

    # -- writing ----------------------------------------------------------------------------------------------

    def put_status(self, commit: str, state: CommitState, context: str, description: str, url: str) -> None:
        """Sets a commit status; an unchanged one costs no call."""

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Creates or updates our comment, identified by its line `marker`; an unchanged one costs no call."""

    def open_pull(self, branch: str, base: str, title: str, body: str) -> Pull:
        """Opens a pull request for a pushed branch; returns the open one if there is one already."""

    # -- protection -------------------------------------------------------------------------------------------

    def protection(self, branch: str) -> Sequence[str]:
        """Which protections required by docs/explain/security.md are missing, a sentence each; (): none."""
