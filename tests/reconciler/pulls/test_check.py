"""What a pull request is told before it is merged is what the controller makes of it afterwards: A1, B8, D8."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.pulls.check import PullCheck
from reconciler.pulls.check_sentences import description
from schemas.reading.units import instant
from schemas.status.gpr_status import Cause, Phase
from tests.reconciler.pulls.pull import Pulls, only_request, request
from tests.support.world import at, cluster, gpr_path, project, slice_

FULL = request("b/run", 4, "3h")
"""Holds the whole fleet for three hours and two minutes from the beginning."""


LATER = request("a/x", 1, "2h", notBefore="2026-11-22T08:00:00Z")


def minutes(check: PullCheck) -> float | None:
    """When the one request starts, in minutes."""
    start = only_request(check).start
    return None if start is None else (start - at(0)) / timedelta(minutes=1)


def test_a_request_that_starts_at_once() -> None:
    check = Pulls.on().check(request("a/train", 2, "6h"))
    found = only_request(check)
    assert (found.change, found.phase, found.pool, found.nodes) == (
        "new",
        Phase.QUEUED,
        ("east", "h100"),
        2,
    )
    assert (found.gpus, found.quota, found.gpu_hours, found.amount) == (16, 16, 96.0, 240.0)
    assert check.verdict == "clear"
    assert check.moved == ()


def test_it_waits_for_whoever_holds_the_nodes() -> None:
    pulls = Pulls.on(FULL)
    assert (minutes(pulls.check(request("a/train"))) or 0) > 180


def test_the_plan_of_the_check_is_what_the_controller_promises_after_the_merge() -> None:
    pulls = Pulls.on(FULL).then(request("b/next", 2, "2h"), request("a/low", 1, "2h", priority=50))
    files = {**request("a/train", 2, "1h"), **request("a/big", 2, "5h", priority=150)}
    check = pulls.check(files)
    pulls.world.commit(files)
    pulls.world.run(pulls.world.now)
    promised = {key: pulls.world.status(key).estimated_start_time for key in ("a/train", "a/big")}
    assert {found.key: found.start for found in check.requests} == promised
    moved = {effect.key: effect.now for effect in check.moved}
    for key, now in moved.items():
        assert now is not None
        assert pulls.world.status(key).estimated_start_time == instant(now)


def test_who_has_to_make_room_is_named_and_the_start_is_the_one_that_gives() -> None:
    """E7: what the check shows is what the controller decides after the merge."""
    policy = {"preemption": {"guaranteed": "0m", "leastGain": "10m"}}
    pulls = Pulls.on(request("b/run", 4, "3h", priority=50), {"project.yaml": project(scheduling=policy)})
    files = request("a/urgent", priority=150)
    check = pulls.check(files)
    assert (check.sent_away, minutes(check)) == (("b/run",), 5 + 10 + 5 + 2)
    assert "1 running request is evicted and no request waits longer" in description(check)
    pulls.then(files)
    assert pulls.world.status("b/run").evicted_by == "a/urgent"
    assert pulls.world.status("a/urgent").estimated_start_time == only_request(check).start


def test_a_request_that_is_stopped_says_so() -> None:
    """D13."""
    found = only_request(Pulls.on().check(request("a/later", stopped=True)))
    assert (found.reason, found.start) == ("Stopped", None)


def test_who_has_to_wait_longer_is_named_with_the_cause() -> None:
    pulls = Pulls.on(FULL).then(request("b/next", 4, "2h"))
    check = pulls.check(request("a/urgent", 2, "4h", priority=190))
    (effect,) = check.moved
    assert (effect.key, effect.change, effect.cause, effect.by, effect.proven) == (
        "b/next",
        "later",
        Cause.HIGHER_RANK_ARRIVED,
        "a/urgent",
        True,
    )


@pytest.mark.parametrize(
    ("before", "change", "kind"),
    [
        pytest.param(
            LATER,
            request("a/x", 2, "2h"),
            "changed",
            id="edited",
        ),
        pytest.param(
            LATER,
            {gpr_path("a/x"): None},
            "cancelled",
            id="file gone",
        ),
        pytest.param(
            LATER,
            request("a/x", 1, "2h", earlyRelease=True),
            "cancelled",
            id="taken back",
        ),
        pytest.param(request("a/x"), request("a/x", earlyRelease=True), "released", id="ended early"),
        pytest.param(request("a/x"), request("a/x", extend="0d0h10m"), "extended", id="extended"),
        pytest.param(request("a/x"), {gpr_path("a/x"): None}, "deleted", id="a running one's file gone"),
        pytest.param({}, request("a/x", 0), "invalid", id="refused"),
    ],
)
def test_what_is_done_to_a_request(before: dict[str, str], change: dict[str, str], kind: str) -> None:
    assert only_request(Pulls.on(before).check(change)).change == kind


def test_an_edit_says_when_it_would_have_started() -> None:
    pulls = Pulls.on(FULL).then(request("a/x", 1, "1h"))
    found = only_request(pulls.check(request("a/x", 1, "2h")))
    assert found.was == pulls.world.status("a/x").estimated_start_time


# -- approval ------------------------------------------------------------------------------------------------


def test_above_quota_it_says_who_approves_how_and_when_it_would_start() -> None:
    check = Pulls.on().check(request("a/big", 3), by="bo@example.com")
    (need,) = check.needs
    assert check.verdict == "waits"
    assert (need.key, need.admins, need.count, need.command) == ("a/big", ("ada",), 1, "egs approve a/big")
    assert "24 GPUs" in need.why
    assert "16" in need.why
    found = only_request(check)
    assert (found.needs_approval, found.phase, found.gpus) == (True, Phase.PENDING_APPROVAL, 24)
    assert minutes(check) is not None


def test_of_many_that_wait_for_approval_a_few_are_named() -> None:
    """The rest is counted: a limit of the project may concern thousands."""
    files: dict[str, str | None] = {}
    for number in range(8):
        files |= request(f"a/big-{number}", 3)
    said = description(Pulls.on().check(files))
    assert said.startswith(
        "Valid. a/big-0, a/big-1, a/big-2, a/big-3, a/big-4 and 3 others wait for approval"
    )


def test_nobody_approves_their_own_request() -> None:
    (need,) = Pulls.on().check(request("a/big", 3), by="ada@example.com").needs
    assert need.admins == ()


def test_but_a_team_with_one_admin_may_allow_it() -> None:
    alone = {"project.yaml": project(approval={"ownRequests": True})}
    (need,) = Pulls.on(alone).check(request("a/big", 3), by="ada@example.com").needs
    assert need.admins == ("ada",)


def test_two_admins_above_a_second_threshold() -> None:
    two = {"project.yaml": project(approval={"twoAdminsAbove": {"gpus": 20}})}
    (need,) = Pulls.on(two).check(request("a/big", 3)).needs
    assert need.count == 2


def test_a_lower_quota_sends_waiting_requests_back_to_an_admin() -> None:
    pulls = Pulls.on(FULL).then(request("a/x", 2, "1h"))
    check = pulls.check({"slices/a/slice.yaml": slice_("a", quota={"gpus": 8})}, by="ada@example.com")
    assert [need.key for need in check.needs] == ["a/x"]
    (effect,) = check.moved
    assert (effect.key, effect.change, effect.cause) == ("a/x", "refused", Cause.POLICY_CHANGED)


# -- problems ------------------------------------------------------------------------------------------------


def test_errors_of_its_files_have_their_places() -> None:
    check = Pulls.on().check(request("a/x", 1, "1h", priority=250))
    (problem,) = check.problems
    assert (problem.file, problem.rule, problem.severity) == (gpr_path("a/x"), "PriorityTooHigh", "error")
    assert problem.line > 1
    assert check.verdict == "refused"


def test_what_it_breaks_elsewhere_is_its_problem() -> None:
    pulls = Pulls.on(request("a/x", 2, "1h", notBefore="2026-11-22T08:00:00Z"))
    check = pulls.check({"clusters/east.yaml": cluster(nodes=1)})
    assert [(p.file, p.rule) for p in check.problems if p.severity == "error"] == [
        (gpr_path("a/x"), "FitsNowhere")
    ]


def test_what_was_broken_before_is_not() -> None:
    pulls = Pulls.on({gpr_path("b/broken"): "kind: GPR\n"})
    assert pulls.check(request("a/x")).problems == ()


def test_terms_of_a_running_request_may_not_change() -> None:
    check = Pulls.on(request("a/x", 1, "1h")).check(request("a/x", 2, "1h"))
    (problem,) = [p for p in check.problems if p.severity == "error"]
    assert (problem.rule, problem.file) == ("ForbiddenEdit", gpr_path("a/x"))
    assert problem.line > 1


# -- behind, conflicts, stale --------------------------------------------------------------------------------


def test_a_branch_that_is_behind_is_judged_on_main_as_it_is() -> None:
    pulls = Pulls.on()
    start = pulls.main()
    pulls.world.commit(FULL)
    pulls.world.run(pulls.world.now)
    check = pulls.check(request("a/train"), start)
    assert check.stamps.behind == 1
    assert [found.key for found in check.requests] == ["a/train"], "what others merged is not undone by it"
    assert (minutes(check) or 0) > 180


def test_a_file_that_both_changed_is_a_conflict() -> None:
    pulls = Pulls.on(request("a/x", 1, "1h", notBefore="2026-11-22T08:00:00Z"))
    start = pulls.main()
    pulls.world.commit(request("a/x", 1, "2h", notBefore="2026-11-22T08:00:00Z"))
    check = pulls.check({**request("a/x", 2, "1h"), **request("a/y")}, start)
    assert check.conflicts == (gpr_path("a/x"),)
    assert check.verdict == "refused"
    assert [found.key for found in check.requests] == ["a/y"]


def test_the_same_change_on_both_sides_is_none() -> None:
    pulls = Pulls.on()
    start = pulls.main()
    pulls.world.commit(request("a/x"))
    check = pulls.check(request("a/x"), start)
    assert (check.conflicts, check.requests) == ((), ())


def test_a_status_that_has_not_answered_main_yet_is_told() -> None:
    pulls = Pulls.on(FULL)
    pulls.world.commit(request("b/fresh", 1, "1h"))
    check = pulls.check(request("a/x"))
    assert not check.stamps.is_answered
    assert [e.key for e in check.moved] == [], (
        "what main has and the status has not is no effect of the change"
    )


def test_without_a_status_it_plans_from_the_files() -> None:
    pulls = Pulls.on(request("a/x"))
    del pulls.world.remote.tips["egs/status"]
    check = pulls.check(request("a/y"))
    assert check.stamps.status is None
    assert minutes(check) is not None


def test_other_documents_are_told_by_their_fields() -> None:
    changed = slice_("a", quota={"gpus": 64}, limits={"maxPriority": 200}, description="More")
    check = Pulls.on().check({"slices/a/slice.yaml": changed, "README.md": "Hello"})
    (other,) = check.others
    assert (other.path, other.kind, other.change, other.fields) == (
        "slices/a/slice.yaml",
        "Slice",
        "changed",
        ("description", "quota"),
    )
