"""What a GPR object makes of the repository (A8): every case as a row, without a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.clusters.kubernetes.names import AUTHOR
from reconciler.deciding.fold import deletions_digest
from reconciler.gpr_objects.object_changes import door_actions, held_cancellations, orphans
from reconciler.gpr_objects.object_files import (
    FILED_BY,
    GENERATION,
    ORIGIN,
    Edit,
    StatusPatch,
    asked_from,
)
from schemas.documents.gpr import GPR
from schemas.documents.identity import NONCE
from schemas.reading.reader import read_document
from schemas.reading.strict_yaml import load
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import Phase
from tests.support.asked import BO, KEY, PATH, SPEC, asked, edit, file_of, said, status, told, view
from tests.support.world import START, approval, at, gpr, project


def test_an_object_becomes_a_file_of_its_slice():
    found = edit(view(asked()))
    assert found.via == "commit"
    assert (found.author.name, found.author.is_verified) == (BO, True)
    assert list(found.changes) == [PATH]
    data = found.changes[PATH]
    assert data is not None
    assert isinstance(read_document(PATH, data), GPR)
    assert load(data)["spec"] == {"slice": "vision", **SPEC}
    assert load(data)["metadata"]["labels"][ORIGIN] == "east/vision/vision-train/train/uid-vision-train-train"


def test_no_label_of_an_object_reaches_its_file():
    """A8: an object chooses neither its request's id, nor whose it is, nor from which object its file came."""
    meta = {
        "name": "train", "namespace": "vision-train", "uid": "u1", "generation": 3,
        "creationTimestamp": "2026-11-21T08:00:00Z", "annotations": {AUTHOR: BO, NONCE: "mine"},
        "labels": {NONCE: "mine", ORIGIN: "west/nlp/nlp/x/u2", GENERATION: "9", FILED_BY: "ada@example.com"},
    }  # fmt: skip
    thing = asked_from({"metadata": meta, "spec": {**SPEC, "metadata": {"labels": {NONCE: "mine"}}}})
    assert thing is not None
    assert said(view(thing)) == ("Refused", "UnknownField")
    data = edit(view(replace(thing, spec=SPEC))).changes[PATH]
    assert data is not None
    assert load(data)["metadata"]["labels"] == {
        ORIGIN: "east/vision/vision-train/train/u1", GENERATION: "3", FILED_BY: BO,
    }  # fmt: skip


def test_what_is_filed_and_mirrored_asks_for_nothing_more():
    """Level-based: a pass over a settled world does nothing."""
    thing = asked()
    files, statuses = {PATH: file_of(thing)}, {KEY: status()}
    first = view(thing, files=files, statuses=statuses)
    settled = replace(thing, status=told(first))
    assert door_actions(view(settled, files=files, statuses=statuses)) == ()


@pytest.mark.parametrize(
    ("thing", "more", "want"),
    [
        pytest.param(asked(namespace="other"), {}, ("Refused", "NoSlice"), id="a namespace of no slice"),
        pytest.param(
            asked(namespace="stray"), {}, ("Refused", "NoSlice"), id="a namespace that the slice does not name"
        ),
        pytest.param(
            asked(spec=SPEC | {"slice": "nlp"}), {}, ("Refused", "OtherSlice"), id="another slice than its namespace's"
        ),
        pytest.param(
            asked(),
            {"files": {PATH: gpr("vision", "train")}},
            ("Refused", "NameTaken"),
            id="a name that a file of people has",
        ),
        pytest.param(
            asked(),
            {"files": {PATH: file_of(asked(), cluster_name="west")}},
            ("Refused", "NameTaken"),
            id="a name that an object of another cluster has",
        ),
        pytest.param(
            asked(), {"files": {PATH: "kind: ["}}, ("Refused", "NameTaken"), id="a name with a file that is broken"
        ),
        pytest.param(
            asked(), {"statuses": {KEY: status()}}, ("Refused", "NameInUse"), id="a name that is not forgotten yet"
        ),
        pytest.param(
            asked(spec=SPEC | {"clusters": ["mars"]}), {}, ("Refused", "ClusterNotAllowed"), id="a foreign cluster"
        ),
        pytest.param(
            asked(spec=SPEC | {"gpuShape": 7}), {}, ("Refused", "WrongType"), id="a value that the server cannot judge"
        ),
        pytest.param(
            asked(spec={"nodes": 1}), {}, ("Refused", "MissingField"), id="too little"
        ),
    ],
)  # fmt: skip
def test_a_refusal_says_why_in_the_status(thing, more, want):
    assert said(view(thing, **more)) == want


def test_a_refusal_names_what_to_do():
    message = told(view(asked(spec=SPEC | {"slice": "nlp"})))["message"]
    assert message == (
        "spec.slice says nlp, but namespace vision-train belongs to vision; omit spec.slice, "
        "or create this in a namespace of that slice"
    )


