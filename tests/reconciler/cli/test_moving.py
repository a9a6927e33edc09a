"""E4: `egs gpr move` puts a request where an admin says, in as few files as possible, and says whom that moves."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.changes.move import MOST, fewest, renumbered
from scheduler.fairness.rank import RankInputs, rank_key
from tests.reconciler.cli.rig import (
    ADA,
    BO,
    Control,
    egs,
    fleet,
    folder,
    main_file,
    minutes,
    repository,
    request,
)
from tests.support.repos import tip
from tests.support.world import project, slice_

QUEUE = {**request("a/run", nodes=4), **request("b/one", nodes=4)}
AT = "2026-11-21T08:05:00Z"
FREE = {"slices/a/slice.yaml": slice_("a")}


@st.composite
def orders(draw: st.DrawFn) -> list[RankInputs]:
    """Waiting requests of one priority, in any order at all."""
    numbers = st.integers(-3, 3) | st.sampled_from([-MOST, MOST])
    count = draw(st.integers(1, 7))
    found = [
        RankInputs(
            f"s/{i}", 101, move=draw(numbers), share=draw(st.integers(0, 1)), filed_at=draw(st.integers(0, 2))
        )
        for i in range(count)
    ]
    return draw(st.permutations(found))


def ranks(order: list[RankInputs], numbers: dict[str, int]) -> list[object]:
    return [(-numbers.get(q.key, q.move), q.share, q.filed_at, q.key) for q in order]


@given(orders())
def test_the_numbers_give_exactly_the_order_that_was_asked_for(order: list[RankInputs]) -> None:
    numbers = renumbered(order)
    if numbers is not None:
        assert all(one < other for one, other in pairwise(ranks(order, numbers)))  # type: ignore[operator]
        assert all(abs(number) <= MOST for number in numbers.values())


@given(orders(), st.data())
def test_a_request_that_is_moved_leaves_the_order_of_all_others(
    order: list[RankInputs], data: st.DataObject
) -> None:
    """Whose place no other request passes keeps the promise; so the others' order must not change."""
    moved = data.draw(st.sampled_from(order))
    others = sorted((q for q in order if q is not moved), key=rank_key)
    place = data.draw(st.integers(0, len(others)))
    wanted = [*others[:place], moved, *others[place:]]
    numbers = fewest(wanted, moved.key)
    if numbers is not None:
        assert all(one < other for one, other in pairwise(ranks(wanted, numbers)))  # type: ignore[operator]


def waiting(tmp_path: Path, **project_spec: object) -> tuple[Path, Control]:
    """a/run holds all nodes; b/one, b/two and a/three wait, in this order."""
    files = {"project.yaml": project(**project_spec), **FREE, **request("a/run", nodes=4)}
    repo = repository(tmp_path / "r.git", fleet(**files))
    control = Control(repo, tmp_path / "state")
    control.run(minutes(1))
    for minute, key in ((2, "b/one"), (3, "b/two"), (4, "a/three")):
        done = egs("gpr", "create", key, "--nodes", 4, "--duration", "1h", "--repo", repo, "--author", BO)
        assert done.code == 0, done.err
        control.run(minutes(minute))
    return repo, control


def queue(repo: Path, at: str = "2026-11-21T08:30:00Z") -> list[str]:
    rows = egs("get", "queue", "--repo", repo, "--now", at, "-o", "json").json
    return [f"{row['slice']}/{row['name']}" for row in rows]


def test_a_dry_run_says_whom_it_moves_and_writes_nothing(tmp_path: Path) -> None:
    repo, _ = waiting(tmp_path)
    before = tip(repo)
    done = egs("gpr", "move", "--now", AT, "a/three", "--first", "--dry-run", "--repo", repo, "-o", "json")
    assert (done.code, tip(repo)) == (0, before), done.err
    answer = done.json
    assert answer["moves"] == {"a/three": 1}
    assert [(c["name"], c["change"], c["cause"], c["by"]) for c in answer["changes"]] == [
        ("three", "earlier", None, None),
        ("one", "later", "AdminMoved", "a/three"),
        ("two", "later", "AdminMoved", "a/three"),
    ]
    table = egs("gpr", "move", "--now", AT, "a/three", "--first", "--dry-run", "--repo", repo)
    assert "dry run: 1 file would change, with this effect:" in table.err
    assert "AdminMoved (a/three)" in table.out


