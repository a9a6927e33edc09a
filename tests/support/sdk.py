"""The SDK under test: its two faces as one, and its scripts without any face.

`FACES` are `egs` and `egs.aio`, each as a function that calls a name of it and gives the result, so that one test holds
for both. `played` carries out a script against answers that are given, with no socket and no pause: it gives what the
script returned, and the steps that it wanted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import egs
from egs import aio
from egs.connection import Connection, Patience
from egs.sessions import AuthenticatedSession
from egs.steps import Alone, Answer, Give, Open, Pause, Send, Unreached

URL = "https://egs.example.com"


def blocking(name: str, /, *args: Any, **kwargs: Any) -> Any:
    """A function of `egs`."""
    return getattr(egs, name)(*args, **kwargs)


def awaited(name: str, /, *args: Any, **kwargs: Any) -> Any:
    """The same of `egs.aio`, in an event loop of its own; of a stream, the first value."""

    async def run() -> Any:
        return await getattr(aio, name)(*args, **kwargs)

    return asyncio.run(run())


def first_values(name: str, count: int, *args: Any, **kwargs: Any) -> list[Any]:
    """The first values of a stream of `egs.aio`."""

    async def run() -> list[Any]:
        found = []
        stream = getattr(aio, name)(*args, **kwargs)
        async for value in stream:
            found.append(value)
            if len(found) == count:
                break
        await stream.aclose()
        return found

    return asyncio.run(run())


FACES: dict[str, Callable[..., Any]] = {"egs": blocking, "egs.aio": awaited}


def connection(credential: dict[str, str] | None = None, attempts: int = 5) -> Connection:
    """To a server that is not there."""
    known = {"apiKey": "egs_secret"} if credential is None else credential
    return Connection(URL, known, Patience(attempts=attempts))


def session(made: Connection | None = None) -> AuthenticatedSession:
    """Somebody's, over such a connection."""
    return AuthenticatedSession(URL, "ada@example.com", connection=made or connection())


def said(status: int, body: Any = None, **headers: str) -> Answer:
    """An answer with that data in the envelope, or with that body as it is where it is text."""
    text = body if isinstance(body, str) else json.dumps({"statusCode": status, "data": body})
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, text)


def refused(status: int, key: str = "", message: str = "no", **headers: str) -> Answer:
    """A refusal in the envelope."""
    error = {"errorKey": key, "message": message, "data": {"why": "so"}}
    body = {"statusCode": status, "status": "", "message": message, "data": None, "error": error}
    return said(status, json.dumps(body), x_request_id="r-1", **headers)


TOKEN = said(
    200, {"token": "t-1", "expiresAt": "2999-01-01T00:00:00Z", "email": "ada@example.com", "role": "Owner"}
)


class Played:
    """Steps that a script wanted, and what it came to."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.given: list[Any] = []
        self.result: Any = None

    @property
    def sent(self) -> list[tuple[str, str]]:
        """Method and path of what was sent, in order."""
        return [(s.outgoing.method, s.outgoing.path) for s in self.steps if isinstance(s, Send | Open)]

    @property
    def pauses(self) -> list[float]:
        """The pauses, in seconds."""
        return [step.seconds for step in self.steps if isinstance(step, Pause)]


def played(script: Any, answers: Iterable[Any], log: Played | None = None) -> Played:
    """Carry out a script; an answer that is an exception is thrown. Ends when the answers do."""
    log = log or Played()
    supply = iter(answers)
    try:
        log.result = _carried(script, supply, log)
    except _Enough:
        script.close()
    return log


class _Enough(Exception):  # noqa: N818 - it ends a script, and nothing failed
    """No answer is left."""


def _carried(script: Any, supply: Iterator[Any], log: Played) -> Any:
    reply: Any = None
    try:
        while True:
            step = script.throw(reply) if isinstance(reply, Unreached) else script.send(reply)
            if isinstance(step, Alone):
                reply = _carried(step.script, supply, log)
                continue
            if isinstance(step, Give):
                log.given.append(step.value)
                reply = None
                continue
            log.steps.append(step)
            reply = None if isinstance(step, Pause) else _next(supply)
    except StopIteration as done:
        return done.value


def _next(supply: Iterator[Any]) -> Any:
    for answer in supply:
        return answer
    raise _Enough
