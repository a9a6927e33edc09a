"""What can become of one write to a branch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.store.store_port import Outcome
from reconciler.store.trailers import Stamp


@dataclass(frozen=True, slots=True)
class Written:
    """A push was tried. COMMITTED: `oid` is the head. UNKNOWN: the next call reads the branch and decides."""

    outcome: Outcome
    oid: str | None = None

    @property
    def landed(self) -> bool:
        """True if the branch has the wanted content."""
        return self.outcome is Outcome.COMMITTED


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The branch has this content already; no commit was made."""

    landed = True


@dataclass(frozen=True, slots=True)
class Postponed:
    """The push budget is used up; the same call succeeds at `until`."""

    until: datetime
    landed = False


@dataclass(frozen=True, slots=True)
class NotLeading:
    """This process may not write; `by` is the later term's stamp, or None if `take_over` is needed."""

    by: Stamp | None = None
    landed = False


Result = Written | Unchanged | Postponed | NotLeading


def outcome_of(result: Result) -> str:
    """For a push Committed, Conflict, Refused or Unknown, else Unchanged, Postponed or NotLeading."""
    return result.outcome.value if isinstance(result, Written) else type(result).__name__
