"""A command's refusals; `exit_code` is the command line's. All other errors differ by who must act."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from schemas.errors import UserError

_LISTED = 8
"""Names listed if none is similar."""


class WrongUse(UserError):  # noqa: N818 - a refusal is an answer
    """The command line is invalid."""

    reason = "WrongUse"
    exit_code = 2


class NotFound(UserError):  # noqa: N818 - a refusal is an answer
    """The name does not exist; suggests similar names, or lists the existing ones."""

    reason = "NotFound"
    exit_code = 1

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(name, names, 3, 0.6)
        more = ", …" if len(names) > _LISTED else ""
        # Only a single word gets a plural here: `cluster of slice a called` has none.
        things = f"{kind}s here" if kind.isalpha() else "here"
        there = f"{things}: {', '.join(names[:_LISTED])}{more}" if names else "none exists"
        hint = f"did you mean {' or '.join(near)}?" if near else there
        super().__init__(f"there is no {kind} {name}; {hint}")


class NotAllowed(UserError):  # noqa: N818 - a refusal is an answer
    """Understood, but refused; the text says what would be possible."""

    reason = "NotAllowed"
    exit_code = 1
