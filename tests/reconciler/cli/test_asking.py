"""`egs wait`, `egs why`: a quote before filing, and reasons after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import (
    BO,
    NOW,
    Answer,
    Control,
    egs,
    fleet,
    folder,
    minutes,
    repository,
    request,
)
from tests.support.repos import commit
from tests.support.world import approval as _approval
from tests.support.world import cluster

POOLS = [
    {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 4},
    {
        "name": "l40s",
        "gpuShape": "L40S-48GB",
        "gpusPerNode": 4,
        "memoryPerGpu": 48,
        "nodes": 2,
        "pricePerGpuHour": 1.1,
    },
]
TWO_POOLS = {"clusters/east.yaml": cluster(pools=POOLS, pricePerGpuHour=2.5)}


def _wait(repo: Path, *args: str) -> Answer:
    return egs("wait", "--repo", repo, "--now", NOW, "--slice", "a", "-o", "json", *args)


def test_a_quote_for_each_pool_earliest_first(tmp_path: Path) -> None:
    """D2: wait per shape and pool, what is free now, what it costs, whether an admin is needed."""
    files = fleet(**TWO_POOLS, **request("b/run", nodes=3, duration="2h", gpuShape="H100-80GB", priority=300))
    repo = folder(tmp_path / "f", files)
    done = _wait(repo, "--nodes", "2", "--duration", "1h")
    assert done.code == 0
    assert done.json == [
        {
            "cluster": "east", "pool": "l40s", "gpuShape": "L40S-48GB", "gpusPerNode": 4, "memoryPerGpu": 48,
            "freeNodes": 2, "estimatedStartTime": "2026-11-21T08:02:00Z", "estimatedWaitSeconds": 120,
            "needsApproval": False, "pricePerGpuHour": 1.1, "reason": None,
        },
        {
            "cluster": "east", "pool": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80,
            "freeNodes": 4, "estimatedStartTime": "2026-11-21T10:09:00Z", "estimatedWaitSeconds": 7740,
            "needsApproval": False, "pricePerGpuHour": 2.5, "reason": None,
        },
    ]  # fmt: skip


def test_beyond_the_quota_a_quote_says_that_an_admin_is_needed(tmp_path: Path) -> None:
    """E5."""
    done = _wait(folder(tmp_path / "f", fleet()), "--nodes", "3", "--gpus-per-node", "8", "--duration", "6h")
    assert [(row["needsApproval"], row["estimatedWaitSeconds"]) for row in done.json] == [(True, 120)]


@pytest.mark.parametrize(
    ("args", "reasons", "sentence"),
    [
        pytest.param(["--nodes", "9"], [], "up to 4 nodes", id="more nodes than any pool has"),
        pytest.param(
            ["--nodes", "1", "--priority", "300"], ["LimitExceeded"], "at most 200", id="a hard limit"
        ),
        pytest.param(
            ["--nodes", "1", "--cluster", "west"], None, "does not include", id="a cluster it may not use"
        ),
    ],
)
def test_where_nothing_starts_the_answer_is_no(
    tmp_path: Path, args: list[str], reasons: list[str] | None, sentence: str
) -> None:
    done = _wait(folder(tmp_path / "f", fleet()), "--duration", "1h", *args)
    assert done.code == 1
    assert sentence in done.err
    if reasons is not None:
        assert [row["reason"] for row in done.json] == reasons


@pytest.mark.parametrize(
    ("args", "code"),
    [
        pytest.param(["--nodes", "1", "--duration", "soon"], 2, id="a duration that is none"),
        pytest.param(["--nodes", "0", "--duration", "1h"], 2, id="no nodes"),
        pytest.param(["--nodes", "1"], 2, id="no duration"),
        pytest.param(["--nodes", "1", "--duration", "1h", "--now", "noon"], 2, id="a time that is none"),
    ],
)
def test_a_wish_that_makes_no_sense_is_wrong_use(tmp_path: Path, args: list[str], code: int) -> None:
    done = _wait(folder(tmp_path / "f", fleet()), *args)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)


def test_an_unknown_slice_is_answered_with_the_nearest(tmp_path: Path) -> None:
    done = egs(
        "wait", "--repo", folder(tmp_path / "f", fleet()), "--slice", "aa", "--nodes", 1, "--duration", "1h"
    )
    assert (done.code, done.err) == (1, "egs: there is no slice aa; did you mean a?\n")


def test_a_quote_and_then_the_request_start_at_the_same_time(tmp_path: Path) -> None:
    """D4: what was quoted is what it gets when it is filed at once."""
    repo = repository(tmp_path / "r.git", fleet(**request("a/run", nodes=2, duration="2h")))
    Control(repo, tmp_path / "state").run(minutes(0))
    wish = ("--nodes", "1", "--gpus-per-node", "8", "--duration", "1h")
    (quoted,) = _wait(repo, *wish).json
    filed = egs(
        "gpr", "create", "a/mine", *wish, "--repo", repo, "--now", NOW, "--author", BO, "-o", "json"
    ).json
    assert filed["estimate"] == quoted
    rows = egs("plan", "--repo", repo, "--now", NOW, "-o", "json").json["requests"]
    assert next(r["estimatedStartTime"] for r in rows if r["name"] == "mine") == quoted["estimatedStartTime"]
    assert quoted["estimatedStartTime"] == "2026-11-21T10:02:00Z"


# -- why ------------------------------------------------------------------------------------------------------------


def _why(repo: Path, key: str, now: str = NOW) -> str:
    done = egs("why", key, "--repo", repo, "--now", now)
    assert done.code == 0, done.err
    return done.out


def test_why_names_what_is_in_the_way(tmp_path: Path) -> None:
    """D15: the slice's own request, and the ones that rank before it."""
    files = fleet(**request("a/one", nodes=2, duration="2h"), **request("a/two", priority=50))
    out = _why(folder(tmp_path / "f", files), "a/two")
    assert "number 2 in the queue and starts at 2026-11-21T10:02:00Z" in out
    assert "Its slice runs a/one, of higher rank" in out


