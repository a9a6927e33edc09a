"""What-if in process: what the check says of a change that was not pushed, and what a caller sees of it. E4, B10."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from schemas.reading.units import format_instant, parse_instant
from tests.reconciler.cli.rig import egs
from tests.support import repos
from tests.support.portal import Site
from tests.support.world import gpr, gpr_path, slice_

FULL = {"nodes": 4, "duration": "3h", "clusters": ["east"]}


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """nlp holds the first cluster; both workspaces wait for it."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/runs", **FULL)
    made.pass_time(5)
    made.file("nlp/secret", nodes=4, duration="2h", clusters=["east"])
    made.file("vision/second", nodes=4, duration="2h", priority=90, clusters=["east"])
    made.pass_time(1)
    yield made
    made.close()


def asked(site: Site, body: Mapping[str, Any], who: str = "ada-owner", want: int = 200) -> Any:
    """The answer's data, or its error."""
    answer = site.client(who).post("/api/v1/whatif", json=body)
    assert answer.status_code == want, answer.text
    return answer.json()["data"] if want == 200 else answer.json()["error"]


def new(key: str, **spec: Any) -> dict[str, str]:
    slice_, _, name = key.partition("/")
    return {gpr_path(key): gpr(slice_, name, **spec)}


URGENT = {"nodes": 4, "duration": "1h", "priority": 150, "clusters": ["east"]}


def test_an_admin_learns_who_is_delayed_by_how_many_minutes_and_why(site: Site) -> None:
    found = asked(site, {"files": new("vision/urgent", **URGENT)})
    assert found["verdict"] == "clear"
    (request,) = found["requests"]
    assert (request["change"], request["cluster"], request["cost"]["amount"]) == ("new", "east", 80.0)
    moved = [(row["slice"], row["name"], row["change"], row["minutes"], row["why"]) for row in found["moved"]]
    assert moved == [
        ("nlp", "secret", "later", 67, "vision/urgent ranks before it"),
        ("vision", "second", "later", 67, "vision/urgent ranks before it"),
    ]
    assert found["cost"] == {"before": 0.0, "after": 80.0, "currency": "USD"}


def test_it_says_what_the_command_says_of_the_pull_request_and_what_the_merge_then_does(site: Site) -> None:
    """A1, D8: the same requests, starts and causes."""
    files = new("vision/urgent", **URGENT)
    found = asked(site, {"files": files})
    told = command(site, files)
    assert [{name: row[name] for name in told["moved"][0]} for row in found["moved"]] == told["moved"]
    assert [{name: row[name] for name in told["requests"][0]} for row in found["requests"]] == told[
        "requests"
    ]
    site.commit(files, "Bo <bo@example.com>")
    site.settle()
    for row in (*found["moved"], *found["requests"]):
        status = site.view.facts.requests[f"{row['slice']}/{row['name']}"]
        assert status.estimated_start_time == parse_instant(row.get("now") or row["estimatedStartTime"])


def command(site: Site, files: Mapping[str, str | None]) -> Any:
    """`egs check-pr` for a branch with these files, which is pushed and deleted again."""
    repos.git(site.repo, "branch", "pull", "main")
    repos.commit(site.repo, files, branch="pull")
    words = ("check-pr", "--repo", site.repo, "--base", "main", "--head", "pull", "-o", "json")
    answer = egs(*words, "--now", format_instant(site.now))
    repos.git(site.repo, "branch", "-D", "pull")
    assert answer.code == 0, answer.err
    return answer.json


def test_nothing_is_stored(site: Site) -> None:
    """The next answer, the view and the repository are as before."""
    before, tips = asked(site, {"files": new("vision/other", nodes=1)}), repos.git(site.repo, "show-ref")
    asked(site, {"files": {"clusters/east.yaml": None, **new("vision/urgent", **URGENT)}})
    assert asked(site, {"files": new("vision/other", nodes=1)}) == before
    assert repos.git(site.repo, "show-ref") == tips
    assert "vision/urgent" not in site.view.wanted.filed


# -- what a caller may see -----------------------------------------------------------------------------------------


