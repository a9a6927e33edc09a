"""One call to the server, as a script: token, retries, and the meaning of the answer.

  * The token is fetched when there is none or it is about to expire, and once more on a 401: never for every call.
  * A call is retried if that is harmless: the server never got it, or it reads, or it writes under an Idempotency-Key,
    which every write carries. A `once` call, whose answer holds a secret, is retried only if the server never got it.
  * The server's messages are never lost: they become warnings, or the caller shows them.
  * Pauses grow, are randomised, and are never shorter than a reasonable Retry-After.

Held by tests/egs/test_sdk_calling.py.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from egs import clock
from egs.connection import Connection, Token
from egs.exceptions import ServerMessage, ServerUnreachable, UnhandledException
from egs.refusals import GATEWAY, body_of, login_refusal, refusal, retry_after
from egs.sessions import AuthenticatedSession, get_authenticated_session
from egs.steps import Alone, Answer, Open, Outgoing, Pause, Script, Send, Unreached
from egs.telling import warn

API = "/api/v1"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
NOTHING_TO_SAY = "Success"
"""An envelope's message without any information."""
PATIENT_S = 60.0
"""A longer Retry-After is left to the caller."""
MARGIN_S = 30.0
"""A token is renewed this long before its end, but at most a tenth of its life."""

Retry = Literal["safe", "once"]


@dataclass(frozen=True, slots=True)
class Ask:
    """One call: method, path and content."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    """None values are left out."""
    body: Any = field(default=None, repr=False)
    retry: Retry = "safe"
    """`once`: no retry if the server may have done it already."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The content of an answer."""

    data: Any
    message: str = ""
    """The server's message beside it; empty: none."""


def call(session: AuthenticatedSession | None, ask: Ask) -> Script[Any]:
    """`data` of the answer, as `asked`; the server's message becomes a ServerMessage warning."""
    return (yield from warned(session, ask)).data


def warned(session: AuthenticatedSession | None, ask: Ask) -> Script[Reply]:
    """The same, with the message."""
    return _aloud((yield from asked(session, ask)))


def asked(session: AuthenticatedSession | None, ask: Ask) -> Script[Reply]:
    """The content of the answer; without a session the default one is used.

    Raises the exception of a refusal (`egs.refusals`), ServerUnreachable, or Unauthorized if there is no session.
    """
    connection = get_authenticated_session(session).connection
    answer = yield from exchange(connection, ask)
    if ask.method == "DELETE" and answer.status == 404 and answer.follows_lost:
        return Reply({})  # an earlier try deleted it, and its answer was lost
    return told_in(answer, connection.address)


def data_of(answer: Answer, address: str) -> Any:
    """`data` in the envelope of a success; warns as `call` does."""
    return _aloud(told_in(answer, address)).data


def _aloud(found: Reply) -> Reply:
    if found.message:
        warn(ServerMessage(found.message))
    return found


def told_in(answer: Answer, address: str) -> Reply:
    """The content of a success's envelope."""
    if not 200 <= answer.status < 300:
        raise refusal(answer, address)
    body = body_of(answer)
    if not isinstance(body, dict) or "data" not in body:
        raise UnhandledException(
            "the server's answer has no data; is it an EGS server?", status=answer.status
        )
    message = body.get("message")
    return Reply(body["data"], message if isinstance(message, str) and message != NOTHING_TO_SAY else "")


def exchange(connection: Connection, ask: Ask) -> Script[Answer]:
    """The answer to an authenticated call, success or not."""
    headers = _headers(ask)
    token = yield from standing(connection)
    answer = yield from tried(connection, ask, headers | _bearer(token))
    if answer.status == 401 and connection.credential:
        token = yield Alone(connection, renewed(connection, token))
        answer = yield from tried(connection, ask, headers | _bearer(token))
    return answer


def opened(connection: Connection, ask: Ask, last_id: str) -> Script[Answer]:
    """Open a stream where it broke; the caller reads its lines. One try: streams have their own retries."""
    headers = {"accept": "text/event-stream"} | ({"last-event-id": last_id} if last_id else {})
    token = yield from standing(connection)
    answer: Answer = yield Open(connection, _outgoing(ask, headers | _bearer(token)))
    if answer.status == 401 and connection.credential:
        token = yield Alone(connection, renewed(connection, token))
        answer = yield Open(connection, _outgoing(ask, headers | _bearer(token)))
    return answer


