"""Streams and waiting as scripts: what is opened again, what is told once, when it ends. D14, A7."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egs.asking.following import has_reached, wait_for, watch, watch_events
from egs.data.gpr import LIFE, OVER, GpuRequestData
from egs.exceptions import PhaseNotReached, ResourceNotFound, ServerUnreachable, Unauthorized
from egs.steps import Open, Unreached
from tests.support.profile import law
from tests.support.sdk import TOKEN, Played, connection, played, refused, said, session

OPENED = said(200, "")
LOST = Unreached("ReadError", sent=True)


def message(phase, id_="c1", request_id="gpr-1", event="gpr"):
    data = json.dumps({"gprId": request_id, "phase": phase})
    return f"id: {id_}\nevent: {event}\ndata: {data}\n\n".encode()


def _phases(log):
    return [request.phase for request in log.given]


def test_it_ends_with_the_request():
    log = played(
        watch("gpr-1", authenticated_session=session()),
        [TOKEN, OPENED, message("Queued"), b": keep-alive\n\n", message("Completed"), message("Queued")],
    )
    assert _phases(log) == ["Queued", "Completed"]


def test_a_workspace_goes_on():
    log = played(
        watch(workspace_name="vision", authenticated_session=session()),
        [TOKEN, OPENED, message("Completed"), message("Queued", request_id="gpr-2")],
    )
    assert _phases(log) == ["Completed", "Queued"]


@pytest.mark.parametrize("end", [None, LOST], ids=["it ended", "it broke"])
def test_it_is_opened_again_where_it_was_and_tells_each_state_once(end):
    answers = [TOKEN, OPENED, message("Queued", "c7"), b"id: c8\ndata: half", end, LOST, OPENED]
    log = played(
        watch("gpr-1", authenticated_session=session()),
        [*answers, message("Queued", "c7"), message("Provisioning", "c9"), message("Failed", "c10")],
    )
    assert _phases(log) == ["Queued", "Provisioning", "Failed"]
    opened = [step.outgoing.headers.get("last-event-id") for step in log.steps if isinstance(step, Open)]
    assert opened == [None, "c7", "c7"]
    assert len(log.pauses) == 2


def test_one_that_is_cancelled_while_the_stream_is_broken():
    """D14: it waited when it was last seen, and its workspace is still there."""
    answers = [TOKEN, OPENED, message("Queued"), None, refused(404), said(200, {"items": [], "next": None})]
    log = played(watch("gpr-1", authenticated_session=session()), answers)
    assert _phases(log) == ["Queued", "Cancelled"]
    assert log.sent[-1] == ("GET", "/api/v1/gpr/list")


@pytest.mark.parametrize(
    ("phase", "answers"),
    [
        pytest.param("Queued", [refused(404)], id="the caller may not see its workspace any more"),
        pytest.param("Provisioned", [], id="it had its nodes"),
    ],
)
def test_what_became_of_it_is_not_guessed(phase, answers):
    with pytest.raises(ResourceNotFound):
        played(
            watch("gpr-1", authenticated_session=session()),
            [TOKEN, OPENED, message(phase), None, refused(404), *answers],
        )


def test_it_is_cancelled_while_it_is_waited_for():
    """D14."""
    seen = said(200, {"gprId": "gpr-1", "sliceName": "vision", "phase": "Queued", "priority": 7})
    gone = [TOKEN, seen, refused(404), said(200, {"items": [], "next": None})]
    ended = played(wait_for("gpr-1", "Cancelled", authenticated_session=session()), gone).result
    assert (ended.phase, ended.status.provisioning_status, ended.priority) == ("Cancelled", "Cancelled", 7)
    with pytest.raises(PhaseNotReached) as told:
        played(wait_for("gpr-1", authenticated_session=session()), gone)
    assert told.value.request == ended


def test_the_server_says_when_to_come_back():
    answers = [TOKEN, OPENED, message("Queued"), b"retry: 2000\n: the server ends\n\n", None, OPENED]
    log = played(watch("gpr-1", authenticated_session=session()), answers)
    assert log.pauses == [2.0]


def test_a_server_that_is_gone_is_given_up():
    log = Played()
    with pytest.raises(ServerUnreachable):
        played(
            watch("gpr-1", authenticated_session=session(connection(attempts=3))),
            [TOKEN, OPENED, message("Queued"), *[LOST] * 9],
            log,
        )
    assert len([step for step in log.steps if isinstance(step, Open)]) == 3


def test_a_right_that_ends_is_told():
    """The stream says `error`; why, the next opening says, after the token was renewed once."""
    log = Played()
    with pytest.raises(Unauthorized):
        played(
            watch("gpr-1", authenticated_session=session()),
            [TOKEN, OPENED, message("Queued"), message("", event="error"), refused(401), TOKEN, refused(401)],
            log,
        )
    assert _phases(log) == ["Queued"]


def test_events():
    log = played(
        watch_events("vision", authenticated_session=session()),
        [TOKEN, OPENED, b'data: {"reason": "GPRQueued"}\n\n'],
    )
    assert [event.reason for event in log.given] == ["GPRQueued"]


PHASES = sorted({*LIFE, *OVER})


@law(100)
@given(st.sampled_from(PHASES), st.sampled_from(PHASES))
def test_waiting_ends_for_every_request_that_is_over(phase, wanted):
    request = GpuRequestData(request_id="gpr-1", phase=phase)
    try:
        reached = has_reached(request, wanted)
    except PhaseNotReached:
        reached = None
    assert reached is not False or phase not in OVER
    if wanted == phase:
        assert reached


@pytest.mark.parametrize("phase", ["Filed", "PendingApproval"], ids=["a server says so", "an older server"])
def test_a_request_that_nobody_has_seen_is_filed_and_no_more(phase):
    request = GpuRequestData(phase=phase, reason="NotSeenYet")
    assert has_reached(request, "Filed")
    assert not has_reached(request, "PendingApproval")
