"""Follow requests and events as they change.

`watch` is a live stream that is reopened when it breaks, and gives each state once. `wait_for` polls, so its timeout
holds even if a proxy between client and server delays the stream.

Held by tests/egs/test_sdk_following.py.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace
from typing import Any

from egs import clock
from egs.asking.requesting import gpu_request_status
from egs.calling import API, Ask, backoff_s, call, opened
from egs.connection import Connection
from egs.data.gpr import LIFE, OVER, SAME_PHASE, EventRow, GpuRequestData, read_gpr
from egs.data.records import of
from egs.exceptions import BadParameters, PhaseNotReached, ResourceNotFound, ServerUnreachable, WaitTimedOut
from egs.refusals import GATEWAY, refusal, retry_after
from egs.sessions import AuthenticatedSession, get_authenticated_session
from egs.sse import Message, Parser
from egs.steps import Answer, Feed, Give, NextChunk, Pause, Script, Unreached

NOT_SEEN = "NotSeenYet"
"""Reason of a request that the controller has not seen yet; older servers give the phase PendingApproval."""
GONE, GONE_TEXT = "FileGone", "cancelled: its file was deleted"
"""How the server reports a waiting request whose file was deleted."""
FIRST_LOOK_S, SELDOMEST_LOOK_S = 0.25, 5.0
"""A server reads the repository every few seconds; faster polling sees nothing more."""


def wait_for(
    request_id: str,
    phase: str = "Provisioned",
    timeout: float | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[GpuRequestData]:
    """The request once it has reached that phase or a later one; `timeout` in seconds, None: no limit.

    `phase` is one of ours (Queued, Provisioning, Provisioned, Completed, Cancelled, …) or a documented provisioning
    status (Successful, Complete).

    Raises:
        PhaseNotReached: the request ended without reaching it; `.request` is its last state. A waiting request whose
            file was deleted is Cancelled.
        WaitTimedOut: not in time (a TimeoutError); `.request` is its last seen state.
        ResourceNotFound: there is no such request, or the caller may not see it.

    Example:
        >>> egs.wait_for(request_id, "Queued", timeout=60, authenticated_session=auth).phase
        'Queued'
    """
    wanted = SAME_PHASE.get(phase, phase)
    if wanted not in LIFE and wanted not in OVER:
        raise BadParameters(f"there is no phase {phase}; choose from {', '.join(sorted({*LIFE, *OVER}))}")
    until_s = None if timeout is None else clock.monotonic_s() + timeout
    look_s = FIRST_LOOK_S
    request: GpuRequestData | None = None
    while True:
        try:
            request = yield from gpu_request_status(request_id, authenticated_session)
        except ResourceNotFound as error:
            request = yield from _gone(request_id, request, authenticated_session, error)
        if has_reached(request, wanted):
            return request
        left_s = look_s if until_s is None else until_s - clock.monotonic_s()
        if left_s <= 0:
            raise WaitTimedOut(
                f"{request_id} is {request.phase} and not {wanted} after {timeout:g} s; "
                f"egs.why(request_id) says what it waits for",
                request,
            )
        yield Pause(min(left_s, look_s))
        look_s = min(SELDOMEST_LOOK_S, look_s * 1.5)


def _gone(
    request_id: str,
    last: GpuRequestData | None,
    given: AuthenticatedSession | None,
    error: ResourceNotFound,
) -> Script[GpuRequestData]:
    """The last state of a request that no longer exists: cancelled, if it was waiting; else raises `error`.

    `last` is the state seen last; if the request was never seen, events say whether it was cancelled.
    """
    if last is None:
        wanted = {"gpr": request_id, "reason": "GPRCancelled", "limit": 1}
        page = yield from call(given, Ask("GET", f"{API}/events", wanted))
        if not page["items"]:
            raise error
        row = of(EventRow, page["items"][0])
        last = GpuRequestData(
            request_id=request_id, name=row.request, workspace_name=row.request.partition("/")[0]
        )
    elif last.phase in LIFE[:3]:
        wanted = {"sliceName": last.workspace_name, "limit": 1}
        try:  # a caller without access to the workspace sees none of its requests
            yield from call(given, Ask("GET", f"{API}/gpr/list", wanted))
        except ResourceNotFound:
            raise error from None
    else:
        raise error
    status = replace(last.status, provisioning_status="Cancelled")
    return replace(last, phase="Cancelled", reason=GONE, message=GONE_TEXT, status=status)


def has_reached(request: GpuRequestData, wanted: str) -> bool:
    """Whether a request has reached that phase or a later one; raises PhaseNotReached if it never will."""
    if request.reason == NOT_SEEN:
        return wanted == LIFE[0]
    if request.phase == wanted:
        return True
    if wanted in LIFE and request.phase in LIFE:
        return LIFE.index(request.phase) > LIFE.index(wanted)
    if request.phase in OVER:
        told = f": {request.message}" if request.message else ""
        raise PhaseNotReached(
            f"{request.request_id} is {request.phase} and was never {wanted}{told}", request
        )
    return False


def watch(
    request_id: str | None = None,
    workspace_name: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Feed[GpuRequestData]:
    """The state of a request, or of each request of a workspace, now and after every change.

    Ends when the one request is over, also when it is cancelled; for a workspace it continues until the caller stops.
    A broken stream is reopened; raises ServerUnreachable if that fails repeatedly.

    Example:
        >>> for request in egs.watch(request_id, authenticated_session=auth):
        ...     print(request.phase)
        ...     break
        Queued
    """
    if (request_id is None) == (workspace_name is None):
        raise BadParameters("watch needs either request_id or workspace_name")
    if request_id is not None:
        ask = Ask("GET", f"{API}/gpr/watch", {"gprId": request_id})
    else:
        ask = Ask("GET", f"{API}/watch", {"sliceName": workspace_name})
    return _watched(ask, workspace_name is None, authenticated_session)


def _watched(ask: Ask, is_single: bool, given: AuthenticatedSession | None) -> Feed[GpuRequestData]:
    told: dict[str, Any] = {}
    last: GpuRequestData | None = None
    stream = Stream(get_authenticated_session(given).connection, ask)
    while True:
        try:
            message = yield from stream.message()
        except ResourceNotFound as error:
            if not is_single or last is None:
                raise
            # It was cancelled while the stream was broken.
            cancelled = yield from _gone(last.request_id, last, given, error)
            yield Give(cancelled)
            return
        if message.event not in {"gpr", "message"}:
            continue
        data = json.loads(message.data)
        request = read_gpr(data)
        if told.get(request.request_id) == data:
            continue  # a reopened stream begins with the current state
        told[request.request_id] = data
        last = request
        yield Give(request)
        if is_single and request.is_over:
            return


def watch_events(
    workspace_name: str | None = None,
    request_id: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    reason: str | None = None,
) -> Feed[EventRow]:
    """Events from now on, as they happen, until the caller stops. Raises as `watch` does."""
    params = {"slice": workspace_name, "gpr": request_id, "reason": reason}
    session = get_authenticated_session(authenticated_session)
    stream = Stream(session.connection, Ask("GET", f"{API}/events/stream", params))
    while True:
        message = yield from stream.message()
        yield Give(of(EventRow, json.loads(message.data)))


class Stream:
    """A stream of server-sent events that is reopened when it breaks."""

    def __init__(self, connection: Connection, ask: Ask) -> None:
        self._connection = connection
        self._ask = ask
        self._parser = Parser()
        self._ready: deque[Message] = deque()
        self._is_open = False
        self._failures = 0

    def message(self) -> Script[Message]:
        """The next message. Raises ServerUnreachable after repeated failures, or the server's refusal."""
        while not self._ready:
            if not self._is_open:
                yield from self._open()
            try:
                chunk: bytes | None = yield NextChunk()
            except Unreached:
                chunk = None
            self._heard(chunk)
        return self._ready.popleft()

    def _heard(self, chunk: bytes | None) -> None:
        """Some bytes; None: the end. After an `error` event the stream is opened again to get the reason."""
        found = [] if chunk is None else list(self._parser.feed(chunk))
        if chunk is None or any(message.event == "error" for message in found):
            self._broke()
        else:
            self._failures = 0
            self._ready.extend(found)

    def _open(self) -> Script[None]:
        while not self._is_open:
            if self._failures:
                yield Pause(max(self._parser.retry_s, backoff_s(self._failures, clock.share())))
            try:
                answer: Answer = yield from opened(self._connection, self._ask, self._parser.last_id)
            except Unreached as fault:
                self._failed(f"no answer from {self._connection.address}: {fault.why}")
                continue
            if answer.status in GATEWAY or answer.status == 429:
                self._failed(f"{self._connection.address} answers {answer.status}")
                yield Pause(retry_after(answer) or 0.0)
            elif not 200 <= answer.status < 300:
                raise refusal(answer, self._connection.address)
            else:
                self._is_open = True

    def _failed(self, why: str) -> None:
        self._failures += 1
        if self._failures >= self._connection.patience.attempts:
            raise ServerUnreachable(self._connection.address, why)

    def _broke(self) -> None:
        """The stream ended or broke; an incomplete message is dropped, and comes again."""
        self._is_open = False
        self._failed(f"the stream from {self._connection.address} breaks at its start")
        self._parser = Parser(self._parser.last_id, self._parser.retry_s)
