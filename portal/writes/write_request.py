"""Changes on their way to the repository: what the writer is given, and what it answers. Values only.

`portal.writes.writer` carries them out: each change is one commit by its caller, one push takes several, and an answer
means that the push has landed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from portal.identity.callers import Caller, Way
from portal.views.view import View

Changes = Mapping[str, bytes | None]
"""New contents by path; None deletes the file."""


class Tree(Protocol):
    """The files of main when a change is made, including everything written before it."""

    def read(self, path: str) -> bytes | None:
        """A file's content; None: there is none."""

    def last(self, path: str) -> bytes | None:
        """The last valid content of a request's file, now or earlier; None: none. Costs the commits back to it."""

    def below(self, folder: str) -> Sequence[str]:
        """Sorted paths of the files in that folder and its subfolders; `folder` has no trailing `/`."""

    def authors(self, path: str) -> Collection[str]:
        """Addresses of all authors of the file since it was created. Costs the commits back to there."""


Make = Callable[[View, Tree], Changes]
"""From the current state to the files to write. Called again if another push came between; raises ApiError."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A change requested by a caller."""

    caller: Caller
    subject: str
    """First line of the commit message, and title of a pull request."""
    make: Make
    idempotency: str = ""
    """The caller's idempotency key; empty: none. A repeated call with it gets the first answer."""
    must_push: bool = False
    """Push it to main even if the project wants pull requests: idle GPUs cost money."""
    asks: bool = False
    """An admin must merge it, even if the caller is an admin."""


@dataclass(frozen=True, slots=True)
class Landed:
    """Where the change is. With way `accepted` it is not pushed yet: follow it by `id`."""

    way: Way
    commit: str = ""
    branch: str = ""
    url: str = ""
    """Page of the pull request, or where one can be opened; empty: the repository has none."""
    id: str = ""


class Writer(Protocol):
    """Carries out changes, one after the other."""

    async def submit(self, write: WriteRequest) -> Landed:
        """Returns when the push has landed. Raises ApiError: 403, 409 (what changed), 422 (what is invalid), 503."""

    async def known(self, caller: Caller, key: str) -> Landed | None:
        """The first answer to that caller's change under that Idempotency-Key, if it is on main; None: it is not.

        Raises ApiError 409 if the key was used for something else.
        """

    def follow(self, id_: str, caller: Caller) -> Landed | None:
        """The outcome of an accepted change; None: no change of this caller has that id."""