def standing(connection: Connection) -> Script[Token]:
    """A currently valid token."""
    token = connection.token
    if token is not None and clock.monotonic_s() < token.until_s:
        return token
    result: Token = yield Alone(connection, renewed(connection, token))
    return result


def renewed(connection: Connection, stale: Token | None) -> Script[Token]:
    """A token other than `stale`; another thread may have renewed it meanwhile."""
    if connection.token is not None and connection.token is not stale:
        return connection.token
    if not connection.credential:
        assert connection.token is not None
        return connection.token
    yield from logged_in(connection)
    assert connection.token is not None
    return connection.token


def logged_in(connection: Connection) -> Script[Mapping[str, Any]]:
    """Exchange the credential for a token and keep it; returns the server's data about the caller."""
    ask = Ask("POST", f"{API}/auth", body=dict(connection.credential))
    answer = yield from tried(connection, ask, {"accept": "application/json"})
    if not 200 <= answer.status < 300:
        raise login_refusal(answer, connection.address)
    data = data_of(answer, connection.address)
    if not isinstance(data, dict) or not isinstance(data.get("token"), str):
        raise UnhandledException("the server gave no token; is it an EGS server?", status=answer.status)
    life_s = lifetime_s(data.get("expiresAt"), answer, clock.now())
    until_s = clock.monotonic_s() + life_s - min(MARGIN_S, life_s / 10)
    connection.token = Token(data["token"], until_s)
    return data


def lifetime_s(expires: Any, answer: Answer, now: datetime) -> float:
    """How long a token is valid by the server's own clock (its Date), so that ours may be wrong."""
    if not isinstance(expires, str):
        return math.inf  # the server will answer 401 when it has ended
    try:
        told = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        told = now
    life_s = (datetime.fromisoformat(expires) - told).total_seconds()
    # A token that has expired on arrival shows that the clocks cannot be compared.
    return life_s if life_s > 0 else math.inf


def tried(connection: Connection, ask: Ask, headers: Mapping[str, str]) -> Script[Answer]:
    """Send until an answer comes that a retry would not improve, or the tries are used up."""
    outgoing, most, was_lost = _outgoing(ask, headers), connection.patience.attempts, False
    for attempt in range(1, most + 1):
        try:
            answer: Answer = yield Send(connection, outgoing)
        except Unreached as fault:
            if attempt == most or (fault.sent and ask.retry == "once"):
                raise ServerUnreachable(
                    connection.address, f"no answer from {connection.address}: {fault.why}"
                ) from fault.__cause__
            was_lost |= fault.sent
            yield Pause(backoff_s(attempt, clock.share()))
            continue
        wait_s = pause_s(ask, answer, attempt, clock.share())
        if attempt == most or wait_s is None:
            return replace(answer, follows_lost=was_lost)
        yield Pause(wait_s)
    raise AssertionError("the last attempt returns or raises")


def pause_s(ask: Ask, answer: Answer, attempt: int, share: float) -> float | None:
    """Seconds to wait before a retry; None: this answer is final."""
    is_busy = answer.status == 429
    if not is_busy and (answer.status not in GATEWAY or ask.retry == "once"):
        return None
    asked = retry_after(answer) or 0.0
    return None if asked > PATIENT_S else asked + backoff_s(attempt, share)


def backoff_s(attempt: int, share: float) -> float:
    """Between half and all of a pause that doubles with each attempt; `share` in [0, 1) is the random part."""
    whole = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempt - 1))
    return float(whole * (1 + share) / 2)


def _headers(ask: Ask) -> dict[str, str]:
    headers = {"accept": "application/json"}
    return headers if ask.method == "GET" else headers | {"idempotency-key": str(uuid.uuid4())}


def _bearer(token: Token) -> dict[str, str]:
    return {"authorization": f"Bearer {token.text}"}


def _outgoing(ask: Ask, headers: Mapping[str, str]) -> Outgoing:
    params = {name: str(value) for name, value in ask.params.items() if value is not None}
    return Outgoing(ask.method, ask.path, headers, params, ask.body)
