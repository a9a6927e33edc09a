"""`egs insights` and `egs forecast` (E9, G6)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.queries.insight_rows import wait_at_most
from schemas.status.insights import Tally
from tests.reconciler.cli.rig import Control, egs, fleet, folder, minutes, repository, request
from tests.support.repos import commit
from tests.support.world import slice_

COUNT = 4
FILED = 12


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Slices a and b ran two requests each, of half an hour, all filed within one hour."""
    path = tmp_path_factory.mktemp("insights")
    files = fleet()
    for number in range(COUNT):
        files |= request(f"{'ab'[number % 2]}/run{number:02}", nodes=2, duration="30m")
    found = repository(path / "r.git", files)
    Control(found, path / "state").run(minutes(60 * 3))
    return found


def test_demand_waits_and_use_are_shown(repo: Path) -> None:
    done = egs("insights", "--repo", repo, "-o", "json")
    assert done.code == 0, done.err
    total = done.json["total"]
    assert (total["requests"], total["ran"], total["slipped"]) == (COUNT, COUNT, 0)
    assert total["usedGpuHours"] == total["askedGpuHours"] == COUNT * 8.0
    assert (total["promise"]["requests"], total["promise"]["within1h"]) == (COUNT, 1.0)
    assert total["forecast"] == {"requests": 0, "meanAbsoluteErrorSeconds": None, "covered": None}
    assert {name: one["requests"] for name, one in done.json["bySlice"].items()} == {"a": 2, "b": 2}
    assert list(done.json["byShape"]) == ["H100-80GB"]
    assert list(done.json["byHour"]) == ["08"]
    (day,) = done.json["byDay"].values()
    assert day["utilisation"] == pytest.approx(COUNT * 8 / (32 * 24), abs=0.001)


def test_the_tables_show_the_same(repo: Path) -> None:
    out = egs("insights", "--repo", repo).out
    assert "H100-80GB" in out
    assert "UTILISATION" in out


def test_it_outlives_the_files_of_requests(repo: Path) -> None:
    """They are removed when they are over; what they have shown stays."""
    before = egs("insights", "--repo", repo, "-o", "json").json
    gone = {path: None for number in range(COUNT) for path in request(f"{'ab'[number % 2]}/run{number:02}")}
    commit(repo, gone)  # type: ignore[arg-type]
    Control(repo, repo.parent / "other").run(minutes(60 * 3) + timedelta(minutes=5))
    assert egs("insights", "--repo", repo, "-o", "json").json == before


def test_without_anything_over_it_says_so(tmp_path: Path) -> None:
    done = egs("insights", "--repo", folder(tmp_path / "f", fleet()))
    assert (done.code, done.out) == (0, "")
    assert "no request is over yet" in done.err


def test_a_capacity_forecast_names_how_many_nodes(tmp_path: Path) -> None:
    files = fleet()
    for number in range(FILED):
        name = f"s{number:02}"
        files[f"slices/{name}/slice.yaml"] = slice_(name)
        files |= request(f"{name}/run", nodes=1, duration="2h")
    found = repository(tmp_path / "r.git", files)
    Control(found, tmp_path / "state").run(minutes(0))
    asked = ("forecast", "--repo", found, "--shape", "H100-80GB", "--target-p90", "2h30m")
    done = egs(*asked, "-o", "json")
    assert done.code == 0, done.err
    assert (done.json["nodesToAdd"], done.json["requests"]) == (2, FILED)
    assert "2 more nodes in east/h100 would bring the p90 wait of 12 requests" in egs(*asked).out
    assert egs(*asked, "--most", "1").code == 1


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        pytest.param(
            ["--shape", "B200", "--target-p90", "4h"], 1, "there is no shape B200", id="no such shape"
        ),
        pytest.param(["--shape", "H100-80GB", "--target-p90", "soon"], 2, "--target-p90", id="no duration"),
        pytest.param(["--shape", "H100-80GB", "--target-p90", "4h"], 1, "too few", id="nothing to replay"),
    ],
)
def test_what_cannot_be_answered_says_why(tmp_path: Path, args: list[str], code: int, said: str) -> None:
    done = egs("forecast", "--repo", folder(tmp_path / "f", fleet()), *args)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("waits", "share", "want"),
    [
        ((9, 1, 0, 0, 0, 0, 0, 0, 0), 0.9, 60),
        ((8, 1, 1, 0, 0, 0, 0, 0, 0), 0.9, 600),
        ((0, 0, 0, 0, 0, 0, 0, 0, 10), 0.5, None),
    ],
)
def test_a_share_of_the_waits_lies_under_a_bound(
    waits: tuple[int, ...], share: float, want: int | None
) -> None:
    assert wait_at_most(Tally(ran=10, waits=waits), share) == want
