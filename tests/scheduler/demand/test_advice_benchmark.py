"""The benchmark of advice runs on a small trace of each form, and its account is the one that it prints (J3)."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from benchmarks.advice import SYNTHETIC, compared, load_of, results, synthetic
from scheduler.demand.load import Load, Terms


def test_even_steps(tmp_path: Path) -> None:
    file = tmp_path / "load.csv.gz"
    with gzip.open(file, "wt") as out:
        out.write("second,load\n" + "".join(f"{600 * k},{2 + k % 3}\n" for k in range(30)))
    load = load_of(file, 12.0)
    assert (load.step_s, len(load.nodes)) == (60, 300)
    assert load.nodes.mean() == pytest.approx(12.0)


def test_a_row_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "requests.csv"
    rows = [f"2023-11-16 18:17:{k:02d}.5000000,1,2\n" for k in range(0, 60, 2)]
    file.write_text("TIMESTAMP,in,out\n" + "".join(rows), encoding="utf-8")
    load = load_of(file, 4.0)
    assert load.step_s == 10
    assert set(load.nodes.round(6)) == {4.0}


@pytest.mark.slow
def test_the_table_has_a_line_for_each_lead() -> None:
    load = Load(600, synthetic("daily", 6, 6.0, 1).nodes[::10])
    head, *lines = results([("daily", load)], [900, 3600], 60)
    assert "HPA/KEDA" in head
    assert [line.split()[1] for line in lines] == ["15", "60"]


@pytest.mark.slow
def test_advice_is_far_cheaper_than_a_tuned_threshold_where_the_day_repeats_itself() -> None:
    """A lead of three hours on a curve with noise."""
    at = np.arange(14 * 144)
    noise = np.random.default_rng(5).normal(0, 0.03, len(at))
    found = compared(
        Load(600, 12 * (1 + 0.8 * np.sin(at / 144 * 2 * np.pi)) * np.exp(noise)), Terms(3 * 3600, 60)
    )
    assert found.gain > 0.3
    assert found.advised[2] <= found.plain[2]


@pytest.mark.parametrize("kind", SYNTHETIC)
def test_a_synthetic_load_is_the_same_each_time(kind: str) -> None:
    one, other = (synthetic(kind, 2, 12.0, 7) for _ in range(2))
    assert (one.nodes == other.nodes).all()
    assert one.nodes.min() > 0
