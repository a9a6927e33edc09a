"""What limits, quotas of a month and burst clusters show on the command line, and what a changed policy does."""

from __future__ import annotations

from pathlib import Path

from tests.reconciler.cli.rig import NOW, Control, egs, fleet, folder, minutes, repository, request
from tests.support.repos import commit, git
from tests.support.world import cluster, slice_

WEST = {"clusters/cloud.yaml": cluster("cloud", 2, pricePerGpuHour=4.1, burst={"after": "4h"})}


def test_what_breaks_a_policy_since_it_changed_is_listed_with_what_to_do(tmp_path: Path) -> None:
    """C5: who runs keeps its terms, who waits is not planned; both are told what they can do."""
    files = fleet(**request("a/runs", duration="3h"), **request("b/ok"))
    repo = repository(tmp_path / "r", files)
    control = Control(repo, tmp_path / "state")
    control.run(minutes(10))
    commit(repo, request("a/waits", duration="2h"))
    control.run(minutes(20))
    assert egs("get", "problems", "--repo", repo, "-o", "json").json == []
    commit(repo, {"slices/a/slice.yaml": slice_("a", limits={"maxDuration": "1h"})})
    control.run(minutes(30))
    rows = egs("get", "problems", "--repo", repo, "-o", "json").json
    assert [(row["file"], row["rule"], row["severity"]) for row in rows] == [
        ("slices/a/gprs/runs.yaml", "DurationTooLong", "warning"),
        ("slices/a/gprs/waits.yaml", "DurationTooLong", "error"),
    ]
    runs, waits = rows
    assert runs["message"] == (
        "a/runs is Provisioned and violates a policy: duration is 0d3h0m but the slice allows at most 0d1h0m"
    )
    assert "it keeps its terms until 2026-11-21T11:02:00Z" in runs["fix"]
    assert "`egs gpr edit a/waits`" in waits["fix"]
    (refused,) = egs("plan", "--repo", repo, "--now", "2026-11-21T08:30:00Z", "-o", "json").json["refused"]
    assert (refused["name"], refused["reason"]) == ("waits", "LimitExceeded")
    (why,) = egs("why", "a/waits", "--repo", repo, "-o", "json").json["reasons"][:1]
    assert why == "It is not planned: duration is 0d2h0m but the slice allows at most 0d1h0m."