def test_of_two_objects_of_one_name_the_older_is_filed():
    older, newer = asked(namespace="vision-eval"), asked(created=at(2))
    first, second = door_actions(view(newer, older))
    assert isinstance(first, Edit)
    assert "vision-eval" in first.origin
    assert isinstance(second, StatusPatch)
    assert second.status["reason"] == "NameTaken"
    assert "namespace vision-eval of cluster east" in second.status["message"]


def test_a_refused_object_takes_no_name():
    bad, good = asked(namespace="vision-eval", spec=SPEC | {"clusters": ["mars"]}), asked(created=at(2))
    first, second = door_actions(view(bad, good))
    assert isinstance(first, StatusPatch)
    assert first.status["reason"] == "ClusterNotAllowed"
    assert isinstance(second, Edit)


@pytest.mark.parametrize(
    ("via", "more", "guarded", "want"),
    [
        pytest.param("commit", {}, START, ("commit", BO, True), id="vouched for: onto main"),
        pytest.param("branch", {}, START, ("branch", BO, True), id="by pull request where that is set"),
        pytest.param("commit", {}, None, ("branch", BO, False), id="nobody guards the annotation"),
        pytest.param("commit", {}, at(5), ("branch", BO, False), id="older than the guard"),
        pytest.param(
            "commit",
            {"author": None},
            START,
            ("branch", "kubectl", False),
            id="no annotation: the client's own word",
        ),
    ],
)
def test_who_asked_decides_the_way(via, more, guarded, want):
    found = edit(view(asked(**more), via=via, guarded_since=guarded))
    assert (found.via, found.author.name, found.author.is_verified) == want


# -- edits ---------------------------------------------------------------------------------------------------


def test_a_newer_generation_replaces_the_file():
    thing = asked()
    changed = replace(thing, generation=2, spec=SPEC | {"nodes": 2})
    found = edit(view(changed, files={PATH: file_of(thing, priority=180)}))
    assert load(found.changes[PATH])["spec"] == {"slice": "vision", "nodes": 2, "duration": "1h"}


def test_what_people_edited_stands_until_the_object_changes():
    """An admin's move in Git is not undone by an object that says what it always said."""
    thing = asked()
    found = view(thing, files={PATH: file_of(thing, priority=180)}, statuses={KEY: status()})
    assert told(found)["phase"] == "Queued"


def test_terms_of_a_lease_are_kept():
    thing = asked(generation=2, spec=SPEC | {"nodes": 2})
    filed = file_of(replace(thing, generation=1, spec=SPEC))
    running = status(Phase.PROVISIONED)
    assert said(view(thing, files={PATH: filed}, statuses={KEY: running})) == (
        "Provisioned",
        "ForbiddenEdit",
    )


def test_a_finished_request_never_runs_again():
    thing = asked(generation=2, spec=SPEC | {"nodes": 2})
    filed = file_of(replace(thing, generation=1, spec=SPEC))
    over = status(Phase.COMPLETED)
    assert said(view(thing, files={PATH: filed}, statuses={KEY: over})) == ("Completed", "ForbiddenEdit")


@pytest.mark.parametrize(
    ("phase", "is_edited"),
    [
        pytest.param(Phase.QUEUED, True, id="one that waits is cancelled"),
        pytest.param(Phase.PROVISIONED, True, id="one that runs is ended"),
        pytest.param(Phase.COMPLETED, False, id="one that is over stays as it was"),
    ],
)
def test_the_annotation_releases(phase, is_edited):
    thing = asked(is_released=True)
    found = view(thing, files={PATH: file_of(thing)}, statuses={KEY: status(phase)})
    if is_edited:
        assert load(edit(found).changes[PATH])["spec"]["earlyRelease"] is True
    else:
        assert told(found)["phase"] == "Completed"


def test_a_release_by_people_is_not_taken_back_by_a_later_change():
    thing = asked(generation=2, spec=SPEC | {"displayName": "again"})
    filed = file_of(replace(thing, generation=1, spec=SPEC), earlyRelease=True)
    found = edit(view(thing, files={PATH: filed}, statuses={KEY: status(Phase.RELEASING)}))
    assert load(found.changes[PATH])["spec"]["earlyRelease"] is True


# -- objects that are gone -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "want"),
    [
        pytest.param(None, "Cancel", id="never answered: it may have got its nodes since"),
        pytest.param(Phase.QUEUED, "Cancel", id="waiting: it may have got its nodes since"),
        pytest.param(Phase.PENDING_APPROVAL, "Cancel", id="waiting for an admin"),
        pytest.param(Phase.PROVISIONING, "Release", id="being provisioned: released"),
        pytest.param(Phase.PROVISIONED, "Release", id="provisioned: released"),
        pytest.param(Phase.COMPLETED, "Remove", id="over: the name is free again"),
    ],
)
def test_who_deletes_an_object_wants_the_end(phase, want):
    statuses = {} if phase is None else {KEY: status(phase)}
    found = edit(view(files={PATH: file_of(asked())}, statuses=statuses, gone=frozenset({KEY})))
    assert found.subject.startswith(want)
    data = found.changes[PATH]
    assert data is None if want == "Remove" else load(data)["spec"]["earlyRelease"] is True


