"""`limits.requestsPerSlice` bounds what counts: the newest files are refused, each by itself, and everywhere alike."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.loop import Reconciler
from reconciler.pulls.check import PullCheck
from schemas.reading.reader import REGULAR
from schemas.rules.check import check_files
from schemas.status.gpr_status import Phase
from tests.reconciler.pulls.pull import Pulls, request
from tests.support.world import World, at, gpr_path, project, slice_

TWO = {"project.yaml": project(limits={"requestsPerSlice": 2})}
FULL = {**TWO, **request("a/x", 1, "1h"), **request("a/y", 1, "2h")}


def full() -> Pulls:
    """A slice that has as many requests as it may; a/x runs."""
    return Pulls.on(FULL)


def refused(check: PullCheck) -> set[tuple[str, str]]:
    return {(problem.file, problem.rule) for problem in check.problems if problem.severity == "error"}


def problems(world: World) -> set[tuple[str, str]]:
    """As the status branch lists them, and as a controller without a memory finds them."""
    found = [
        {(p.file, p.rule) for p in c._memory.main.desired.problems}
        for c in (world.controller, restarted(world))
    ]
    assert found[0] == found[1]
    return found[0]


def restarted(world: World) -> Reconciler:
    world.controller = world.start()
    world.controller.cycle(world.now)
    return world.controller


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(request("a/z", 1, "1h"), id="a name that comes last"),
        pytest.param(request("a/a", 1, "1h", priority=190), id="a name that comes first, and a higher rank"),
    ],
)
def test_one_too_many_is_refused_by_itself(files: Mapping[str, str | None]) -> None:
    pulls, path = full(), next(iter(files))
    check = pulls.check(files)
    assert (check.verdict, refused(check)) == ("refused", {(path, "TooManyRequests")})
    pulls.then(files)
    assert pulls.world.facts().requests.keys() == {"a/x", "a/y"}
    assert problems(pulls.world) == {(path, "TooManyRequests")}


def test_of_several_that_came_together_as_many_count_as_there_is_room_for() -> None:
    pulls = Pulls.on(TWO, request("a/x", 1, "1h"))
    pulls.then({**request("a/b", 1, "1h"), **request("a/c", 1, "1h"), **request("b/c", 1, "1h")})
    assert pulls.world.facts().requests.keys() == {"a/x", "a/b", "b/c"}
    assert problems(pulls.world) == {(gpr_path("a/c"), "TooManyRequests")}


def test_what_waits_for_room_counts_as_soon_as_there_is_some_the_oldest_first() -> None:
    pulls = full().then(request("a/second", 1, "1h")).then(request("a/later", 1, "1h"))
    pulls.then({gpr_path("a/y"): None})
    assert pulls.world.facts().requests.keys() == {"a/x", "a/second"}


def test_a_tighter_limit_throws_nobody_out() -> None:
    pulls = full()
    tighter = {"project.yaml": project(limits={"requestsPerSlice": 1})}
    assert refused(pulls.check(tighter)) == set()
    pulls.then(tighter)
    assert {status.phase for status in pulls.world.facts().requests.values()} <= {
        Phase.QUEUED,
        Phase.PROVISIONING,
        Phase.PROVISIONED,
    }
    assert problems(pulls.world) == set()
    assert refused(pulls.check(request("a/y", 1, "30m"))) == set(), "an edit is no new request"
    assert refused(pulls.check(request("a/new", 1, "1h"))) == {(gpr_path("a/new"), "TooManyRequests")}


def test_a_finished_request_is_not_refused_for_its_file() -> None:
    pulls = Pulls.on(TWO, request("a/done", 1, "10m"))
    pulls.world.run(at(60))
    pulls.then({**request("a/a", 1, "1h"), **request("a/b", 1, "1h")})
    assert problems(pulls.world) == {(gpr_path("a/b"), "TooManyRequests")}


def test_without_a_status_the_last_names_are_taken_for_the_newest() -> None:
    files = {path: text or "" for path, text in {**FULL, **request("a/a", 1, "1h")}.items()}
    files["slices/a/slice.yaml"] = slice_("a")
    found = check_files([(path, REGULAR, text.encode()) for path, text in files.items()]).problems
    assert [p.file for p in found if p.rule == "TooManyRequests"] == [gpr_path("a/y")]


def test_with_a_status_validation_refuses_what_the_controller_refuses() -> None:
    files = {path: text or "" for path, text in {**FULL, **request("a/a", 1, "1h")}.items()}
    files["slices/a/slice.yaml"] = slice_("a")
    known = {gpr_path("a/x"), gpr_path("a/y")}
    listed = [(path, REGULAR, text.encode()) for path, text in files.items()]
    found = check_files(listed, is_recorded=known.__contains__).problems
    assert [p.file for p in found if p.rule == "TooManyRequests"] == [gpr_path("a/a")]
