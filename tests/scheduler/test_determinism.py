"""The same facts give the same bytes, whatever order sets and dictionaries of names take (D3)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = ("0", "1", "4242")
PROGRAM = """
import sys
from scheduler.causes.causes import slips
from scheduler.causes.changes import changes_between
from scheduler.promises import with_promises
from tests.scheduler.crowds import history

committed = None
for snapshot, planned in history(int(sys.argv[1])):
    print(repr(planned))
    if committed is not None:
        print(repr(slips(committed, snapshot, changes_between(committed, snapshot), planned, budget=6)))
    committed = with_promises(snapshot, planned)
"""


def printed(crowd: int, hash_seed: str) -> bytes:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(crowd)],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    ).stdout


@pytest.mark.parametrize(
    "crowd",
    [
        pytest.param(5, id="leases and promises"),
        pytest.param(6, id="and nodes with windows, in slices that are shared"),
    ],
)
def test_plans_and_causes_are_the_same_bytes_under_every_hash_seed(crowd: int) -> None:
    outputs = [printed(crowd, seed) for seed in SEEDS]
    assert outputs[0].count(b"Placement(") > 300
    assert outputs[0].count(b"Moved(") > 0
    assert outputs == [outputs[0]] * len(SEEDS)
