"""What a branch's writer is about to push, and its messages about obstacles. Pure.

Held by tests/reconciler/store/test_branch_writer.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.store.git.git_names import is_branch
from reconciler.store.trailers import Epoch

_NAMES_TOLD = 3


@dataclass(frozen=True, slots=True)
class Work:
    """The effective part of one `write`."""

    changes: Mapping[str, bytes | None]
    files: Mapping[str, str | None]  # the resulting blob ids; None: deleted
    intent: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """A commit of ours that is, or may become, the head."""

    oid: str
    term: int
    files: Mapping[str, str | None]
    epoch: Epoch


def blocked(branch: str, others: Sequence[str]) -> str:
    """The message that the branch cannot exist beside others; Git has no branch `a` beside `a/b`."""
    shown = ", ".join(name if is_branch(name) else ascii(name) for name in others[:_NAMES_TOLD])
    more = f" and {len(others) - _NAMES_TOLD} more" if len(others) > _NAMES_TOLD else ""
    return (
        f"branch {branch}: it was deleted and cannot be created again, because {shown}{more} exists; delete "
        "that branch, and protect egs and egs/** so that only machines create branches there"
    )


def foreign(branch: str, what: str) -> str:
    """The message that the branch has a foreign commit."""
    return (
        f"branch {branch}: {what}; only the controller may push there, so protect the branch. "
        "Its content is written again after the next take-over"
    )