def test_what_ends_already_is_waited_for():
    files = {PATH: file_of(asked(), earlyRelease=True)}
    assert door_actions(view(files=files, statuses={KEY: status()}, gone=frozenset({KEY}))) == ()


def test_approvals_go_with_the_file():
    path = "approvals/vision/train/ada.yaml"
    files = {PATH: file_of(asked()), path: approval("vision", "train", f"sha256:{'0' * 64}")}
    over = {KEY: status(Phase.CANCELLED)}
    found = edit(view(files=files, statuses=over, gone=frozenset({KEY})))
    assert found.changes == {PATH: None, path: None}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({PATH: gpr("vision", "train")}, id="a file of people"),
        pytest.param({PATH: file_of(asked(), cluster_name="west")}, id="a file from another cluster"),
        pytest.param(
            {gpr_path("vision", "copy"): file_of(asked()).replace("name: train", "name: copy")},
            id="a copy of a file that took the label along",
        ),
    ],
)
def test_other_files_are_never_touched(files):
    assert orphans(view(files=files)) == {}
    assert door_actions(view(files=files, gone=frozenset({KEY, "vision/copy"}))) == ()


def test_nobody_is_cancelled_before_the_server_was_asked():
    """A watch that broke knows old things; `gone` is what was read anew."""
    assert door_actions(view(files={PATH: file_of(asked())})) == ()


def test_one_that_was_made_anew_waits_for_the_old_one_to_go():
    old, new = asked(), asked(uid="another")
    found = view(new, files={PATH: file_of(old)}, statuses={KEY: status()}, gone=frozenset({KEY}))
    cancelled, waits = door_actions(found)
    assert isinstance(cancelled, Edit)
    assert load(cancelled.changes[PATH])["spec"]["earlyRelease"] is True
    assert isinstance(waits, StatusPatch)
    assert waits.status["reason"] == "NameTaken"


RUNS = {KEY: status(Phase.PROVISIONED)}
SEEN = {"filed": True, "observedGeneration": 1, "request": KEY}


@pytest.mark.parametrize(
    ("thing", "more", "want"),
    [
        pytest.param(asked(status=SEEN, is_released=True), {}, True, id="its release brings it back to end it"),
        pytest.param(
            asked(status=SEEN, generation=2, spec=SPEC | {"extend": "30m"}), {}, False, id="a change brings it back"
        ),
        pytest.param(asked(), {}, False, id="a new object of that name brings it back"),
        pytest.param(
            asked(status=SEEN, is_released=True), {"files": {PATH: "kind: ["}}, True, id="also one that is broken"
        ),
        pytest.param(
            None, {"lost": {KEY: file_of(asked()).encode()}, "gone": frozenset({KEY})}, True,
            id="an object that goes, too, ends it",
        ),
    ],
)  # fmt: skip
def test_a_lease_without_a_file_hears_its_object(thing, more, want):
    found = edit(view(*([] if thing is None else [thing]), statuses=RUNS, **more))
    assert load(found.changes[PATH])["spec"].get("earlyRelease", False) is want


def test_a_file_that_was_deleted_under_a_lease_stays_so_until_its_object_speaks():
    """Whoever spoke last counts; the object says what ends the lease."""
    status_ = told(view(asked(status=SEEN), statuses=RUNS))
    assert status_["phase"] == "Provisioned"


def test_many_at_once_wait_for_an_admin():
    things = [asked(f"t{n:02}") for n in range(11)]
    files = {gpr_path("vision", thing.name): file_of(thing) for thing in things}
    keys = frozenset(f"vision/{thing.name}" for thing in things)
    found = view(files=files, gone=keys)
    digest = held_cancellations(found)
    assert digest == deletions_digest(sorted(keys))
    assert door_actions(found) == ()
    confirmed = files | {"project.yaml": project(confirmedDeletions=[digest])}
    assert len(door_actions(view(files=confirmed, gone=keys))) == 11


def test_what_is_over_does_not_count_as_cancelled():
    things = [asked(f"t{n:02}") for n in range(11)]
    files = {gpr_path("vision", thing.name): file_of(thing) for thing in things}
    keys = frozenset(f"vision/{thing.name}" for thing in things)
    over = dict.fromkeys(keys, status(Phase.COMPLETED))
    assert len(door_actions(view(files=files, gone=keys, statuses=over))) == 11