def test_a_member_learns_how_many_of_others_wait_longer_and_no_name(site: Site) -> None:
    """B10."""
    found = asked(site, {"files": new("vision/urgent", **URGENT)}, "bo-editor")
    assert [row["name"] for row in found["moved"]] == ["second"]
    assert found["hidden"] | {"later": 1, "mostMinutes": 67} == found["hidden"]
    assert "secret" not in json.dumps(found)
    assert "nlp" not in json.dumps(found)
    assert "2 requests wait longer" in found["summary"]


def test_a_member_learns_nothing_of_what_they_may_not_see(site: Site) -> None:
    """B10: not that it exists, not what it says."""
    hidden = {gpr_path("nlp/secret"): None}
    refused = asked(site, {"files": hidden}, "bo-editor", 404)
    absent = asked(site, {"files": {gpr_path("none/secret"): None}}, "bo-editor", 404)
    assert refused["message"].replace("nlp", "none") == absent["message"]
    cases = [
        {"do": "end", "gprId": "nlp/secret"},
        {"do": "edit", "gprId": "nlp/secret", "priority": 7},
        {"do": "file", "sliceName": "nlp", "name": "x", "numberOfGPUNodes": 1, "exitDuration": "1h"},
    ]
    for edit in cases:
        asked(site, {"changes": [edit]}, "bo-editor", 404)
    for path in ("project.yaml", "clusters/east.yaml", "keys/cy-editor.yaml", "templates/small.yaml"):
        assert "only admins" in asked(site, {"files": {path: None}}, "bo-editor", 403)["message"]


def test_what_a_reader_may_not_do_is_a_denial(site: Site) -> None:
    """B7: the effect is shown all the same."""
    found = asked(site, {"files": new("vision/urgent", **URGENT)}, "bo-viewer")
    assert found["verdict"] == "refused"
    assert [row["file"] for row in found["denials"]] == [gpr_path("vision/urgent")]
    assert [row["name"] for row in found["moved"]] == ["second"]


# -- edits by name ---------------------------------------------------------------------------------------------------


def changed(site: Site, **edit: Any) -> Any:
    """The answer for one edit by an admin."""
    return asked(site, {"changes": [edit]})


def test_a_request_filed_by_its_terms(site: Site) -> None:
    terms = {
        "numberOfGPUs": 8,
        "numberOfGPUNodes": 4,
        "exitDuration": "1h",
        "priority": 150,
        "clusterName": "east",
    }
    found = changed(site, do="file", sliceName="vision", name="urgent", **terms)
    assert [(row["slice"], row["name"], row["change"]) for row in found["requests"]] == [
        ("vision", "urgent", "new")
    ]
    assert {row["minutes"] for row in found["moved"]} == {67}


def test_another_priority_swaps_two(site: Site) -> None:
    found = changed(site, do="edit", gprId="vision/second", priority=150)
    (request,) = found["requests"]
    assert request["startBefore"] > request["estimatedStartTime"]
    assert [(row["name"], row["change"]) for row in found["moved"]] == [("secret", "later")]


def test_an_earlier_end_brings_others_forward(site: Site) -> None:
    found = changed(site, do="end", gprId="vision/runs")
    assert found["requests"][0]["change"] == "released"
    assert {row["change"] for row in found["moved"]} == {"earlier"}
    assert found["cost"]["before"] > found["cost"]["after"]
    assert changed(site, do="end", gprId="nlp/secret")["requests"][0]["change"] == "cancelled"


def test_an_extension_that_would_delay_a_promise_is_not_granted(site: Site) -> None:
    (request,) = changed(site, do="edit", gprId="vision/runs", extend="0d0h30m")["requests"]
    assert request["change"] == "extended"
    assert "would delay" in request["message"]


def test_a_move_within_a_priority(site: Site) -> None:
    changes = [
        {"do": "edit", "gprId": "vision/second", "priority": 101},
        {"do": "move", "gprId": "nlp/secret", "to": "last"},
    ]
    assert asked(site, {"changes": [changes[1]]}, want=409)["message"].endswith("nothing to change")
    site.file("vision/second", nodes=4, duration="2h", clusters=["east"])
    site.settle()
    found = asked(site, {"changes": [{"do": "move", "gprId": "vision/second", "before": "nlp/secret"}]})
    assert [(row["name"], row["cause"]) for row in found["moved"]] == [("secret", "AdminMoved")]