def test_why_says_that_an_admin_is_needed_and_who_is_refused(tmp_path: Path) -> None:
    """E5, D18."""
    files = fleet(
        **request("a/over", nodes=3), **request("a/high", priority=250), **request("b/huge", nodes=9)
    )
    repo = folder(tmp_path / "f", files)
    assert "egs approve a/over" in _why(repo, "a/over")
    assert _why(repo, "a/high").startswith("Its file is refused: ")
    assert "What would fit: east/h100 has up to 4 nodes" in _why(repo, "b/huge")


def test_an_approved_excess_is_planned(tmp_path: Path) -> None:
    """E5: with the word beside it a plain folder plans it, too."""
    repo = folder(tmp_path / "f", fleet(**request("a/over", nodes=3)))
    assert egs("approve", "a/over", "--as", "ada", "--repo", repo).code == 0
    assert "starts at 2026-11-21T08:02:00Z" in _why(repo, "a/over")


def test_why_tells_the_cause_of_a_slip_and_what_runs(tmp_path: Path) -> None:
    """D18: a promise that moved names what moved it."""
    repo = repository(
        tmp_path / "r.git", fleet(**request("a/run", nodes=2, duration="2h"), **request("b/soft", nodes=3))
    )
    control = Control(repo, tmp_path / "state")
    control.run(minutes(5))
    commit(repo, request("b/hard", nodes=3, duration="3h", priority=300))
    control.run(minutes(6))
    assert "moved from 2026-11-21T10:09:00Z" in _why(repo, "b/soft", "2026-11-21T08:10:00Z")
    assert "because of HigherRankArrived (b/hard)" in _why(repo, "b/soft", "2026-11-21T08:10:00Z")
    assert "until 2026-11-21T10:02:00Z (1h 52m left)" in _why(repo, "a/run", "2026-11-21T08:10:00Z")


def test_why_as_data(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet(**request("a/one")))
    done = egs("why", "a/one", "--repo", repo, "--now", NOW, "-o", "json").json
    assert (done["slice"], done["name"], done["phase"], len(done["reasons"])) == ("a", "one", "Queued", 3)


@pytest.mark.parametrize(("key", "code"), [("a/none", 1), ("none", 2), ("a/b/c", 2)])
def test_a_name_that_is_none(tmp_path: Path, key: str, code: int) -> None:
    done = egs("why", key, "--repo", folder(tmp_path / "f", fleet(**request("a/one"))))
    assert (done.code, done.err.count("\n")) == (code, 1)


def test_a_rejection_is_told(tmp_path: Path) -> None:
    """E5."""
    files = fleet(**request("a/over", nodes=3))
    digest = _digest(folder(tmp_path / "f", files))
    word = _approval("a", "over", digest, decision="reject", reason="later")
    folder(tmp_path / "f", {"approvals/a/over/ada.yaml": word})
    assert "It is Rejected and never runs again: rejected by ada: later." in _why(tmp_path / "f", "a/over")


def _digest(repo: Path) -> str:
    shown = egs("describe", "gpr", "a/over", "--repo", repo, "-o", "json").json
    return str(shown["status"]["specDigest"])
