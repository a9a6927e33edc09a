"""What the client does, as values: a script yields steps, a driver carries them out and sends the answers back.

The scripts know nothing of sockets or event loops, so that `egs` and `egs.aio` are the same scripts under two drivers:
`egs.transport` and `egs.aio.transport`. A step that could not be carried out comes back as `Unreached`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from egs.connection import Connection

T = TypeVar("T")

Script = Generator[Any, Any, T]
"""Yields steps; its return value is the result. Steps are any of the classes below."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    """Holds the token: never shown."""
    params: Mapping[str, str]
    body: Any = field(default=None, repr=False)
    """JSON; None: no body. May hold a key: never shown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    text: str = field(repr=False)
    follows_lost: bool = False
    """An earlier try may have landed: its answer was lost."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send it and wait for the `Answer`."""

    connection: Connection
    outgoing: Outgoing


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Alone(Generic[T]):
    """Carry out the script while nobody else does one `Alone` on this connection; its result comes back."""

    connection: Connection
    script: Script[T]


@dataclass(frozen=True, slots=True)
class Open:
    """Send it and leave the answer's body open; `Answer` comes back, with its text only where it is a refusal."""

    connection: Connection
    outgoing: Outgoing


@dataclass(frozen=True, slots=True)
class NextChunk:
    """The next bytes of the body left open; None comes back at its end."""


@dataclass(frozen=True, slots=True)
class Give(Generic[T]):
    """Hand this to whoever iterates."""

    value: T


Step = Send | Pause | Alone[Any] | Open | NextChunk
Feed = Generator[Step | Give[T], Any, None]
"""Like a script, but yields `Give` for every result."""


class Unreached(Exception):  # noqa: N818 - it is no error yet: often it is tried again
    """No answer came; `sent`: the server may have got the request all the same."""

    def __init__(self, why: str, sent: bool) -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent
