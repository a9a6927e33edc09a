"""What a status keeps of checks: each of them, bounded, and never a secret (F4, F5, F10)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.health.check_results import LONGEST_LOG, MOST_CHARACTERS, cut, rows
from reconciler.model.cluster_port import CheckResult
from schemas.reading.yaml_text import dump
from schemas.status.gpr_status import Check

AT = datetime(2026, 11, 21, 8, tzinfo=UTC)
PRE = (
    CheckResult("NodeHealth", True, "8/8 GPUs well", "Ready"),
    CheckResult("NcclLatency", True, "21.3 us", "all_reduce over 8 GPUs"),
)


def test_every_check_keeps_name_value_and_log_passing_or_not() -> None:
    results = (*PRE, CheckResult("Connectivity", False, "", "no answer from the API server"))
    found = rows(results, ("pre", "h100-1", AT))
    assert [(r.name, r.passed, r.value, r.log) for r in found] == [
        (r.name, r.passed, r.value, r.log) for r in results
    ]


def test_a_thousand_nodes_stay_a_file_that_is_read_back() -> None:
    held: list[Check] = []
    for node in range(1000):
        results = [CheckResult(name, True, "1", "x" * 5000) for name in ("A", "B", "C", "D", "E")]
        held += rows(results, ("pre", f"node-{node}", AT), held)
    assert len({row.node for row in held}) == 1000
    assert held[-1].name == "5 checks"
    assert "too many nodes" in held[-1].log
    text = dump([row.model_dump(mode="json", by_alias=True) for row in held])
    assert MOST_CHARACTERS / 2 < len(text) < 600_000


def test_what_failed_is_kept_where_there_is_no_room_for_what_passed() -> None:
    full = [Check(stage="pre", node="n", name="A", passed=True, log="x" * MOST_CHARACTERS, at=AT)]
    (row,) = rows((*PRE, CheckResult("RdmaSubnet", False, "", "port 1 is down")), ("pre", "m", AT), full)
    assert (row.name, row.passed, row.log) == ("RdmaSubnet", False, "port 1 is down")


def test_of_a_long_log_the_end_is_kept_and_the_cut_is_told() -> None:
    found = cut("begin" + "x" * LONGEST_LOG + "end")
    assert found.startswith("[8 characters cut] ")
    assert found.endswith("end")


@pytest.mark.parametrize(
    ("log", "hidden"),
    [
        ("pull https://bo:hunter2@registry.example.com/x failed", "hunter2"),
        ("Authorization: Bearer abc.def", "abc.def"),
        ("NGC_API_KEY=nvapi-123", "nvapi-123"),
        ('{"password": "hunter2"}', "hunter2"),
        ("key egs_8W2u-gor4IeRIcZF4EgbP_0YnoXHVn0MoRDRFN", "egs_8W2u"),
        ("saw eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "eyJzdWIi"),
    ],
)
def test_a_secret_is_never_kept(log: str, hidden: str) -> None:
    assert hidden not in cut(log)
    assert "***" in cut(log)
