"""What is said on a forge, and when it need not be said again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from reconciler.forges.port import CommitState

LONGEST_DESCRIPTION = 140
"""Characters of a commit status: what the strictest forge takes."""
LONGEST_COMMENT = 60_000
"""Characters of a comment: what the strictest forge takes, less some."""
CUT_OFF = "\n\n… the rest is left out: the comment would be too long. `egs check-pr` prints all of it."
MOST_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Said:
    """One commit status as it stands."""

    state: CommitState
    description: str
    url: str


@dataclass(slots=True)
class Posted:
    """What this process knows to stand on the forge; the oldest is forgotten first, and then looked up again."""

    statuses: OrderedDict[tuple[str, str], Said] = field(default_factory=OrderedDict)  # by commit, context
    comments: OrderedDict[tuple[int, str], tuple[int, str]] = field(default_factory=OrderedDict)
    """Id and text of our comment, by pull request and marker."""

    def note_status(self, commit: str, context: str, said: Said) -> None:
        """It stands so now."""
        self.statuses[commit, context] = said
        while len(self.statuses) > MOST_KEPT:
            self.statuses.popitem(last=False)

    def note_comment(self, number: int, marker: str, id_: int, body: str) -> None:
        """It stands so now."""
        self.comments[number, marker] = (id_, body)
        while len(self.comments) > MOST_KEPT:
            self.comments.popitem(last=False)


def described(text: str) -> str:
    """A description as every forge takes it."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_DESCRIPTION else line[: LONGEST_DESCRIPTION - 1] + "…"


def commented(body: str) -> str:
    """A comment as every forge takes it."""
    return body if len(body) <= LONGEST_COMMENT else body[: LONGEST_COMMENT - len(CUT_OFF)] + CUT_OFF
