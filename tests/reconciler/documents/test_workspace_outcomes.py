"""Requests for slices: an admin's merge makes them, their states are shown, the person is told what to do next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.documents.workspace_outcomes import workspace_turn
from reconciler.model.events import EventReason
from reconciler.model.facts import Facts, Wanted, Workspace
from schemas.documents.base import Person
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import SliceSpec
from schemas.documents.workspace import WorkspaceRequestSpec
from schemas.status.gpr_status import WorkspacePhase, WorkspaceRecord
from schemas.status.judgements import HeldChange, TrustRecord
from tests.support.world import World, approval, at, gpr, gpr_path, parsed, slice_
from tests.support.world import _document as document

NLP = "requests/nlp.yaml"
CY = {"email": "cy@example.com"}


def asked(name: str = "nlp", **spec: object) -> str:
    """Cy asks for a slice with one namespace in the east."""
    base = {"requester": CY, "clusters": ["east"], "namespaces": [name], "reason": "translation"}
    return document("WorkspaceRequest", name, base | spec)


def test_a_request_that_counts_is_a_slice_from_the_quota_to_the_cluster() -> None:
    """B8, B9: name, namespaces, address and quota are all it takes; the slice gets nodes like any other."""
    world = World({NLP: asked(quota={"gpus": 8}, members=[{"email": "dee@example.com"}])})
    world.file("nlp/run", nodes=1)
    world.file("nlp/large", nodes=2)
    world.run(at(5))
    facts = world.facts()
    assert facts.workspaces["nlp"].phase is WorkspacePhase.READY
    assert facts.workspaces["nlp"].message.startswith("slice nlp is ready, in namespace nlp of east; cy@")
    assert world.status("nlp/run").phase == "Provisioned"
    assert "QuotaExceeded" in (world.status("nlp/large").message or "")
    assert world.drivers["east"].observe(world.now).slices["nlp"] == ("nlp",)
    (terms,) = [t for t in world.log[-1].wanted.slices.items() if t[0] == "nlp"]  # type: ignore[union-attr]
    assert [p.email for p in terms[1].people] == ["cy@example.com", "dee@example.com"]
    digest = world.status("nlp/large").spec_digest
    world.commit({"approvals/nlp/large/ada.yaml": approval("nlp", "large", digest)})
    world.run(at(7))
    assert world.status("nlp/large").phase == "Queued"


def test_states_are_told_once_and_survive_a_restart() -> None:
    world = World({NLP: asked()})
    world.run(at(2))
    since = world.facts().workspaces["nlp"].since
    world.controller = world.start()
    world.run(at(10))
    assert world.told().count("WorkspaceReady") == 1
    assert world.facts().workspaces["nlp"].since == since


def test_a_file_of_its_own_takes_the_place_of_the_request() -> None:
    """C10: whenever an admin writes slice.yaml, it counts."""
    world = World({NLP: asked(quota={"gpus": 8})})
    world.run(at(1))
    own = slice_("nlp", quota={"gpus": 32}, namespaces=["nlp", "nlp-dev"])
    world.commit({"slices/nlp/slice.yaml": own})
    world.run(at(2))
    record = world.facts().workspaces["nlp"]
    assert (record.phase, record.message) == (
        WorkspacePhase.SUPERSEDED,
        "slices/nlp/slice.yaml counts; requests/nlp.yaml has no effect any more and may be removed",
    )
    assert world.drivers["east"].observe(world.now).slices["nlp"] == ("nlp", "nlp-dev")
    world.commit({NLP: None})
    world.run(at(3))
    assert (world.facts().workspaces, world.text(NLP)) == ({}, None)
    assert "nlp" in world.drivers["east"].observe(world.now).slices


def test_a_broken_request_says_so_and_one_in_force_stays() -> None:
    world = World({NLP: asked(clusters=["nowhere"]), "requests/ops.yaml": asked("ops")})
    world.run(at(1))
    record = world.facts().workspaces["nlp"]
    assert record.phase is WorkspacePhase.INVALID
    assert "| nlp | Invalid |" in (world.text("README.md") or "")
    assert "there is no cluster nowhere" in record.message
    world.commit({"requests/ops.yaml": asked("ops", clusters=["nowhere"]), NLP: asked()})
    world.run(at(2))
    now = world.facts().workspaces
    assert (now["nlp"].phase, now["ops"].phase) == (WorkspacePhase.READY, WorkspacePhase.READY)
    assert "Requested slices" not in (world.text("README.md") or "")
    assert "its file as it reads now does not count: requests/ops.yaml:" in now["ops"].message
    assert world.told().count("WorkspaceInvalid") == 1


def test_a_request_that_is_reverted_takes_its_slice_along_when_nobody_holds_nodes() -> None:
    world = World({NLP: asked(), gpr_path("nlp/run"): gpr("nlp", "run", duration="30m")})
    world.run(at(5))
    world.commit({NLP: None, gpr_path("nlp/run"): None})
    world.run(at(6))
    assert world.status("nlp/run").phase == "Provisioned", "a lease that runs keeps its slice"
    world.run(at(60))
    facts = world.facts()
    assert ("nlp" in facts.workspaces, "nlp/run" in facts.requests) == (False, False)
    assert "nlp" not in world.drivers["east"].observe(world.now).slices


SPEC = parsed(NLP, asked()).spec  # type: ignore[attr-defined]
ADMINS = ProjectSpec(admins=(Person(email="ada@example.com"), Person(email="max@example.com")))


def wanted(**spaces: Workspace) -> Wanted:
    own = {n: w.spec for n, w in spaces.items() if w.spec is not None}
    slices = {
        name: SliceSpec(members=(s.requester,), clusters=s.clusters, namespaces=s.namespaces)
        for name, s in own.items()
    }
    return Wanted("c", ADMINS, {}, slices, {}, {}, {}, workspaces=spaces)


def trust(authorised: str | None) -> TrustRecord:
    change = HeldChange(
        path=NLP, authorised=authorised, found="f" * 40, commit="c" * 40, rule="NeedsAdmin", since=at(0),
        message="an admin has to stand behind it",
    )  # fmt: skip
    return TrustRecord.model_validate({"metadata": {"name": "trust"}, "main": "c" * 40, "held": (change,)})


@pytest.mark.parametrize(
    ("space", "held", "phase", "words"),
    [
        pytest.param(None, trust(None), "PendingApproval", "(ada@example.com, max@example.com)",
                     id="one that no admin stands behind waits, and says for whom"),
        pytest.param(Workspace(SPEC), None, "Ready", "`egs gpr create nlp/NAME`",
                     id="one in force is ready, and says how to go on"),
        pytest.param(Workspace(SPEC), trust("a" * 40), "Ready", "a later change of it does not count",
                     id="a change of one in force waits, the slice stays"),
        pytest.param(Workspace(None, "requests/nlp.yaml:3: bad; mend it"), None, "Invalid", "mend it",
                     id="one that never was valid says why"),
        pytest.param(Workspace(SPEC, "", True), None, "Superseded", "may be removed",
                     id="one whose slice has a file of its own does nothing"),
    ],
)  # fmt: skip
def test_every_state(space: Workspace | None, held: TrustRecord | None, phase: str, words: str) -> None:
    given = wanted() if space is None else wanted(nlp=space)
    records, told = workspace_turn(Facts(at(0), trust=held), given, at(1))
    assert records["nlp"].phase == phase
    assert words in records["nlp"].message
    assert [event.slice for event in told] == ([] if phase == "Superseded" else ["nlp"])
    again, told = workspace_turn(replace(Facts(at(0), trust=held), workspaces=records), given, at(9))
    assert (again, told) == (records, ()), "time alone changes nothing"


def test_a_state_that_changes_is_told() -> None:
    waiting = WorkspaceRecord.model_validate(
        {
            "metadata": {"name": "nlp"},
            "phase": WorkspacePhase.PENDING_APPROVAL,
            "message": "x",
            "since": at(0),
        }
    )
    _, told = workspace_turn(Facts(at(0), workspaces={"nlp": waiting}), wanted(nlp=Workspace(SPEC)), at(1))
    assert [event.reason for event in told] == [EventReason.WORKSPACE_READY]
    assert isinstance(SPEC, WorkspaceRequestSpec)
