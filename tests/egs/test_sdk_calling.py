"""One call: when it logs in, what is tried again, how long it pauses, and what goes with it. A7, B7."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egs import calling
from egs.calling import Ask, backoff_s, call, lifetime_s
from egs.exceptions import (
    EgsApplicationException,
    ResourceNotFound,
    ServerMessage,
    ServerUnreachable,
    Unauthorized,
    UnhandledException,
)
from egs.steps import Answer, Unreached
from tests.support.profile import law
from tests.support.sdk import TOKEN, Played, connection, played, refused, said, session

READ = Ask("GET", "/api/v1/gpr")
WRITE = Ask("POST", "/api/v1/gpr", body={"gprName": "train"})
SECRET = Ask("POST", "/api/v1/api-key", retry="once")
LOGIN, GET, POST = ("POST", "/api/v1/auth"), ("GET", "/api/v1/gpr"), ("POST", "/api/v1/gpr")
LOST, REFUSED = Unreached("ReadTimeout", sent=True), Unreached("ConnectError", sent=False)


def test_the_token_is_got_once_for_many_calls():
    who = session()
    first = played(call(who, READ), [TOKEN, said(200, 1)])
    second = played(call(who, READ), [said(200, 2)])
    assert (first.sent, first.result, second.sent, second.result) == ([LOGIN, GET], 1, [GET], 2)


def test_a_token_that_is_about_to_end_is_renewed_before_the_call(monkeypatch):
    who, instant = session(), [1000.0]
    monkeypatch.setattr(calling.clock, "monotonic_s", lambda: instant[0])
    hour = said(
        200, {"token": "t", "expiresAt": "2026-01-01T01:00:00Z"}, date="Thu, 01 Jan 2026 00:00:00 GMT"
    )
    played(call(who, READ), [hour, said(200)])
    instant[0] += 3569
    assert played(call(who, READ), [said(200)]).sent == [GET]
    instant[0] += 2
    assert played(call(who, READ), [hour, said(200)]).sent == [LOGIN, GET]


def test_what_the_server_says_beside_an_answer_is_a_warning_at_the_line_that_asked():
    beside = Answer(200, {}, '{"data": 7, "message": "priority 999 was set to 300"}')
    with pytest.warns(ServerMessage, match="was set to 300") as told:
        assert played(call(session(), WRITE), [TOKEN, beside]).result == 7
    assert issubclass(ServerMessage, UserWarning)
    assert told[0].filename.endswith("tests/support/sdk.py")  # which carries the script out


@pytest.mark.parametrize("message", ['"Success"', '""', "null", "3"])
def test_of_nothing_to_say_nothing_is_said(message, recwarn):
    answer = Answer(200, {}, f'{{"data": 7, "message": {message}}}')
    assert played(call(session(), READ), [TOKEN, answer]).result == 7
    assert list(recwarn) == []


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param(
            [TOKEN, refused(401), TOKEN, said(200, 7)],
            [LOGIN, GET, LOGIN, GET],
            id="one 401 renews the token",
        ),
        pytest.param(
            [TOKEN, refused(401), TOKEN, refused(401)],
            [LOGIN, GET, LOGIN, GET],
            id="a second one is the answer",
        ),
    ],
)
def test_a_401(answers, want):
    log = Played()
    with nullcontext() if answers[-1].status == 200 else pytest.raises(Unauthorized):
        played(call(session(), READ), answers, log)
    assert log.sent == want


def test_a_token_that_somebody_else_renewed_meanwhile_is_taken():
    who = session()
    played(call(who, READ), [TOKEN, said(200)])
    stale = who.connection.token
    played(calling.renewed(who.connection, stale), [TOKEN])
    assert played(calling.renewed(who.connection, stale), []).sent == []
    assert who.connection.token is not stale


@pytest.mark.parametrize(
    ("ask", "answers", "tries"),
    [
        pytest.param(READ, [LOST, said(200)], 2, id="a read whose answer was lost"),
        pytest.param(WRITE, [LOST, said(200)], 2, id="a write whose answer was lost, by its idempotency key"),
        pytest.param(SECRET, [REFUSED, said(200)], 2, id="a secret that cannot have been made"),
        pytest.param(READ, [refused(503), refused(502), said(200)], 3, id="a server that is not ready"),
        pytest.param(WRITE, [refused(429, retry_after="2"), said(200)], 2, id="too many requests"),
    ],
)
def test_what_is_tried_again(ask, answers, tries):
    who = session()
    log = played(call(who, ask), [TOKEN, *answers])
    assert len(log.sent) - 1 == tries
    keys = {
        step.outgoing.headers.get("idempotency-key") for step in log.steps if hasattr(step, "outgoing")
    } - {None}
    assert len(keys) == (0 if ask is READ else 1)  # of a write, the same at every try


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        pytest.param(SECRET, LOST, id="a secret that may have been made"),
        pytest.param(SECRET, refused(503), id="a secret, when a gateway answers"),
        pytest.param(READ, refused(500), id="a server that broke"),
        pytest.param(READ, refused(429, retry_after="3600"), id="a pause longer than anybody waits"),
    ],
)
def test_what_is_not_tried_again(ask, answer):
    log = Played()
    with pytest.raises(EgsApplicationException):
        played(call(session(), ask), [TOKEN, answer, said(200)], log)
    assert len(log.sent) == 2


@pytest.mark.parametrize(
    ("first", "is_done"),
    [
        pytest.param(LOST, True, id="it may have landed"),
        pytest.param(REFUSED, False, id="it cannot have landed"),
    ],
)
def test_a_deletion_whose_answer_was_lost_finds_nothing_the_second_time(first, is_done):
    gone = [TOKEN, first, refused(404)]
    with nullcontext() if is_done else pytest.raises(ResourceNotFound):
        played(call(session(), Ask("DELETE", "/api/v1/gpr")), gone)


def test_patience_ends_with_the_address_and_the_reason():
    made = connection(attempts=3)
    log = Played()
    with pytest.raises(ServerUnreachable, match=r"https://egs\.example\.com.*ConnectError") as caught:
        played(call(session(made), READ), [REFUSED] * 9, log)
    assert caught.value.address == "https://egs.example.com"
    assert len(log.sent) == 3
    assert len(log.pauses) == 2


def test_a_retry_after_is_waited_for():
    log = played(call(session(), READ), [TOKEN, refused(429, retry_after="7"), said(200)])
    assert 7 <= log.pauses[0] < 8


@law(200)
@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_a_pause_is_never_longer_than_five_seconds_nor_shorter_than_a_tenth(attempt, share):
    assert 0.1 <= backoff_s(attempt, share) <= 5.0
    assert backoff_s(attempt, share) <= 2 * backoff_s(attempt, 0)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expires", "date", "want"),
    [
        pytest.param(
            "2026-01-01T01:00:00Z", "Thu, 01 Jan 2026 00:30:00 GMT", 1800, id="by the server's own clock"
        ),
        pytest.param("2026-01-01T01:00:00Z", "", 3600, id="by ours where it does not tell its"),
        pytest.param(
            "2025-01-01T01:00:00Z", "", float("inf"), id="clocks that cannot be compared: until a 401"
        ),
        pytest.param(None, "", float("inf"), id="a token without an end"),
    ],
)
def test_how_long_a_token_lives(expires, date, want):
    assert lifetime_s(expires, Answer(200, {"date": date} if date else {}, ""), NOW) == want


@pytest.mark.parametrize(
    "answer",
    [said(200, "<html>"), said(200, '{"no": "data"}'), said(200, "[1]")],
    ids=["no JSON", "no envelope", "a list"],
)
def test_an_answer_that_is_none_of_an_egs_server(answer):
    with pytest.raises(UnhandledException, match="is it an EGS server"):
        played(call(session(), READ), [TOKEN, answer])


def test_what_goes_with_a_call():
    log = played(call(session(), WRITE), [TOKEN, said(200)])
    headers = log.steps[-1].outgoing.headers
    assert headers["authorization"] == "Bearer t-1"
    assert len(headers["idempotency-key"]) == 36
    assert "t-1" not in repr(log.steps[-1])
