"""Stories in simulated time under faults (G6, E9, H11; design sections 2, 4 and 6): docs/explain/fault-simulation.md.

The seeds of a run are drawn by the commit under test; EGS_SIM_SECONDS says how much CPU time they may use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.simulation.campaigns import until
from tests.simulation.network import RealGit
from tests.simulation.story import Given, Happening, Story, as_case, drawn, from_case
from tests.simulation.system import System
from tests.support import profile

pytestmark = pytest.mark.slow

SECONDS = float(
    os.environ.get("EGS_SIM_SECONDS", {"quick": 0, "change": 5, "main": 60}.get(profile.PROFILE, 180))
)
"""CPU time of drawn seeds in one run."""
POOL = 12
"""A change draws from the first seeds, which are known to pass: a red build is a red change. Others draw fresh ones."""
CASES = {
    file.stem: yaml.load(file.read_bytes(), yaml.CSafeLoader)
    for file in sorted((Path(__file__).parents[1] / "cases" / "simulation").glob("*.yaml"))
}


def test_no_fault_breaks_a_promise() -> None:
    first = profile.seed("simulation")
    fresh = profile.PROFILE in {"main", "night"} or "EGS_SIM_SECONDS" in os.environ
    for run in until("faults", first if fresh else first % POOL, SECONDS, None if fresh else POOL):
        assert run.broken == (), f"python -m tests.simulation minimise --seed {run.seed}"


@pytest.mark.parametrize("name", CASES)
def test_a_story_that_once_broke_a_promise_keeps_it(name: str) -> None:
    assert System(from_case(CASES[name])).run().broken == []


SHORT = Story(
    0.3,
    Given(pulled=("west",)),
    people=tuple(Happening(float(n), "file", n, n, 240) for n in range(5)),
    faults=(
        Happening(2.0, "kill", 1, 2, 5, "after"),
        Happening(3.0, "node flaps", 0, 1, 20),
        Happening(5.0, "push", 1, 1, 20, "delay"),
        Happening(6.0, "pause", 1, 1, 60),
    ),
)


@pytest.mark.skipif(
    profile.PROFILE in {"quick", "change"}, reason="a thousand processes of Git: after the merge"
)
def test_the_same_story_on_real_git_keeps_its_promises(tmp_path: Path) -> None:
    found, want = System(SHORT, RealGit(tmp_path)).run(), System(SHORT).run()
    assert found.broken == []
    assert found.until == want.until
    assert found.count == want.count


def test_the_same_story_gives_the_same_bytes_under_three_hash_seeds() -> None:
    code = "from tests.simulation import test_simulation as t; print(t.System(t.SHORT).run().digest)"
    root = Path(__file__).parents[2]
    began = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for seed in ("0", "1", "4711")
    ]
    digests = {process.communicate()[0] for process in began}
    assert [process.returncode for process in began] == [0, 0, 0]
    assert len(digests) == 1, digests
    assert len(digests.pop().strip()) == 64


def test_a_story_is_the_same_when_it_is_read_from_its_case() -> None:
    story = drawn(7, 3.0)
    rows: dict[str, Any] = yaml.safe_load(as_case(story, "a story"))
    assert from_case(rows) == story
