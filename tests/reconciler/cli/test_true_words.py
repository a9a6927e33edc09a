"""Answers say what is so: outside of a repository, of what is rejected or only observed, of nodes not there yet."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.changes.requests import assignments
from reconciler.queries.why import coming_nodes, slips_of
from reconciler.sources.command_errors import WrongUse
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import Assignment, Cause, GPRStatus, Phase, Slip
from tests.reconciler.cli.rig import ADA, Control, egs, fleet, main_file, minutes, repository, request
from tests.support.world import START, cluster


@pytest.mark.parametrize("kind", ["events", "gprs", "workloads"])
def test_outside_of_a_repository_every_list_says_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = egs("get", kind)
    assert (done.code, "is not a repository" in done.err) == (1, True)


def test_problems_of_a_rejected_request_say_why_and_not_that_an_admin_is_needed(tmp_path: Path) -> None:
    """E5: the word was no, so nobody waits for one any more."""
    repo = repository(tmp_path / "r.git", fleet(**request("a/over", nodes=3)))
    control = Control(repo, tmp_path / "state")
    control.run(minutes(5))
    said = ("--reason", "too many for one team", "--now", "2026-11-21T08:05:00Z")
    assert egs("reject", "a/over", "--repo", repo, "--author", ADA, *said).code == 0
    control.run(minutes(10))
    rows = egs("get", "problems", "--repo", repo, "-o", "json").json
    (row,) = [row for row in rows if row["file"] == "slices/a/gprs/over.yaml"]
    assert (row["rule"], row["severity"]) == ("Rejected", "notice")
    assert "too many for one team" in row["message"]
    assert "file a new request" in row["fix"]


def test_why_of_a_request_of_an_observed_cluster_promises_nothing(tmp_path: Path) -> None:
    files = fleet(**request("a/x")) | {"clusters/east.yaml": cluster(nodes=4, mode="observe")}
    repo = repository(tmp_path / "r.git", files)
    Control(repo, tmp_path / "state").run(minutes(2))
    said = egs("why", "a/x", "--repo", repo, "-o", "json").json["reasons"]
    assert "only observed" in said[0]
    assert not [one for one in said if "waits only for the checks" in one or "likely start" in one]


def test_a_rename_while_it_runs_is_refused_as_the_api_does(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/run", duration="2h")))
    Control(repo, tmp_path / "state").run(minutes(10))
    for words in (("rename", "a/run", "Another"), ("edit", "a/run", "displayName=Another")):
        done = egs("gpr", *words, "--repo", repo, "--author", ADA)
        assert (done.code, "is Provisioned and keeps its terms (displayName)" in done.err) == (1, True)


def test_a_mapping_is_given_as_one_value(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/x", nodes=3, priority=1)))
    done = egs(
        "gpr",
        "edit",
        "a/x",
        'model.parameters={lora: "true"}',
        "model.name={x}",
        "--repo",
        repo,
        "--author",
        ADA,
    )
    assert done.code == 0, done.err
    text = main_file(repo, "slices/a/gprs/x.yaml")
    assert "lora: 'true'" in text or 'lora: "true"' in text


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("model.parameters={a: b}", {"a": "b"}),
        ("model={name: llama}", {"name": "llama"}),
        ("model.parameters.a={b}", "{b}"),
        ("displayName={Try 2}", "{Try 2}"),
        ("model.name=Try 2: larger", "Try 2: larger"),
    ],
)
def test_texts_stay_texts(word: str, value: object) -> None:
    ((_, found),) = assignments([word])
    assert found == value


def test_a_mapping_that_is_none_is_wrong_use() -> None:
    with pytest.raises(WrongUse):
        assignments(["model.parameters={a: [}"])


def status(**more: object) -> GPRStatus:
    spec = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))
    bare = GPRStatus(
        phase=Phase.QUEUED, uid="gpr-1", filed_at=START, accepted_spec=spec, spec_digest="sha256:1"
    )
    return bare.model_copy(update=more)


def test_an_old_slip_says_what_is_so_since_it_moved_earlier() -> None:
    hour = timedelta(hours=1)
    slip = Slip(was=START, now=START + 3 * hour, cause=Cause.HIGHER_RANK_ARRIVED, by="b/y", at=START)
    first, second = slips_of(status(slips=(slip,), estimated_start_time=START + hour))
    assert "moved earlier since" in first
    assert "starts at 2026-11-21T09:00:00Z" in first
    assert "moved from" in second
    assert len(list(slips_of(status(slips=(slip,), estimated_start_time=START + 3 * hour)))) == 1


def test_nodes_that_do_not_exist_yet_are_not_called_checked() -> None:
    held = Assignment(cluster="east", pool="h100", nodes=("h100-1", "+1"))
    (said,) = coming_nodes(status(assignment=held), "its nodes", "9:00")
    assert "It has h100-1, and 1 node of east/h100" in said
    assert "their checks run" not in said
