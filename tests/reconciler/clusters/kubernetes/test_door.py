"""The door between GPR objects and Git: a real API server, a real bare repository, a real controller (A8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from threading import Event, Thread

import pytest

from reconciler.clusters.kubernetes.admission.object_authors import author_policies
from reconciler.clusters.kubernetes.names import AUTHOR, RELEASE
from reconciler.gpr_objects.door import DoorSettings, run_door
from schemas.errors import Fault
from tests.support.door import PATH, SPEC, Rig
from tests.support.kube import eventually
from tests.support.repos import commit, git
from tests.support.requests import CRDS, Objects, install, namespace
from tests.support.world import at, gpr


def test_an_object_becomes_a_commit_by_its_author(rig):
    rig.train.apply("train", **SPEC, priority=150)
    assert rig.pass_().edits == 1
    assert "nodes: 1" in rig.file()
    assert rig.log("%an <%ae>") == "admin <admin@east.invalid>", "who sent it, as the API server knows them"
    assert rig.log("%(trailers:key=On-Behalf-Of,valueonly)").strip() == "", "admin is no address of a person"
    assert rig.train.status("train")["phase"] == "Filed"


def test_the_status_is_mirrored_from_its_beginning_to_its_end(rig):
    rig.train.apply("train", **SPEC)
    rig.pass_()
    for minutes, phase in ((0.0, "Queued"), (3.0, "Provisioned"), (70.0, "Completed")):
        rig.cycle(minutes)
        rig.door.step(at(rig.minutes))
        found = rig.train.status("train")
        if phase == "Queued":
            assert found["phase"] in {"Queued", "Provisioning"}
            assert found["start"]
        else:
            assert found["phase"] == phase
    assert found["request"] == "vision/train"


def test_a_pass_over_a_settled_world_writes_nothing(rig):
    rig.train.apply("train", **SPEC)
    rig.pass_()
    rig.cycle()
    rig.door.step(at(0))
    before, version = rig.commits(), rig.train.get("train")["metadata"]["resourceVersion"]
    for _ in range(3):
        assert rig.door.step(at(0)).edits == 0
    assert (rig.commits(), rig.train.get("train")["metadata"]["resourceVersion"]) == (before, version)


def test_deleting_one_that_waits_cancels_it(rig):
    rig.train.apply("train", **SPEC, notBefore="2026-11-22T08:00:00Z")
    rig.pass_()
    rig.cycle()
    rig.train.delete("train")
    rig.pass_(gone=True)
    assert "earlyRelease: true" in rig.file(), "it may have got its nodes since the door looked"
    rig.cycle()
    assert "phase: Cancelled" in rig.file("egs/status")
    rig.door.step(at(rig.minutes))
    assert PATH not in rig.files()
    rig.cycle()
    assert PATH not in rig.files("egs/status")


def test_deleting_one_that_runs_ends_it(rig):
    rig.train.apply("train", **SPEC)
    rig.pass_()
    rig.cycle()
    rig.cycle(5)
    assert "phase: Provisioned" in rig.file("egs/status")
    rig.train.delete("train")
    rig.pass_(gone=True)
    assert "earlyRelease: true" in rig.file()
    rig.cycle()
    rig.cycle(10)
    assert "phase: Completed" in rig.file("egs/status")
    rig.door.step(at(rig.minutes))
    assert PATH not in rig.files(), "the name is free again"


def test_a_deletion_while_the_door_is_away_is_not_lost(rig):
    rig.train.apply("train", **SPEC, notBefore="2026-11-22T08:00:00Z")
    rig.pass_()
    rig.close()
    rig.train.delete("train")
    rig.door = rig.opened()
    rig.door.step(at(0))
    assert "earlyRelease: true" in rig.file()


def test_the_annotation_releases(rig):
    rig.train.apply("train", **SPEC)
    rig.pass_()
    rig.cycle()
    rig.cycle(5)
    rig.train.annotate("train", RELEASE, "true")
    rig.pass_()
    rig.cycle()
    rig.door.step(at(rig.minutes))
    found = rig.train.status("train")
    assert (found["phase"], found["reason"]) == ("Releasing", "EarlyRelease")


def test_a_change_of_the_object_is_an_edit(rig):
    rig.train.apply("train", **SPEC)
    rig.pass_()
    rig.train.apply("train", nodes=2, duration="2h")
    assert rig.pass_().edits == 1
    assert "nodes: 2" in rig.file()
    assert rig.train.status("train")["observedGeneration"] == 2


def test_a_name_of_a_file_of_people_is_refused(rig):
    commit(rig.repo, {PATH: gpr("vision", "train")})
    before = rig.commits()
    rig.train.apply("train", **SPEC)
    rig.pass_()
    found = rig.train.status("train")
    assert (found["phase"], found["reason"]) == ("Refused", "NameTaken")
    rig.train.delete("train")
    rig.pass_(gone=True)
    assert rig.commits() == before, "and never touched"


def test_two_namespaces_of_a_slice_share_its_names(rig):
    rig.train.apply("train", **SPEC)
    rig.pass_()
    rig.eval.apply("train", **SPEC)
    rig.pass_(namespace="vision-eval")
    assert rig.eval.status("train")["message"] == (
        "vision/train is filed already by namespace vision-train of cluster east; otherwise choose another name"
    )
    rig.train.delete("train")
    rig.pass_(gone=True)
    for _ in range(2):  # cancelled, then forgotten with its file
        rig.cycle()
        rig.door.step(at(rig.minutes))
    assert rig.eval.status("train")["phase"] == "Filed", "the name was free again"
    assert "vision-eval" in rig.file()


def test_an_invalid_one_is_told_in_the_rules_words(rig):
    rig.train.apply("train", **SPEC, clusters=["mars"])
    rig.pass_()
    found = rig.train.status("train")
    assert (found["phase"], found["reason"]) == ("Refused", "ClusterNotAllowed")
    assert "mars" in found["message"]
    assert PATH not in rig.files()


def test_a_namespace_of_nobody_files_nothing(rig):
    stranger = Objects(rig.plane.api, "nobodys")
    stranger.apply("train", **SPEC)
    rig.pass_(namespace="nobodys")
    assert stranger.status("train")["reason"] == "NoSlice"


class Killed(BaseException):
    """The end of a process."""


def test_a_door_killed_between_push_and_status_does_nothing_twice(rig, monkeypatch):
    rig.train.apply("train", **SPEC)
    with monkeypatch.context() as patched:
        patched.setattr(rig.door, "_patched", lambda _: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            rig.pass_()
    assert rig.train.status("train") == {}
    before = rig.commits()
    rig.close()
    rig.door = rig.opened()
    rig.door.step(at(0))
    assert rig.commits() == before
    assert rig.train.status("train")["phase"] == "Filed"


def test_a_lost_race_is_run_again(rig, monkeypatch):
    """Somebody pushes to main between our look and our push."""
    rig.train.apply("train", **SPEC)
    push, pushes = rig.door._push, []

    def late(*args):
        if not pushes:
            commit(rig.repo, {"slices/vision/gprs/other.yaml": gpr("vision", "other")})
        pushes.append(args)
        return push(*args)

    monkeypatch.setattr(rig.door, "_push", late)
    rig.pass_()
    assert len(pushes) == 2
    assert {PATH, "slices/vision/gprs/other.yaml"} <= set(rig.files())


def test_a_burst_is_one_push_with_a_commit_for_each(rig, monkeypatch):
    pushes, push = [], rig.door._push
    monkeypatch.setattr(rig.door, "_push", lambda *args: (pushes.append(args), push(*args))[1])
    for n in range(5):
        rig.train.apply(f"burst-{n}", **SPEC)
    before = rig.commits()
    rig.pass_("burst-4")
    assert len(pushes) == 1
    assert rig.commits() == before + 5


def test_an_unverified_author_needs_a_merge(rig):
    """Without the guard anybody could have written the annotation."""
    seen = rig.door._seen
    rig.door._seen = lambda: replace(seen(), guarded_since=None)
    rig.train.apply("train", **SPEC)
    rig.pass_()
    assert PATH not in rig.files()
    branch = "egs/gpr/east/vision/train"
    assert "nodes: 1" in rig.file(branch)
    assert rig.log("%ae", branch) == "unverified@east.invalid"
    found = rig.train.status("train")
    assert (found["phase"], found["branch"], found["authorVerified"]) == ("Proposed", branch, False)


def test_a_merged_branch_files_it_and_a_withdrawn_object_empties_its_branch(clean, tmp_path):
    rig = Rig(clean, tmp_path, via="branch")
    branch = "egs/gpr/east/vision/train"
    rig.train.apply("train", **SPEC)
    rig.pass_()
    assert rig.train.status("train")["phase"] == "Proposed"
    git(rig.repo, "update-ref", "refs/heads/main", branch)
    rig.door.step(at(0))
    assert rig.train.status("train")["phase"] == "Filed"
    rig.train.apply("other", **SPEC)
    rig.pass_("other")
    rig.train.delete("other")
    rig.pass_("other", gone=True)
    assert git(rig.repo, "rev-parse", "egs/gpr/east/vision/other") == git(rig.repo, "rev-parse", "main")
    rig.close()


def test_a_main_that_refuses_is_told(rig):
    hook = rig.repo / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    rig.train.apply("train", **SPEC)
    rig.pass_()
    found = rig.train.status("train")
    assert (found["phase"], found["reason"]) == ("Refused", "PushFailed")


def test_a_forged_author_is_refused_by_the_server(rig):
    with pytest.raises(Fault, match="leave it out"):
        rig.train.apply("forged", {AUTHOR: "ada@example.com"}, **SPEC)


def test_the_process_files_and_ends(rig):
    """`run_door` as `egs-reconciler door` runs it: woken by the cluster, ended by an event."""
    ended, pause = Event(), timedelta(seconds=0.1)
    door = DoorSettings("east", "commit", pause)
    process = Thread(target=run_door, args=(rig.plane.connect(), rig.settings("process"), door, ended))
    process.start()
    try:
        rig.train.apply("train", **SPEC)
        eventually(lambda: rig.train.status("train").get("phase") == "Filed", "it is filed")
        rig.train.delete("train")
        eventually(lambda: "earlyRelease: true" in rig.file(), "it is cancelled")
    finally:
        ended.set()
        process.join(30)
    assert not process.is_alive()


def test_a_cluster_without_the_custom_resource_says_so(served, tmp_path):
    """Last in this module: it takes the custom resource away."""
    rig = Rig(served, tmp_path)
    rig.door.step(at(0))
    served.api.delete(f"{CRDS}/gprs.egs.dev")
    eventually(lambda: served.api.find(f"{CRDS}/gprs.egs.dev") is None, "it is gone")
    rig.close()
    rig.door = rig.opened()
    with pytest.raises(Fault, match="apply deploy/crds") as missing:
        rig.door.step(at(0))
    assert missing.value.reason == "ResourceMissing"
    rig.close()


def test_a_policy_names_the_author_without_a_webhook(new_plane):
    """MutatingAdmissionPolicy v1: what people write is overwritten, and a note changes no author."""
    new_plane.wipe()
    install(new_plane)
    namespace(new_plane, "vision-train", "vision")
    base = "/apis/admissionregistration.k8s.io/v1"
    paths = (f"{base}/mutatingadmissionpolicies", f"{base}/mutatingadmissionpolicybindings")
    for path, body in zip(paths, author_policies(), strict=True):
        new_plane.api.create(path, body)
    objects = Objects(new_plane.api, "vision-train")
    count = iter(range(1000))

    def named():
        made = objects.apply(f"try-{next(count)}", {AUTHOR: "ada@example.com"}, **SPEC)
        return made["metadata"]["annotations"][AUTHOR] == "admin"

    try:
        eventually(named, "the policy is in force")
        assert objects.apply("plain", **SPEC)["metadata"]["annotations"] == {AUTHOR: "admin"}
        objects.annotate("plain", "note", "x")
        objects.annotate("plain", AUTHOR, "eve")
        assert objects.get("plain")["metadata"]["annotations"][AUTHOR] == "admin"
    finally:
        for path in paths:
            new_plane.api.delete(f"{path}/egs-request-authors")
