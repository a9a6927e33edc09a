"""Where a change of a form is now: carried to the next page in its address, and said there.

The address is anybody's to write, so only what has the right form is shown, and a link leads only to the repository's
own pages on its forge.

Held by tests/portal/pages/test_landed_change.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from portal.http.context import Changed

DID: Mapping[str, str] = {
    "weights": "The new weights are filed; traffic follows once the versions are ready",
    "file": "Your request is filed",
    "edit": "Your edit is filed",
    "extend": "The extension is asked for; the controller grants it if it delays no promise",
    "release": "The early release is filed; the nodes go back in the controller's next cycle",
    "stop": "The stop is filed; the nodes go back in the controller's next cycle",
    "start": "It is to start again, for the time that is left",
    "cancel": "The request is cancelled",
    "restore": "Its file is restored",
    "move": "The new order is filed",
    "priority": "The new priority is filed",
    "delete-job": "The job is deleted; its objects go in the controller's next cycle",
}
"""What was done, in words."""
WAYS = frozenset({"pushed", "pull-request", "branch", "accepted"})
_LEADS_AWAY = re.compile(r"\.\.|%2e|[\\\s]", re.IGNORECASE)
"""Browsers resolve these: such an address is of another page than it seems."""
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
    url: str = ""
    """The pull request, or where one is opened."""
    did: str = ""
    """What was done, in words; empty: a change."""


def query_of(change: Changed) -> dict[str, str]:
    """For the address of the next page."""
    found = {"way": change.way, "commit": change.commit or "", "branch": change.branch or ""}
    if change.url is not None and change.way == "accepted":
        found["id"] = change.url.rpartition("/")[2]
    elif change.url is not None and change.way != "pushed":
        found["url"] = change.url
    return found


def landed_of(query: Mapping[str, str], home: str = "") -> LandedChange | None:
    """What the address says; None: nothing. `home`: the repository's page on its forge; empty: it has none."""
    way = query.get("way", "")
    if way not in WAYS:
        return None

    def checked(name: str, pattern: re.Pattern[str]) -> str:
        found = query.get(name, "")
        return found if pattern.fullmatch(found) else ""

    url = query.get("url", "")
    return LandedChange(
        way,
        checked("commit", _COMMIT),
        checked("branch", _BRANCH),
        checked("id", _ID),
        url if home and url.startswith(f"{home}/") and not _LEADS_AWAY.search(url) else "",
        DID.get(query.get("did", ""), ""),
    )
