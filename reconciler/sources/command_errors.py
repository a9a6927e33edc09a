"""What a command says when it cannot, or may not, do what it was asked for.

`exit_code` is what the command line ends with; every other error is told apart by who must act.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from schemas.errors import UserError

_LISTED = 8
"""Names that are told where none is near."""


class WrongUse(UserError):  # noqa: N818 - a refusal is an answer
    """The command line makes no sense here."""

    reason = "WrongUse"
    exit_code = 2


class NotFound(UserError):  # noqa: N818 - a refusal is an answer
    """There is nothing of that name; says what is near, or else what there is."""

    reason = "NotFound"
    exit_code = 1

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(name, names, 3, 0.6)
        more = ", …" if len(names) > _LISTED else ""
        # Only one word has a plural that can be made here: `cluster of slice a called` has none.
        things = f"{kind}s here" if kind.isalpha() else "here"
        there = f"{things}: {', '.join(names[:_LISTED])}{more}" if names else "there is none at all"
        hint = f"did you mean {' or '.join(near)}?" if near else there
        super().__init__(f"there is no {kind} {name}; {hint}")


class NotAllowed(UserError):  # noqa: N818 - a refusal is an answer
    """Understood, and the answer is no; the text says what would be possible."""

    reason = "NotAllowed"
    exit_code = 1
