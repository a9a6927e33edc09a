"""What a forge for tests knows: people, pushes, pull requests and what was said of them; see `tests.support.forge`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

START = datetime(2026, 11, 21, 8, tzinfo=UTC)


@dataclass
class User:
    id: int
    login: str
    is_bot: bool = False

    @property
    def email(self) -> str:
        return f"{self.login}@example.com"


@dataclass
class PushEvent:
    branch: str
    before: str
    after: str
    by: User
    kind: str  # push, force_push, branch_creation, pr_merge
    at: datetime
    commits: list[str]
    fork: User | None = None  # whose fork; None: the repository itself


@dataclass
class Review:
    id: int
    by: User
    state: str  # approve, reject, comment
    commit: str
    at: datetime
    dismissed: bool = False
    text: str = ""


@dataclass
class PullRequest:
    number: int
    author: User
    branch: str
    base: str
    title: str
    body: str
    head: str
    at: datetime
    fork: User | None = None
    fork_is_gone: bool = False
    state: str = "open"  # open, merged, closed
    merge_commit: str = ""
    merge_base: str = ""
    merged_by: User | None = None
    merged_at: datetime | None = None
    auto_merge_by: User | None = None
    reviews: list[Review] = field(default_factory=list)
    timeline: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Comment:
    id: int
    number: int
    by: User
    body: str
    at: datetime
    system: bool = False


@dataclass
class Call:
    method: str
    path: str
    status: int


def stamp(at: datetime | None) -> str | None:
    """As JSON has it."""
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"
