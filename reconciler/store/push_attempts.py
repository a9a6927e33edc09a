"""What a writer of a branch is about to push, and what it says when somebody is in its way. Pure.

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
    """What one call of `write` asks for, as far as it changes anything."""

    changes: Mapping[str, bytes | None]
    files: Mapping[str, str | None]  # the blob ids that the changes leave; None: gone
    intent: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """A commit of ours that is, or may yet become, the tip."""

    oid: str
    term: int
    files: Mapping[str, str | None]
    epoch: Epoch


def blocked(branch: str, others: Sequence[str]) -> str:
    """That the branch cannot be made beside others; Git has no branch `a` beside `a/b`."""
    shown = ", ".join(name if is_branch(name) else ascii(name) for name in others[:_NAMES_TOLD])
    more = f" and {len(others) - _NAMES_TOLD} more" if len(others) > _NAMES_TOLD else ""
    return (
        f"branch {branch}: it is gone and cannot be made again, as {shown}{more} stands in its way; delete "
        "that branch, and protect egs and egs/** so that only machines make branches there"
    )


def foreign(branch: str, what: str) -> str:
    """That the branch bears what its writer did not put there."""
    return (
        f"branch {branch}: {what}; only the controller may push there, so protect the branch. "
        "Its contents are written anew after the next take-over"
    )