def test_maintenance_names_who_waits_for_it(site: Site) -> None:
    window = {"begin": "2026-11-21T11:00:00Z", "end": "2026-11-21T14:00:00Z"}
    found = changed(site, do="maintenance", clusterName="east", **window)
    assert [(row["kind"], row["fields"]) for row in found["others"]] == [("Cluster", ["maintenance"])]
    assert ("secret", "later", "MaintenanceAdded") in [
        (row["name"], row["change"], row["cause"]) for row in found["moved"]
    ]


def test_a_later_edit_builds_on_the_earlier_ones(site: Site) -> None:
    edits = [
        {"do": "edit", "gprId": "vision/second", "priority": 150},
        {"do": "edit", "gprId": "vision/second", "exitDuration": "1h"},
    ]
    (request,) = asked(site, {"changes": edits})["requests"]
    assert (request["gpuHours"], request["change"]) == (32.0, "changed")


def test_a_manifest_needs_no_path(site: Site) -> None:
    files = new("vision/urgent", **URGENT)
    assert asked(site, {"manifests": list(files.values())}) == asked(site, {"files": files})


# -- limits and refusals ---------------------------------------------------------------------------------------------


def test_limits_are_named_with_who_may_lift_them(site: Site) -> None:
    bounds = slice_(
        "nlp", members=[{"email": "cy@example.com"}], quota={"gpus": 16}, limits={"maxPriority": 200}
    )
    site.commit({"slices/nlp/slice.yaml": bounds})
    for spec, rule, is_hard in (
        ({"priority": 250}, "PriorityTooHigh", True),
        ({"nodes": 3}, "request", False),
    ):
        found = asked(site, {"files": new("nlp/big", **spec)}, "cy-editor")
        assert [(row["name"], row["rule"], row["hard"]) for row in found["limits"]] == [
            ("big", rule, is_hard)
        ]
    assert [(row["name"], row["admins"]) for row in found["approvals"]] == [("big", ["ada"])]
    assert found["requests"][0]["needsApproval"]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        pytest.param({}, 422, "at least one change", id="nothing"),
        pytest.param({"files": {"README.md": "x"}}, 422, "not the path of a document", id="no document"),
        pytest.param({"files": {"../x": "x"}}, 422, "not the path of a document", id="outside"),
        pytest.param({"manifests": ["a: [b"]}, 422, "manifest 1: line 1", id="no YAML"),
        pytest.param({"manifests": ["kind: GPR"]}, 422, "make its path", id="no name"),
        pytest.param(
            {"changes": [{"do": "edit", "gprId": "vision/second"}]}, 422, "at least one field", id="no field"
        ),
        pytest.param({"changes": [{"do": "dance"}]}, 422, "do", id="unknown edit"),
        pytest.param(
            {"changes": [{"do": "edit", "gprId": "vision/runs", "priority": 9}]},
            409,
            "keeps its terms",
            id="terms",
        ),
        pytest.param(
            {"changes": [{"do": "end", "gprId": "vision/gone"}]}, 404, "no request", id="unknown request"
        ),
        pytest.param(
            {"changes": [{"do": "move", "gprId": "vision/second"}]}, 422, "before and to", id="move nowhere"
        ),
        pytest.param(
            {"changes": [{"do": "maintenance", "clusterName": "mars", "begin": "x", "end": "y"}]},
            404,
            "no cluster",
            id="unknown cluster",
        ),
    ],
)
def test_refusals_say_what_to_do(site: Site, body: dict[str, Any], status: int, says: str) -> None:
    assert says in asked(site, body, want=status)["message"]


def test_a_broken_file_is_a_problem_with_its_place(site: Site) -> None:
    found = asked(site, {"files": {gpr_path("vision/x"): "kind: GPR\n"}})
    assert found["verdict"] == "refused"
    assert {row["file"] for row in found["problems"]} == {gpr_path("vision/x")}
    assert found["requests"][0]["change"] == "invalid"
