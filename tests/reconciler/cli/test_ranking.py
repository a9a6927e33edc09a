"""`egs why` tells why a request stands where it does, `egs wait --prefer` where one would go (E4, F14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import NOW, Control, egs, fleet, folder, minutes, repository, request
from tests.support.repos import commit
from tests.support.world import cluster, project, slice_


def _place(repo: Path, key: str, now: str) -> str:
    done = egs("why", key, "--repo", repo, "--now", now, "-o", "json")
    assert done.code == 0, done.err
    (found,) = [s for s in done.json["reasons"] if s.startswith("Its place")]
    return str(found)


def test_what_the_rank_reads_is_told_in_the_order_in_which_it_counts(tmp_path: Path) -> None:
    policy = {"fairness": {"halfLife": "7d", "step": 10}, "ageing": {"every": "1h", "step": 10}}
    files = fleet(**{"clusters/east.yaml": cluster(nodes=1), "project.yaml": project(scheduling=policy)})
    files |= {"slices/a/slice.yaml": slice_("a", weight=2)}
    repo = repository(tmp_path / "r", files)
    control = Control(repo, tmp_path / "state")
    commit(repo, request("b/runs", duration="20h"))
    control.run(minutes(10))
    commit(repo, request("a/first", duration="10h", priority=110))
    control.run(minutes(11))
    commit(repo, request("a/second", duration="1h", priority=110, move=3))
    control.run(minutes(15))
    said = _place(repo, "a/second", "2026-11-21T09:30:00Z")
    assert said.startswith("Its place: priority 110; plus 10 for waiting, so it counts as 120; ")
    assert "an admin moved it ahead by 3; " in said
    assert "had used or held 0 GPU-hours and asked for 80 before it, which counts as 80 now" in said
    assert ", in steps of 10 over its weight 2" in said
    assert said.endswith("the earlier filed comes first).")
    described = egs(
        "describe", "gpr", "a/second", "--repo", repo, "--now", "2026-11-21T09:30:00Z", "-o", "json"
    )
    assert said in described.json["why"]


def test_what_was_displaced_too_often_says_so(tmp_path: Path) -> None:
    policy = {"maxDisplacements": 1, "fairness": None}
    files = fleet(**{"clusters/east.yaml": cluster(nodes=1), "project.yaml": project(scheduling=policy)})
    files |= {"slices/c/slice.yaml": slice_("c")}
    repo = repository(tmp_path / "r", files)
    control = Control(repo, tmp_path / "state")
    for minute, filed in enumerate(
        (request("b/runs", duration="20h"), request("a/low"), request("c/higher", priority=150))
    ):
        commit(repo, filed)
        control.run(minutes(10 * minute + 5))
    said = _place(repo, "a/low", "2026-11-21T08:30:00Z")
    assert "displaced 1 time, so it comes first within its priority band and slice, 200; " in said


def test_a_folder_knows_no_time_of_filing(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet(**request("a/one")))
    assert _place(repo, "a/one", NOW) == (
        "Its place: priority 101; share 0 (less comes first): its slice had used or held 0 GPU-hours and asked for 0 "
        "before it, which counts as 0 now, in steps of 50 over its weight 1; its filing time is not recorded, so its "
        "name breaks ties."
    )


def test_who_makes_room_is_told_when_it_starts_again(tmp_path: Path) -> None:
    policy = {"preemption": {"guaranteed": "0m"}}
    files = fleet(**{"clusters/east.yaml": cluster(nodes=1), "project.yaml": project(scheduling=policy)})
    repo = repository(tmp_path / "r", files)
    control = Control(repo, tmp_path / "state")
    commit(repo, request("a/low", duration="3h", priority=50))
    control.run(minutes(60))
    commit(repo, request("b/high", duration="1h", priority=250))
    control.run(minutes(61))
    said = egs("why", "a/low", "--repo", repo, "--now", "2026-11-21T09:02:00Z", "-o", "json").json["reasons"]
    assert "It was evicted for b/high and resumes at 2026-11-21T10:" in "\n".join(said)
    rows = egs("plan", "--repo", repo, "--now", "2026-11-21T09:02:00Z", "-o", "json").json["requests"]
    assert [(row["name"], row["phase"], row["rank"]) for row in rows] == [
        ("low", "Provisioned", None),
        ("high", "Queued", 1),
    ]


POOLS = [
    {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 2},
    {
        "name": "l40s",
        "gpuShape": "L40S-48GB",
        "gpusPerNode": 8,
        "memoryPerGpu": 48,
        "nodes": 2,
        "pricePerGpuHour": 5,
    },
]


@pytest.mark.parametrize(
    ("prefer", "pool", "why"),
    [
        pytest.param("price", "h100", "the lowest price", id="the cheapest, though another one is as early"),
        pytest.param("memory", "l40s", "the least memory", id="the least memory that is enough"),
        pytest.param("earliest", "l40s", "the earliest start", id="the earliest start"),
    ],
)
def test_a_quote_names_the_pool_that_a_wish_leads_to(
    tmp_path: Path, prefer: str, pool: str, why: str
) -> None:
    files = fleet(**{"clusters/east.yaml": cluster(pools=POOLS, pricePerGpuHour=2)})
    files |= request("b/run", nodes=1, duration="2h", gpuShape="H100-80GB", priority=300)
    repo = folder(tmp_path / "f", files)
    asked = ("wait", "--repo", repo, "--now", NOW, "--slice", "a", "--nodes", "2", "--duration", "1h")
    done = egs(*asked, "--prefer", prefer, "-o", "json")
    assert {row["pool"]: row["preferred"] for row in done.json} == {
        name: name == pool for name in ("h100", "l40s")
    }
    assert f"it would get east/{pool}: {why}" in done.err
    assert "preferred" not in egs(*asked, "-o", "json").json[0]


def test_a_wish_that_is_none_is_refused(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet())
    done = egs("wait", "--repo", repo, "--slice", "a", "--nodes", "1", "--duration", "1h", "--prefer", "luck")
    assert done.code == 2
    assert "prefer" in done.err
