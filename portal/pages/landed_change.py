"""Where a change of a form is now: carried to the next page in its address, and said there.

The address is anybody's to write, so only what has the right form is shown, and nothing of it is a link to elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from portal.http.context import Changed

WAYS = frozenset({"pushed", "pull-request", "branch", "accepted"})
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BRANCH = re.compile(r"requests/[A-Za-z0-9._/-]{1,200}")
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class LandedChange:
    """How far a change has come."""

    way: str
    commit: str = ""
    branch: str = ""
    id: str = ""
    """By which it is followed while it is not pushed."""


def query_of(change: Changed) -> dict[str, str]:
    """For the address of the next page."""
    found = {"way": change.way, "commit": change.commit or "", "branch": change.branch or ""}
    if change.way == "accepted" and change.url is not None:
        found["id"] = change.url.rpartition("/")[2]
    return found


def landed_of(query: Mapping[str, str]) -> LandedChange | None:
    """What the address says; None: nothing."""
    way = query.get("way", "")
    if way not in WAYS:
        return None

    def checked(name: str, pattern: re.Pattern[str]) -> str:
        found = query.get(name, "")
        return found if pattern.fullmatch(found) else ""

    return LandedChange(way, checked("commit", _COMMIT), checked("branch", _BRANCH), checked("id", _ID))
