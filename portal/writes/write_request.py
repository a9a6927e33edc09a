"""Changes on their way to the repository: what is asked of the writer, and what it answers. Values only.

`portal.writes.writer` carries them: each change is one commit by its caller, several go in one push, and an answer
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
    """The files of main as they are when a change is made: with everything that was written before it."""

    def read(self, path: str) -> bytes | None:
        """A file's content; None: there is none."""

    def last(self, path: str) -> bytes | None:
        """The last content of a request's file that reads well, there or before; None: none. Costs the commits back."""

    def below(self, folder: str) -> Sequence[str]:
        """Paths of the files in that folder and in the folders within, sorted; `folder` has no `/` at its end."""

    def authors(self, path: str) -> Collection[str]:
        """Addresses of whoever wrote a part of the file, since it was made. Costs the commits back to there."""


Make = Callable[[View, Tree], Changes]
"""From what is there to the files to write. Called again when somebody else pushed in between; raises ApiError."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A change that somebody asks for."""

    caller: Caller
    subject: str
    """First line of the commit, and title of a pull request."""
    make: Make
    idempotency: str = ""
    """The caller's own name for this very change; empty: none. The same again gives the first answer again."""
    must_push: bool = False
    """Whether it goes straight to main also where the project wants pull requests: idle GPUs cost."""
    asks: bool = False
    """Whether it is for an admin to merge, whoever asks."""


@dataclass(frozen=True, slots=True)
class Landed:
    """Where the change is. With way `accepted` it is nowhere yet: `id` is how to follow it."""

    way: Way
    commit: str = ""
    branch: str = ""
    url: str = ""
    """Page of the pull request, or where one can be opened; empty: the repository has none."""
    id: str = ""


class Writer(Protocol):
    """Carries changes, one after the other."""

    async def submit(self, write: WriteRequest) -> Landed:
        """Returns when the push has landed. Raises ApiError: 403, 409 (what changed), 422 (what is invalid), 503."""

    async def known(self, caller: Caller, key: str) -> Landed | None:
        """The first answer to that caller's change under that Idempotency-Key, where it is on main; None: it is not.

        Raises ApiError 409 where the key was used for something else.
        """

    def follow(self, id_: str, caller: Caller) -> Landed | None:
        """What became of an accepted change; None: nobody of that caller's knows it."""
