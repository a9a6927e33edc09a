"""`egs why`: what could be changed to start earlier, each with the start that it gives (D3, E1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.reconciler.cli.rig import NOW, egs, fleet, folder, request
from tests.support.world import cluster, slice_

POOLS = [
    {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 4},
    {"name": "a100", "gpuShape": "A100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 2},
]
TWO = {
    "clusters/east.yaml": cluster(pools=POOLS),
    "clusters/west.yaml": cluster("west", nodes=2),
    "slices/a/slice.yaml": slice_("a", clusters=("east", "west")),
    "slices/c/slice.yaml": slice_("c", clusters=("east", "west")),
}
FIRST = request("b/first", nodes=3, duration="2h", gpuShape="H100-80GB", priority=300)
THEN = request("c/then", nodes=4, duration="4h", gpuShape="H100-80GB", priority=250, clusters=["east"])


def why(repo: Path, key: str) -> dict[str, Any]:
    done = egs("why", key, "--repo", repo, "--now", NOW, "-o", "json")
    assert done.code == 0, done.err
    return done.json


def offers(repo: Path, key: str) -> list[tuple[str, Any, str]]:
    return [(one["field"], one["value"], one["estimatedStartTime"]) for one in why(repo, key)["alternatives"]]


def asking(tmp_path: Path, **spec: object) -> Path:
    mine = request(
        "a/mine", **{"nodes": 2, "duration": "4h", "gpuShape": "H100-80GB", "clusters": ["east"], **spec}
    )
    return folder(tmp_path, fleet(**TWO, **FIRST, **THEN, **mine))


SOON = "2026-11-21T08:02:00Z"


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"nodes": 2, "duration": "1h"}, ("nodes", 1, SOON), id="fewer nodes fit beside the first"
        ),
        pytest.param(
            {"nodes": 1, "duration": "4h"}, ("duration", "0d2h0m", SOON), id="two hours fit before the next"
        ),
        pytest.param(
            {"nodes": 2, "duration": "4h"}, ("gpuShape", "A100-80GB", SOON), id="another shape is free"
        ),
        pytest.param(
            {"nodes": 2, "duration": "4h"}, ("clusters", "west", SOON), id="another cluster is free"
        ),
    ],
)
def test_what_would_start_it_earlier(
    tmp_path: Path, spec: dict[str, object], want: tuple[str, Any, str]
) -> None:
    """Behind b/first and c/then it waits more than six hours."""
    repo = asking(tmp_path / "f", **spec)
    assert want in offers(repo, "a/mine")
    field, value, start = want
    done = asking(tmp_path / "done", **{**spec, field: [value] if field == "clusters" else value})
    rows = egs("plan", "--repo", done, "--now", NOW, "-o", "json").json["requests"]
    assert [row["estimatedStartTime"] for row in rows if row["slice"] == "a"] == [start], (
        "what the plan then shows"
    )


def test_what_starts_at_once_has_nothing_to_change(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet(**request("a/one")))
    assert why(repo, "a/one")["alternatives"] == []


def test_a_request_that_fits_nowhere_is_told_what_would_start(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet(**request("b/huge", nodes=5)))
    done = egs("why", "b/huge", "--repo", repo, "--now", NOW)
    assert "With 4 nodes it would start at 2026-11-21T08:02:00Z in east/h100." in done.out


def test_what_would_need_an_admin_or_breaks_a_limit_is_not_offered(tmp_path: Path) -> None:
    files = fleet(**TWO, **FIRST, **THEN) | {
        "slices/a/slice.yaml": slice_("a", clusters=("east", "west"), limits={"gpuShapes": ["H100-80GB"]})
    }
    mine = request("a/mine", nodes=2, duration="4h", gpuShape="H100-80GB", clusters=["east"])
    found = offers(folder(tmp_path / "f", files | mine), "a/mine")
    assert "gpuShape" not in {field for field, _, _ in found}


@pytest.mark.parametrize(
    ("west", "limits"),
    [
        pytest.param(
            {},
            {"where": [{"cluster": "west", "gpuHoursPerMonth": 60}]},
            id="its slice has too few hours there",
        ),
        pytest.param({}, {"where": [{"cluster": "west", "maxDuration": "1h"}]}, id="it is too long for it"),
        pytest.param({"burst": {"gpuHoursPerMonth": 60}}, {}, id="the burst cluster has too few hours left"),
        pytest.param({"burst": {"maxDuration": "3h"}}, {}, id="the burst cluster takes none so long"),
        pytest.param({"mode": "observe"}, {}, id="it is only observed"),
    ],
)
def test_a_cluster_that_would_not_serve_it_is_not_offered(
    tmp_path: Path, west: dict[str, object], limits: dict[str, object]
) -> None:
    """What `egs wait` says it would not get (E1, F14)."""
    mine = request("a/mine", nodes=2, duration="4h", gpuShape="H100-80GB", clusters=["east"])
    files = fleet(**TWO, **FIRST, **THEN) | {
        "clusters/west.yaml": cluster("west", nodes=2, **west),
        "slices/a/slice.yaml": slice_("a", clusters=("east", "west"), limits=limits),
    }
    found = offers(folder(tmp_path / "f", files | mine), "a/mine")
    assert ("clusters", "west", SOON) not in found
    asked = ("--slice", "a", "--nodes", "2", "--gpus-per-node", "8", "--duration", "4h")
    rows = egs("wait", *asked, "--repo", tmp_path / "f", "--now", NOW, "-o", "json").json
    assert all(row["reason"] for row in rows if row["cluster"] == "west")


def test_an_offer_says_whether_the_place_is_kept(tmp_path: Path) -> None:
    kept = {one["field"]: one["keepsPlace"] for one in why(asking(tmp_path / "f"), "a/mine")["alternatives"]}
    assert all(kept[field] == (field in {"nodes", "duration"}) for field in kept)
    said = egs("why", "a/mine", "--repo", tmp_path / "f", "--now", NOW).out
    assert "On A100-80GB it would start at 2026-11-21T08:02:00Z" in said
    assert "; it would lose its place in the queue." in said
