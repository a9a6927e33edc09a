"""What a GPR object is told, how proposals go, and what is read of an object (A8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.gpr_objects.object_files import (
    GprObject,
    asked_from,
)
from schemas.status.gpr_status import Assignment, Phase
from tests.support.asked import BO, KEY, PATH, SPEC, asked, edit, file_of, said, status, told, view
from tests.support.world import at, gpr

# -- branches ------------------------------------------------------------------------------------------------


def proposal(thing: GprObject) -> bytes:
    return file_of(thing).encode()


def test_a_proposal_waits_to_be_merged():
    thing = asked()
    found = told(view(thing, via="branch", proposals={KEY: proposal(thing)}))
    assert (found["phase"], found["branch"]) == ("Proposed", "egs/gpr/east/vision/train")


def test_a_branch_that_was_deleted_is_not_made_again():
    thing = asked()
    proposed = told(view(thing, via="branch", proposals={KEY: proposal(thing)}))
    assert said(view(replace(thing, status=proposed), via="branch")) == ("Refused", "NotMerged")


def test_a_changed_object_is_proposed_again():
    thing = asked()
    proposed = told(view(thing, via="branch", proposals={KEY: proposal(thing)}))
    changed = replace(thing, status=proposed, generation=2, spec=SPEC | {"nodes": 2})
    assert edit(view(changed, via="branch")).via == "branch"


def test_a_proposal_whose_object_is_gone_is_withdrawn():
    found = edit(view(via="branch", proposals={KEY: proposal(asked())}, gone=frozenset({KEY})))
    assert (found.via, found.changes) == ("branch", {})


def test_a_proposal_that_main_overtook_is_withdrawn():
    thing = asked(generation=2)
    found = edit(
        view(thing, files={PATH: file_of(thing)}, proposals={KEY: file_of(asked(), nodes=3).encode()})
    )
    assert (found.via, found.changes) == ("branch", {})


def test_withdrawing_never_takes_a_file_of_people():
    files = {PATH: gpr("vision", "train")}
    found = edit(view(files=files, via="branch", proposals={KEY: proposal(asked())}, gone=frozenset({KEY})))
    assert found.changes == {}


# -- statuses ------------------------------------------------------------------------------------------------


def test_the_committed_status_is_mirrored():
    held = Assignment(cluster="east", pool="h100", nodes=("h100-1",))
    running = status(Phase.PROVISIONED, assignment=held, start_time=at(5), end_time=at(65), message="it runs")
    thing = asked()
    found = told(view(thing, files={PATH: file_of(thing)}, statuses={KEY: running}))
    assert found["phase"] == "Provisioned"
    assert found["assignment"] == {"cluster": "east", "pool": "h100", "nodes": ["h100-1"]}
    assert (found["start"], found["end"]) == ("2026-11-21T08:05:00Z", "2026-11-21T09:05:00Z")
    assert (found["message"], found["request"], found["author"]) == ("it runs", KEY, BO)
    assert {c["type"]: c["status"] for c in found["conditions"]} == {
        "Accepted": "True",
        "Provisioned": "True",
    }


def test_a_promise_is_shown_as_the_start():
    thing = asked()
    waiting = status(estimated_start_time=at(30), estimated_end_time=at(30) + timedelta(hours=1))
    found = told(view(thing, files={PATH: file_of(thing)}, statuses={KEY: waiting}))
    assert (found["start"], found["estimatedStartTime"]) == ("2026-11-21T08:30:00Z", "2026-11-21T08:30:00Z")


def test_a_file_that_people_removed_is_not_filed_again():
    thing = asked(status={"filed": True, "phase": "Queued"})
    found = told(view(thing))
    assert (found["phase"], found["reason"]) == ("Cancelled", "FileRemoved")


def test_the_last_word_on_a_finished_request_stays():
    thing = asked(status={"filed": True, "phase": "Completed", "reason": "Ended"})
    found = told(view(thing))
    assert (found["phase"], found["reason"]) == ("Completed", "Ended")


# -- reading objects -----------------------------------------------------------------------------------------


def item(**meta: object) -> dict[str, object]:
    head = {
        "namespace": "vision-train",
        "name": "train",
        "uid": "u",
        "creationTimestamp": "2026-11-21T08:00:00Z",
    }
    return {"metadata": head | meta, "spec": SPEC}


def test_an_object_that_is_being_deleted_is_gone():
    assert asked_from(item(deletionTimestamp="2026-11-21T08:00:00Z")) is None


def test_the_manager_is_who_wrote_the_spec_last():
    entries = [
        {"manager": "argo", "time": "2026-11-21T08:00:00Z", "fieldsV1": {"f:spec": {}}},
        {"manager": "helm", "time": "2026-11-21T09:00:00Z", "fieldsV1": {"f:spec": {}}},
        {"manager": "egs", "time": "2026-11-21T10:00:00Z", "fieldsV1": {"f:status": {}}},
    ]
    found = asked_from(item(managedFields=entries))
    assert found is not None
    assert found.manager == "helm"


@pytest.mark.parametrize(("value", "want"), [("true", True), ("True", False), ("false", False)])
def test_only_true_releases(value, want):
    found = asked_from(item(annotations={"egs.dev/release": value}))
    assert found is not None
    assert found.is_released is want
