"""Where main is verified, a slice that somebody asks for waits for an admin, and so does a move (A6, B8, B9, E4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.status.gpr_status import WorkspacePhase
from tests.reconciler.cli.rig import egs
from tests.reconciler.trust.test_attack import Siege
from tests.support.repos import git
from tests.support.world import _document, gpr, gpr_path

NLP = "requests/nlp.yaml"
ASKED = _document(
    "WorkspaceRequest",
    "nlp",
    {"requester": {"email": "eve@example.com"}, "clusters": ["east"], "namespaces": ["nlp"]},
)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EGS_CACHE", str(tmp_path / "cache"))


def test_it_waits_is_shown_and_becomes_the_slice_by_an_admins_word(tmp_path: Path) -> None:
    siege = Siege(tmp_path)
    siege.land.push({NLP: ASKED, gpr_path("nlp/run"): gpr("nlp", "run")}, "eve")
    siege.run(2)
    record = siege.facts.workspaces["nlp"]
    assert record.phase is WorkspacePhase.PENDING_APPROVAL
    assert "slice nlp waits for an admin (ada@example.com)" in record.message
    assert "nlp/run" not in siege.facts.requests
    (row, *_) = egs("get", "requests", "--repo", siege.land.repo, "-o", "json").json
    assert (row["name"], row["phase"], row["requester"]) == ("nlp", "PendingApproval", "eve@example.com")
    siege.land.push({NLP: ASKED + "# seen by ada\n"}, "ada")
    siege.run(2)
    assert siege.facts.workspaces["nlp"].phase is WorkspacePhase.READY
    assert siege.events.count("WorkspaceRequested") == 1
    assert "nlp" in siege.drivers["east"].observe(siege.now).slices


def test_an_admins_own_merge_of_a_branch_makes_it(tmp_path: Path) -> None:
    siege = Siege(tmp_path)
    side = siege.land.commit({NLP: ASKED}, "eve", siege.land.at)
    siege.land.at = siege.land.merge(side, "ada")
    git(siege.land.repo, "update-ref", "refs/heads/main", siege.land.at)
    siege.run(2)
    assert siege.facts.workspaces["nlp"].phase is WorkspacePhase.READY


def test_a_members_move_is_held_and_an_admins_counts(tmp_path: Path) -> None:
    siege = Siege(tmp_path)
    waits = {gpr_path("a/one"): gpr("a", "one"), gpr_path("a/two"): gpr("a", "two")}
    siege.land.push(waits, "bo")
    siege.run(2)
    up = {gpr_path("a/two"): gpr("a", "two", move=5)}
    siege.land.push(up, "bo")
    siege.run(2)
    assert siege.facts.requests["a/two"].accepted_spec.move == 0
    siege.land.push({gpr_path("a/two"): up[gpr_path("a/two")] + "# ada\n"}, "ada")
    siege.run(2)
    assert siege.facts.requests["a/two"].accepted_spec.move == 5
