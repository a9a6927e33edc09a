"""The client's actions as values: a script yields steps, a driver carries them out and returns the answers.

Scripts know nothing of sockets or event loops, so `egs` and `egs.aio` are the same scripts under two drivers:
`egs.transport` and `egs.aio.transport`. A failed step comes back as `Unreached`.
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
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    text: str = field(repr=False)
    follows_lost: bool = False
    """The answer of an earlier try was lost; that try may have landed."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send it and wait for the `Answer`."""

    connection: Connection
    outgoing: Outgoing


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Alone(Generic[T]):
    """Run the script while no other `Alone` runs on this connection; its result is returned."""

    connection: Connection
    script: Script[T]


@dataclass(frozen=True, slots=True)
class Open:
    """Send it and keep the body of the answer open; returns an `Answer`, with text only for a refusal."""

    connection: Connection
    outgoing: Outgoing


@dataclass(frozen=True, slots=True)
class NextChunk:
    """The next bytes of the open body; None at its end."""


@dataclass(frozen=True, slots=True)
class Give(Generic[T]):
    """Give this value to the caller's iteration."""

    value: T


Step = Send | Pause | Alone[Any] | Open | NextChunk
Feed = Generator[Step | Give[T], Any, None]
"""Like a script, but yields `Give` for every result."""


class Unreached(Exception):  # noqa: N818 - not an error yet: it is often retried
    """No answer came; `sent`: the server may still have got the request."""

    def __init__(self, why: str, sent: bool) -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent
