"""What a change that was not pushed is told: what a pull request with it is told, and what its merge then does. E4."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pulls.check import PullCheck
from tests.reconciler.pulls.pull import Pulls
from tests.reconciler.pulls.test_before_and_after import CHANGES, PILOT, QUEUE
from tests.support.profile import law
from tests.support.world import BO, at, gpr_path

BROKEN = {gpr_path("b/broken"): "kind: GPR\n"}


@pytest.fixture(scope="module")
def pulls() -> Pulls:
    found = Pulls.on(PILOT)
    found.world.run(at(30))
    return found.then(QUEUE)


def said(check: PullCheck) -> PullCheck:
    """Without the head, which has no commit here."""
    return replace(check, stamps=replace(check.stamps, head=""))


@law(30)
@given(chosen=st.sets(st.integers(0, len(CHANGES) - 1), min_size=1, max_size=4))
def test_it_equals_the_check_of_a_pull_request_with_the_change(pulls: Pulls, chosen: set[int]) -> None:
    files: dict[str, str | None] = {}
    for number in sorted(chosen):
        files |= CHANGES[number]
    assert said(pulls.proposed(files).check) == said(pulls.check(files, by=BO.email))


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_each_change_alone(pulls: Pulls, number: int) -> None:
    assert said(pulls.proposed(CHANGES[number]).check) == said(pulls.check(CHANGES[number], by=BO.email))


@pytest.mark.parametrize("number", [0, 1, 3, 7])
def test_what_main_changed_since_the_status_counts(number: int) -> None:
    late = Pulls.on(PILOT)
    late.world.commit(QUEUE)
    assert said(late.proposed(CHANGES[number]).check) == said(late.check(CHANGES[number], by=BO.email))