def test_a_repository_without_a_project_still_lists_its_problems(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", request("a/x"))
    assert "ProjectMissing" in {
        row["rule"] for row in egs("get", "problems", "--repo", repo, "-o", "json").json
    }


def test_a_quote_says_that_the_hours_of_the_month_are_taken(tmp_path: Path) -> None:
    """D2, C4: nothing is promised to who could not be let in."""
    files = fleet(**request("a/one", duration="2h"))
    files["slices/a/slice.yaml"] = slice_("a", limits={"gpuHoursPerMonth": 20})
    repo = folder(tmp_path / "f", files)
    asked = ("wait", "--repo", repo, "--now", NOW, "--slice", "a", "--nodes", "1", "--duration")
    (row,) = egs(*asked, "30m", "-o", "json").json
    assert row["estimatedStartTime"] is not None
    answer = egs(*asked, "1h", "-o", "json")
    (row,) = answer.json
    assert (row["estimatedStartTime"], row["reason"]) == (None, "LimitExceeded")
    assert "4 are left in 2026-11 and it needs 8" in answer.err
    assert answer.code == 1


def test_a_quote_says_that_an_admin_is_needed_beyond_the_months_quota(tmp_path: Path) -> None:
    """D2, E5."""
    files = fleet(**request("a/one", duration="2h"))
    files["slices/a/slice.yaml"] = slice_("a", quota={"gpuHoursPerMonth": 20})
    repo = folder(tmp_path / "f", files)
    asked = ("wait", "--repo", repo, "--now", NOW, "--slice", "a", "--nodes", "1", "--duration")
    assert [row["needsApproval"] for row in egs(*asked, "30m", "-o", "json").json] == [False]
    assert [row["needsApproval"] for row in egs(*asked, "1h", "-o", "json").json] == [True]


def test_a_quote_of_a_burst_cluster_says_when_it_is_used_and_at_which_price(tmp_path: Path) -> None:
    """F14."""
    files = fleet(**WEST)
    files["slices/a/slice.yaml"] = slice_("a", ("east", "cloud"))
    repo = folder(tmp_path / "f", files)
    answer = egs("wait", "--repo", repo, "--now", NOW, "--slice", "a", "--nodes", "1", "--duration", "1h")
    assert "cloud/h100 is in a burst cluster" in answer.err
    assert "within 0d4h0m, at 4.1 per GPU-hour" in answer.err


def test_a_plan_of_a_plain_folder_lets_in_by_name(tmp_path: Path) -> None:
    """Nobody recorded when they were filed."""
    files = fleet(**request("a/one"), **request("a/two"), **request("a/zoo"))
    files["slices/a/slice.yaml"] = slice_("a", limits={"maxWaiting": 2})
    repo = folder(tmp_path / "f", files)
    plan = egs("plan", "--repo", repo, "--now", NOW, "-o", "json").json
    assert [(row["name"], row["reason"]) for row in plan["requests"]] == [
        ("one", None),
        ("two", None),
        ("zoo", "LimitExceeded"),
    ]
    (refused,) = plan["refused"]
    assert "its slice may have 2 requests in the queue" in refused["message"]


def test_a_request_may_prefer_the_lowest_price_and_say_how_long(tmp_path: Path) -> None:
    """F15: the start that is told is that of the pool which it will get, not of the earliest."""
    files = fleet(**{"clusters/cloud.yaml": cluster("cloud", 2, pricePerGpuHour=1.0)})
    files["slices/a/slice.yaml"] = slice_("a", ("east", "cloud"))
    files["slices/b/slice.yaml"] = slice_("b", ("cloud",))
    files |= request("b/x", nodes=2, duration="1h", priority=300)
    repo = folder(tmp_path / "f", files)
    asked = (*f"gpr create --now {NOW} --nodes 1 --duration 1h --prefer price --repo".split(), repo)
    dear = egs(*asked, "a/hasty", "--max-wait", "30m", "--dry-run", "-o", "json").json["estimate"]
    cheap = egs(*asked, "a/patient", "-o", "json").json["estimate"]
    assert (dear["cluster"], cheap["cluster"]) == ("east", "cloud")
    assert "prefer: price" in (repo / "slices/a/gprs/patient.yaml").read_text()


def test_other_terms_of_a_burst_cluster_are_shown_as_the_controller_will_take_them(tmp_path: Path) -> None:
    """D8, F14: what was worked out with the terms of before is no answer."""
    files = fleet(**request("a/run", duration="5h"), **request("b/wait"))
    files |= {
        "clusters/east.yaml": cluster(nodes=1),
        "clusters/cloud.yaml": cluster("cloud", 1, burst={"after": "20h"}),
    }
    files |= {f"slices/{name}/slice.yaml": slice_(name, ("east", "cloud")) for name in "ab"}
    repo = repository(tmp_path / "r", files)
    control = Control(repo, tmp_path / "state")
    control.run(minutes(10))
    git(repo, "branch", "change", "main")
    commit(repo, {"clusters/cloud.yaml": cluster("cloud", 1, burst={"after": "1h"})}, branch="change")
    asked = ("plan", "--repo", repo, "--now", "2026-11-21T08:10:00Z", "-o", "json", "--ref", "change")
    alone, beside = (egs(*asked, *more).json for more in ((), ("--against", "main")))
    (row,) = (row for row in alone["requests"] if row["name"] == "wait")
    assert (row["cluster"], row["estimatedStartTime"]) == ("cloud", "2026-11-21T08:12:00Z")
    assert [(m["name"], m["now"]) for m in beside["changes"]] == [("wait", "2026-11-21T08:12:00Z")]
