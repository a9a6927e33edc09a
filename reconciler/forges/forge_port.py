"""What the project needs of a forge, and nothing else. Every answer is read from its API, never from a webhook's body.

Drivers: GitHub, GitLab, Gitea (and Forgejo). Any method may raise `schemas.errors.Fault` (`ForgeUnreachable`,
`ForgeRefused`, `RateLimited`), whose text holds no token; then nothing is known, and nothing counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from schemas.errors import Fault


class RateLimited(Fault):
    """The forge wants to be left alone; no call is made before `until`."""

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


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull request (or merge request)."""

    number: int
    author: Account
    head: str  # commit id of its branch's tip
    base_branch: str
    title: str = ""
    url: str = ""
    state: Literal["open", "merged", "closed"] = "open"
    head_ref: str = ""
    """Ref of the base repository that leads to `head`, also for forks: refs/pull/7/head."""
    merge_commit: str = ""  # what is on the base branch because of it, as the forge says
    merged_by: Account | None = None
    """Who had it merged as it is; None also when they asked for that before somebody pushed, or a bot did it."""
    last_pusher: Account | None = None
    """Who pushed `head`; None: the forge does not tell, or it was not asked (`open_pulls` does not)."""


@dataclass(frozen=True, slots=True)
class Review:
    """Somebody's latest word on a pull request."""

    by: Account
    decision: Literal["approve", "reject", "comment"]
    commit: str  # of the head that was looked at; empty: the forge does not tell
    at: datetime
    id: str
    text: str = ""
    is_dismissed: bool = False


@dataclass(frozen=True, slots=True)
class Committer:
    """Who wrote or committed a commit of a pull request, as far as the forge knows their account."""

    account: int  # 0: the forge knows no account
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
        """Every open pull request of the repository, those from forks too."""

    def reviews(self, number: int) -> Sequence[Review]:
        """The latest word of everybody who reviewed it; dismissed ones are said to be."""

    def committers(self, number: int) -> Sequence[Committer]:
        """Authors and committers of all its commits."""

    def changed_paths(self, number: int) -> Sequence[str]:
        """Files that it changes, against where it left its base branch; of renamed ones both names."""

    def blob_at(self, commit: str, path: str) -> str | None:
        """Git's id of a file's content at a commit; None: no such file."""

    def pusher_of(self, branch: str, commit: str) -> Account | None:
        """Who pushed this commit straight to the branch; None: nobody did, or the forge does not tell.

        To be asked only of commits that came by no pull request. May raise Fault `NotKnownYet`.
        """

    # -- writing ----------------------------------------------------------------------------------------------

    def put_status(self, commit: str, state: CommitState, context: str, description: str, url: str) -> None:
        """A commit status; the same again is no call."""

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """One comment of ours, known by `marker` (a line of it), made or brought up to date; the same is no call."""

    def open_pull(self, branch: str, base: str, title: str, body: str) -> Pull:
        """Open a pull request for a branch that was pushed; the open one, if there is one already."""

    # -- protection -------------------------------------------------------------------------------------------

    def protection(self, branch: str) -> Sequence[str]:
        """What of the protection that docs/security.md asks for is not in force, a sentence each; (): all is."""
