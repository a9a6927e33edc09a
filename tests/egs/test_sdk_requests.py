"""GPU requests through the SDK, against a real server on loopback over a real repository and controller.

D1, D3, D8, D9, D10, D11, D14, D15, D16, E5, H10, H17, K2; every test for `egs` and for `egs.aio`.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from egs import exceptions
from egs.exceptions import PriorityClamped, ServerMessage
from tests.support.portal import KEYS, Site
from tests.support.sdk import FACES, first_values
from tests.support.world import gpr, gpr_path, slice_

TOMORROW = "2026-11-22T08:00:00Z"
TEN = ("train", "vision", "east", 1, 8, 80, "", "H100-80GB", "0d6h0m", 150)


@pytest.fixture
def site(tmp_path):
    files = {"slices/vision/slice.yaml": slice_("vision", ("east", "west"), quota={"gpus": 16})}
    made = Site(tmp_path, files, poll=timedelta(minutes=10))
    yield made
    made.close()


@pytest.fixture
def url(site):
    with site.server() as address:
        yield address


@pytest.fixture(params=FACES)
def do(request, url):
    """Calls a function of one of the two faces as somebody: `do("name", …)` as bo, an editor of vision."""
    call = FACES[request.param]
    sessions = {}

    def done(name, /, *args, who="bo-editor", **kwargs):
        if who not in sessions:
            sessions[who] = call("authenticate", url, KEYS[who])
        return call(name, *args, authenticated_session=sessions[who], **kwargs)

    return done


def test_a_request_from_its_quote_to_its_cost(do, site):
    quote = do("wait_time", "vision", 1, 8, "6h", gpu_shape="H100-80GB")[0]
    assert (quote.cluster_name, quote.free_nodes, quote.needs_approval) == ("east", 4, False)

    request_id = do("request_gpu", *TEN)
    assert request_id.change.way == "pushed"
    assert do("gpu_request_status", request_id).status.provisioning_status == "Pending"

    site.settle()
    request = do("gpu_request_status", request_id)
    assert request.phase == "Provisioning"
    assert request.status.internal_state == "Reserved"
    assert request.estimated_start_time == quote.estimated_start_time
    assert "their checks run" in str(do("why", request_id))

    site.pass_time(3)
    request = do("wait_for", request_id, "Successful", timeout=0)
    assert request.status.provisioning_status == "Successful"
    assert len(repr(request)) < 650
    assert "\n" not in repr(request)
    assert do("workloads", "vision")[0].nodes[0]["name"] == request.status.nodes[0]

    site.pass_time(400)
    request = do("wait_for", request_id, "Complete", timeout=0)
    assert request.is_over
    assert request.cost == request.status.cost == "120.00 USD"
    assert [row.cost for row in do("usage")] == [120.0]
    (used,) = do("request_usage", "vision")
    assert (used.cost, used.gpu_hours, used.is_running) == (120.0, 48.0, False)
    reasons = [event.reason for event in do("events", request_id=request_id)]
    assert reasons[0] == "GPRCompleted"
    assert {"GPRDuration25", "GPRDuration50", "GPRDuration75"} <= set(reasons)


def test_what_was_filed_is_what_stands(do, site):
    request_id = do("request_gpu", *TEN, "0d0h30m", True, False, True)
    site.settle()
    request = do("gpu_request_status", request_id)
    assert (request.gpr_name, request.workspace_name, request.number_of_gpus) == ("train", "vision", 8)
    assert (request.idle_timeout_duration, request.enforce_idle_timeout) == ("0d0h30m", True)
    assert (request.enable_eviction, request.requeue_on_failure) == (False, True)
    assert do("gpu_request_status_for_workspace", "vision").items == [request]
    assert do("gpu_request_status", request.name) == request


def test_a_priority_of_301_is_300(do):
    with pytest.warns(PriorityClamped):
        request_id = do("request_gpu", *TEN[:9], 301)
    assert do("gpu_request_status", request_id).priority == 300
    do("update_gpu_request_priority", request_id, 300)  # as it is already
    do("update_gpu_request_priority", request_id, 250)
    assert do("update_gpu_request", request_id, priority=250).way == "unchanged"
    with pytest.warns(PriorityClamped):
        do("update_gpu_request_priority", request_id, new_priority=999)
    assert do("gpu_request_status", request_id).priority == 300


def test_what_the_server_says_beside_its_answer_is_told(do):
    with pytest.warns(ServerMessage, match="idleTimeOutDuration was left out") as told:
        do("request_gpu", *TEN, "0d0h30m", False)
    (message,) = [one for one in told if one.category is ServerMessage]
    assert message.filename.endswith(("tests/support/sdk.py", "tests/egs/test_sdk_requests.py"))


def test_what_a_change_would_do(do, site):
    """E4: whom it delays by how much, in a sentence, and nothing is made."""
    site.file("vision/runs", nodes=2, duration="3h", clusters=["east"])
    site.pass_time(5)
    site.file("vision/waits", nodes=2, duration="1h", clusters=["east"])
    site.settle()
    before = site.log()
    found = do("what_if", gpr("vision", "urgent", nodes=2, duration="1h", clusters=["east"], priority=150))
    assert (found.verdict, found.more_moved, found.hidden["later"]) == ("clear", 0, 0)
    ended = do("what_if", changes=[{"do": "end", "gprId": "vision/runs"}])
    (moved,) = ended.moved
    assert (moved.name, moved.change, ended.requests[0]["change"]) == ("waits", "earlier", "released")
    assert str(ended) == f"{ended.summary} vision/waits: {moved.minutes:+} min, room appears."
    deleted = do("what_if", files={gpr_path("vision/waits"): None})
    assert deleted.requests[0]["change"] == "cancelled"
    assert site.log() == before
    with pytest.raises(exceptions.BadParameters, match="at least one change"):
        do("what_if")


def test_a_quote_says_why_there_is_none(do):
    with pytest.warns(ServerMessage) as told:
        quotes = do("wait_time", "vision", 99, 8, "6h")
    said = [str(one.message) for one in told if one.category is ServerMessage]
    assert (quotes, [quotes.message]) == ([], said)
    assert "it fits no pool that it may use: east/h100 has up to 4 nodes" in quotes.message
    assert do("queue").message == ""


def _is_cancelled(do, name):
    """What happened to it."""
    return do("events", request_id=name)[0].reason == "GPRCancelled"


def test_a_waiting_request_is_changed_and_cancelled(do, site):
    request_id = do("request_gpu", *TEN, not_before=TOMORROW)
    site.settle()
    do("update_gpu_request_priority", request_id, 120)
    do("update_gpu_request_name", request_id, "second try")
    assert do("update_gpu_request", request_id, exit_duration=timedelta(hours=2)).way == "pushed"
    site.settle()
    request = do("wait_for", request_id, "Queued", timeout=0)
    assert (request.priority, request.gpr_name, request.exit_duration) == (120, "second try", "0d2h0m")
    do("cancel_gpu_request", request_id)
    site.settle()
    assert _is_cancelled(do, request.name)
    assert do("gpu_request_status", request_id).phase == "Cancelled"
    with pytest.raises(exceptions.GpuAlreadyReleased):
        do("cancel_gpu_request", request_id)
    with pytest.raises(exceptions.GpuAlreadyReleased):
        do("release_gpu", request_id)


def test_one_that_was_cancelled_is_waited_for(do, site):
    request_id = do("request_gpu", *TEN, not_before=TOMORROW)
    site.settle()
    do("cancel_gpu_request", request_id)
    site.settle()
    ended = do("wait_for", request_id, "Cancelled", timeout=60)
    assert (ended.request_id, ended.workspace_name, ended.is_over) == (request_id, "vision", True)
    with pytest.raises(exceptions.PhaseNotReached) as told:
        do("wait_for", request_id, "Provisioned", timeout=60)
    assert told.value.request.status.provisioning_status == "Cancelled"
    assert do("events", request_id=request_id)[0].reason == "GPRCancelled"
    with pytest.raises(exceptions.ResourceNotFound):
        do("wait_for", "gpr-00000000-0000", "Cancelled", timeout=60)


def test_releasing_one_that_waits_cancels_it(do, site):
    request_id = do("request_gpu", *TEN, not_before=TOMORROW)
    site.settle()
    name = do("gpu_request_status", request_id).name
    do("release_gpu", request_id)
    site.settle()
    assert _is_cancelled(do, name)


def test_one_that_gets_its_nodes_unseen_is_cancelled_all_the_same(do, site):
    """The controller has handed them over, and no portal knows it yet."""
    request_id = do("request_gpu", *TEN)
    site.refresh()
    site.controller.cycle(site.now)
    do("cancel_gpu_request", request_id)
    site.settle()
    assert do("gpu_request_status", request_id).phase == "Releasing"


def test_a_file_that_is_gone_under_a_lease_is_restored(do, site):
    request_id = do("request_gpu", *TEN)
    site.pass_time(5)
    name = do("gpu_request_status", request_id).name
    assert do("restore_gpu_request", request_id).way == "unchanged"
    path = "slices/{}/gprs/{}.yaml".format(*name.split("/"))
    before = site.main(path)
    site.commit({path: None})
    site.settle()
    assert do("restore_gpu_request", request_id).way == "pushed"
    assert site.main(path) == before
    site.commit({path: None})
    site.settle()
    do("release_gpu", request_id)
    site.settle()
    assert do("gpu_request_status", request_id).phase == "Releasing"


def test_one_that_holds_nodes_is_released_and_not_cancelled(do, site):
    request_id = do("request_gpu", *TEN)
    site.pass_time(5)
    for name, *more in [
        ("cancel_gpu_request",),
        ("update_gpu_request_priority", 9),
        ("update_gpu_request_name", "x"),
    ]:
        with pytest.raises(exceptions.GpuAlreadyProvisioned):
            do(name, request_id, *more)
    do("release_gpu", request_id)
    site.pass_time(10)
    assert do("gpu_request_status", request_id).early_release
    with pytest.raises(exceptions.GpuAlreadyReleased):
        do("release_gpu", request_id)


def test_grace_is_asked_for(do, site):
    request_id = do("request_gpu", *TEN)
    site.pass_time(5)
    assert do("extend", request_id, timedelta(minutes=10)).way == "pushed"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("gpu_request_status", ("gpr-00000000-0000",)),
        ("cancel_gpu_request", ("gpr-00000000-0000",)),
        ("update_gpu_request_priority", ("gpr-00000000-0000", 3)),
        ("update_gpu_request_name", ("gpr-00000000-0000", "x")),
        ("release_gpu", ("gpr-00000000-0000",)),
        ("wait_for", ("gpr-00000000-0000",)),
        ("gpu_request_status_for_workspace", ("nlp",)),
        ("request_gpu", ("train", "nlp", *TEN[2:])),
    ],
)
def test_what_is_not_there_or_hidden_is_not_found(do, name, args):
    with pytest.raises(exceptions.ResourceNotFound) as caught:
        do(name, *args)
    assert caught.value.status == 404
    assert caught.value.request_id


def test_no_right_and_no_sense_are_told_apart(do):
    with pytest.raises(exceptions.Unauthorized) as caught:
        do("request_gpu", *TEN, who="bo-viewer")
    assert caught.value.status == 403
    with pytest.raises(exceptions.BadParameters, match="exitDuration"):
        do("request_gpu", *TEN[:8], "three hours", 150)
    request_id = do("request_gpu", *TEN)
    with pytest.raises(exceptions.Unauthorized):
        do("approve", request_id)


def test_it_waits_no_longer_than_it_is_told(do):
    request_id = do("request_gpu", *TEN)
    with pytest.raises(exceptions.WaitTimedOut) as caught:
        do("wait_for", request_id, timeout=0)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.request.request_id == request_id
    with pytest.raises(exceptions.BadParameters, match="no phase Running"):
        do("wait_for", request_id, "Running")


def test_an_admin_decides(do, site):
    request_id = do("request_gpu", "big", "vision", "", 4, 8, 0, "", "", "1h", 100)
    site.settle()
    waiting = do("approvals", who="ada-owner")
    assert [row.gpr_id for row in waiting] == [request_id]
    assert waiting[0].reasons == ("QuotaExceeded",)
    with pytest.raises(exceptions.Conflict) as caught:
        do("approve", request_id, "sha256:" + "0" * 64, who="ada-owner")
    assert caught.value.data["specDigest"] == waiting[0].spec_digest
    do("approve", request_id, waiting[0].spec_digest, "the deadline is real", who="ada-owner")
    site.settle()
    assert do("gpu_request_status", request_id).phase == "Provisioning"
    other = do("request_gpu", "big", "vision", "", 4, 8, 0, "", "", "1h", 100)
    site.settle()
    do("reject", other, reason="one is enough", who="ada-owner")
    site.settle()
    with pytest.raises(exceptions.PhaseNotReached) as caught:
        do("wait_for", other)
    assert caught.value.request.phase == "Rejected"


def test_the_queue_in_its_order(do, site):
    ids = [do("request_gpu", *TEN[:9], priority) for priority in (100, 250, 150)]
    site.settle()
    rows = do("queue", "vision")
    assert [row.gpr_id for row in rows] == [ids[2], ids[0]]
    assert rows[0].rank == 1
    assert do("schedule")["requests"]
    whole = do("calendar", hours=24, cluster="east")
    assert {row["cluster"] for row in whole["rows"]} == {"east"}
    assert set(ids) <= {request["gprId"] for request in whole["requests"].values()}
    assert len(do("calendar", None, 24, first=1, rows=2)["rows"]) == 2
    assert "total" in do("insights", 7)
    advice = do("advise", "vision", hours=3, patience="30m", gpu_shapes=["H100-80GB"])
    assert (len(advice["hours"]), advice["patienceSeconds"], advice["method"]) == (3, 1800, "known-needs")


@pytest.mark.parametrize("how", [{"request_id": True}, {"workspace_name": "vision"}])
def test_a_stream_tells_how_it_is_and_each_change(url, site, how):
    import egs

    auth = egs.authenticate(url, KEYS["bo-editor"])
    request_id = egs.request_gpu(*TEN, auth)
    site.settle()
    how = {"request_id": request_id} if "request_id" in how else how
    stream = egs.watch(**how, authenticated_session=auth)
    assert next(stream).phase == "Provisioning"
    site.pass_time(3)
    assert next(stream).phase == "Provisioned"
    stream.close()
    assert first_values("watch", 1, **how, authenticated_session=auth)[0].phase == "Provisioned"


def test_a_stream_of_one_request_ends_with_it(url, site):
    import egs

    auth = egs.authenticate(url, KEYS["bo-editor"])
    request_id = egs.request_gpu(*TEN, auth)
    site.pass_time(500)
    assert [request.phase for request in egs.watch(request_id, authenticated_session=auth)] == ["Completed"]
    assert [
        request.phase for request in first_values("watch", 5, request_id, authenticated_session=auth)
    ] == ["Completed"]
    with pytest.raises(exceptions.BadParameters):
        egs.watch(authenticated_session=auth)


def test_a_stream_ends_with_a_request_that_is_cancelled(url, site):
    """D14: of both faces; the last value is what it was, cancelled."""
    import egs
    from egs import aio

    def cancel(request_id):
        egs.cancel_gpu_request(request_id, auth)
        site.settle()

    async def followed(request_id):
        found = []
        async for request in aio.watch(request_id, authenticated_session=auth):
            if not found:
                cancel(request_id)
            found.append(request)
        return found

    auth = egs.authenticate(url, KEYS["bo-editor"])
    for is_blocking in (True, False):
        request_id = egs.request_gpu(*TEN, auth, not_before=TOMORROW)
        site.settle()
        if is_blocking:
            stream = egs.watch(request_id, authenticated_session=auth)
            found = [next(stream)]
            cancel(request_id)
            found += stream
        else:
            found = asyncio.run(followed(request_id))
        assert [request.phase for request in found] == ["Queued", "Cancelled"]
        assert {request.request_id for request in found} == {request_id}


def test_events_as_they_happen(url, site):
    import egs

    auth = egs.authenticate(url, KEYS["bo-editor"])
    request_id = egs.request_gpu(*TEN, auth)
    site.settle()
    stream = egs.watch_events(request_id=request_id, authenticated_session=auth)
    assert next(stream).reason == "GPRCreated"
    stream.close()
