"""What the benchmark of forecasts reads and prints (E1, E9)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks.estimates import Told, print_table
from benchmarks.helios import is_helios, jobs
from benchmarks.philly import HOUR, Job
from scheduler.estimates.expected_starts import Drawn
from tests.scheduler.worlds import request

HEAD = "vc,time,running_gpujob_num,pending_gpujob_num,running_gpu_num,pending_gpu_num,total_gpu_num\n"


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param(
            ["00:00:00,0,0,0,0", "01:00:00,1,0,8,0", "02:00:00,0,0,0,0"], [(3600, 3600, 8)], id="one job"
        ),
        pytest.param(
            ["00:00:00,0,0,0,0", "01:00:00,2,0,9,0", "02:00:00,1,0,5,0", "03:00:00,0,0,0,0"],
            [(3600, 3600, 4), (3600, 7200, 5)],
            id="the one of the nearest size ends",
        ),
        pytest.param(
            ["00:00:00,0,0,0,0", "01:00:00,1,1,8,8", "03:00:00,1,0,8,0", "04:00:00,0,0,0,0"],
            [(3600, 7200, 8), (3600, 3600, 8)],
            id="one that waits runs when the other ended",
        ),
        pytest.param(["00:00:00,1,0,8,0", "01:00:00,0,0,0,0"], [], id="it ran before the trace began"),
    ],
)
def test_jobs_follow_from_how_many_run_and_wait(
    tmp_path: Path, changes: list[str], want: list[tuple[int, int, int]]
) -> None:
    file = tmp_path / "series.csv.gz"
    file.write_bytes(gzip.compress((HEAD + "".join(f"v,2020-05-01 {one},64\n" for one in changes)).encode()))
    assert is_helios(file)
    assert jobs(file) == [
        Job(f"v-{number:05}", submit, ran, gpus, "v") for number, (submit, ran, gpus) in enumerate(want)
    ]


def test_the_table_has_coverage_score_and_those_within_an_hour(capsys: pytest.CaptureFixture[str]) -> None:
    said = Drawn(2 * HOUR, 3 * HOUR, 6 * HOUR)
    starts = (1, 2, 4, 8)  # an hour before, at the edge, inside, two hours after
    print_table(
        [Told(request("a", 1), 5 * HOUR, said, said, 0, 0, start=start * HOUR) for start in starts],
    )
    line = capsys.readouterr().out.splitlines()[-1].split()
    assert line[0] == "all"
    assert line[-6:] == ["50.0%", "25.0%", "25.0%", "4.00", "11.50", "50.0%"]
