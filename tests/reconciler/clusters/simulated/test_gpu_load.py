"""Simulated GPUs work believably: load has a course, heat follows power, all are functions of time (H5)."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_DNS, uuid5

import numpy as np
import pytest

from reconciler.clusters.simulated.gpu_load import (
    CHECKPOINT_S,
    HARDWARE_HEAT,
    IDLE,
    SLOWDOWN_C,
    WARM_UP_S,
    Curves,
    Run,
    board_of,
    curves,
)
from reconciler.clusters.simulated.scripted_faults import GpuFails

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
START_S = NOW.timestamp()
H100 = board_of("H100-80GB")
GPUS = [f"GPU-{uuid5(NAMESPACE_DNS, str(number))}" for number in range(48)]
TRAINING = Run("vision-train/detector", False, START_S, np.inf)
SERVING = Run("vision-train/chat", True, START_S - 3 * 86_400, np.inf)


def course(*runs: Run, gpu: str = GPUS[0], minutes: float = 60, every_s: float = 10, faults=()) -> Curves:
    return curves(gpu, H100, runs, faults, START_S + np.arange(0, minutes * 60, every_s))


def test_the_same_instant_has_the_same_figures_however_it_is_asked_for() -> None:
    times = START_S + np.arange(-600, 3600, 7.0)
    whole = curves(GPUS[3], H100, (TRAINING,), (), times)
    one_by_one = [curves(GPUS[3], H100, (TRAINING,), (), times[k : k + 1]) for k in range(0, len(times), 11)]
    for name in (f.name for f in fields(Curves)):
        alone = np.concatenate([getattr(found, name) for found in one_by_one])
        assert np.allclose(getattr(whole, name)[::11], alone), name


def test_training_warms_up_works_and_writes_checkpoints() -> None:
    load = course(TRAINING, minutes=120, every_s=5).utilisation
    warm = int(WARM_UP_S / 5)
    assert 0 < load[0] < load[warm - 1] < 40
    work = load[warm:]
    assert np.median(work) >= 90
    share = np.mean(work < 20)
    assert 0 < share < 2 * CHECKPOINT_S / 600


def test_gpus_of_one_job_write_their_checkpoints_together() -> None:
    waits = [course(TRAINING, gpu=gpu, minutes=90).utilisation < 20 for gpu in GPUS[:4]]
    assert all(np.array_equal(waits[0], other) for other in waits)


def test_inference_follows_the_day() -> None:
    load = course(SERVING, minutes=24 * 60, every_s=60).utilisation.reshape(24, 60).mean(axis=1)
    assert load.max() > 60
    assert load.min() < 30
    assert load.min() > 5  # it never counts as idle


def test_heat_follows_power_and_lags_behind_it() -> None:
    found = course(TRAINING, minutes=20)
    assert np.argmax(found.power_w > 400) < np.argmax(found.temp_c > 50)
    assert found.temp_c[0] < 35
    assert 50 < found.temp_c[-1] < SLOWDOWN_C


def test_no_gpu_is_too_hot_by_itself_and_some_are_hotter_than_others() -> None:
    steady = Run("a/b", False, START_S - 3600, np.inf)
    highest = [course(steady, gpu=gpu, minutes=10).temp_c.max() for gpu in GPUS]
    assert max(highest) < 84  # `clearTemperature` and `maxTemperature` lie above, so no node is taken out
    assert max(highest) > min(highest) + 10


@pytest.mark.parametrize("product", ["H100-80GB", "A100-80GB", "L40S-48GB", "L4", "something new"])
def test_power_stays_within_the_board(product) -> None:
    board = board_of(product)
    steady = Run("a/b", False, START_S - 3600, np.inf)
    found = [curves(gpu, board, (steady,), (), START_S + np.arange(0, 3600, 10.0)) for gpu in GPUS]
    assert all(board.idle_w < f.power_w.min() < f.power_w.max() <= board.max_w for f in found)
    assert all(f.sm_mhz.max() <= board.sm_mhz for f in found)


def test_the_longest_name_counts() -> None:
    assert board_of("L40S-48GB").max_w == 350
    assert board_of("L4-24GB").max_w == 72
    assert board_of("H200-141GB").memory_mhz != board_of("H100-80GB").memory_mhz


def test_a_free_gpu_rests() -> None:
    found = course()
    assert not found.utilisation.any()
    assert not found.memory_used.any()
    assert set(found.throttle) == {IDLE}
    assert found.power_w.max() < 90


def test_scripted_heat_slows_a_gpu_down_and_ends() -> None:
    minute = timedelta(minutes=1)
    fault = GpuFails(node="n", gpu=0, at=NOW + 20 * minute, until=NOW + 30 * minute, temp_c=93)
    found = course(TRAINING, minutes=40, every_s=60, faults=[fault])
    hot = found.temp_c >= 93
    assert list(np.flatnonzero(hot)) == list(range(20, 30))
    assert all((found.throttle[hot].astype(int) & HARDWARE_HEAT) > 0)
    assert not any((found.throttle[~hot].astype(int) & HARDWARE_HEAT) > 0)
    assert found.sm_mhz[hot].max() < found.sm_mhz[10:20].min()
    assert found.power_w[hot].max() < found.power_w[10:20].max()


def test_energy_only_rises() -> None:
    ended = Run("a/b", False, START_S + 600, START_S + 1200)
    assert np.all(np.diff(course(ended).energy_j) > 0)