def test_a_move_is_one_commit_and_the_controller_does_what_was_said(tmp_path: Path) -> None:
    repo, control = waiting(tmp_path)
    assert queue(repo) == ["b/one", "b/two", "a/three"]
    said = egs(
        "gpr",
        "move",
        "--now",
        AT,
        "a/three",
        "--before",
        "b/two",
        "--repo",
        repo,
        "--author",
        ADA,
        "-o",
        "json",
    ).json
    assert said["commit"] == tip(repo)
    control.run(minutes(6))
    assert queue(repo) == ["b/one", "a/three", "b/two"]
    starts = {
        f"{row['slice']}/{row['name']}": row["estimatedStartTime"]
        for row in egs("get", "queue", "--now", AT, "--repo", repo, "-o", "json").json
    }
    for change in said["changes"]:
        assert starts[f"{change['slice']}/{change['name']}"] == change["now"]
    slips = egs("describe", "gpr", "b/two", "--repo", repo, "-o", "json").json["status"]["slips"]
    assert [(slip["cause"], slip["by"]) for slip in slips] == [("AdminMoved", "a/three")]
    assert egs("describe", "gpr", "b/one", "--repo", repo, "-o", "json").json["status"]["slips"] == []
    last = egs("gpr", "move", "--now", AT, "b/one", "--last", "--repo", repo, "--author", ADA)
    assert last.code == 0, last.err
    control.run(minutes(8))
    assert queue(repo) == ["a/three", "b/two", "b/one"]
    assert "move: -1" in main_file(repo, "slices/b/gprs/one.yaml")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(
            ["a/three"], 2, "one of --first, --last and --before", id="where it goes has to be said"
        ),
        pytest.param(["a/three", "--first", "--last"], 2, "one of --first", id="once"),
        pytest.param(["b/one", "--first"], 1, "b/one is first already", id="it is there already"),
        pytest.param(["b/one", "--before", "b/two"], 1, "b/one is there already", id="there"),
        pytest.param(["a/run", "--first"], 1, "only waiting requests can be moved", id="it runs"),
        pytest.param(["b/one", "--before", "a/run"], 1, "not in the queue", id="the other one runs"),
        pytest.param(["b/one", "--before", "b/one"], 2, "before itself", id="before itself"),
        pytest.param(["b/one", "--before", "b/onee"], 1, "did you mean b/one", id="a name that is near"),
    ],
)
def test_what_cannot_be_moved_says_why(tmp_path: Path, words: list[str], code: int, says: str) -> None:
    repo, _ = waiting(tmp_path)
    before = tip(repo)
    done = egs("gpr", "move", "--now", AT, *words, "--repo", repo, "--author", ADA)
    assert (done.code, tip(repo)) == (code, before)
    assert says in done.err


def test_a_move_stays_within_one_priority(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet(**QUEUE, **request("b/high", nodes=4, priority=250)))
    done = egs("gpr", "move", "--now", AT, "b/one", "--before", "b/high", "--repo", repo)
    assert done.code == 1
    assert "`egs gpr priority b/one 250` changes the priority first" in done.err


def test_a_move_passes_nobody_who_stands_higher_for_having_waited(tmp_path: Path) -> None:
    """And says what would; once both waited as long, it does."""
    repo, _ = waiting(tmp_path, scheduling={"ageing": {"every": "10m", "step": 7}})
    words = ["gpr", "move", "a/three", "--before", "b/one", "--repo", repo, "--author", ADA, "--dry-run"]
    early = egs(*words, "--now", "2026-11-21T08:12:30Z", "-o", "json")
    assert early.code == 1
    assert "b/one has priority 108 (7 of it for waiting) and a/three has priority 101" in early.err
    assert "`egs gpr priority a/three 108` changes the priority first" in early.err
    assert egs(*words, "--now", "2026-11-21T08:13:00Z", "-o", "json").json["moves"] == {"a/three": 1}
