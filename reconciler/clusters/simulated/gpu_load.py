"""How a simulated GPU works over time: load curves of training and inference, power that follows load, heat that
follows power.

Pure: the same GPU, work and instant always give the same figures, asked for one by one or as a series. All curves are
functions of time; randomness comes from the GPU's uuid and the workload's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from reconciler.clusters.simulated.scripted_faults import GpuFails
from reconciler.clusters.simulated.simulated_world import Job, World

Floats = NDArray[np.float64]

IDLE, POWER_CAP, HARDWARE, SOFTWARE_HEAT, HARDWARE_HEAT = 0x1, 0x4, 0x8, 0x20, 0x40
"""Why clocks are low: bits of nvmlClocksEventReason*."""
WARM_UP_S = 90.0
"""A job loads its data and compiles first."""
CHECKPOINT_S = 25.0
"""GPUs wait while a checkpoint is written."""
HEAT_S = 75.0
"""Time in which a heat sink follows its chip."""
TAP_S, TAPS = 15.0, 20
"""Heat is computed from the power of the last five minutes, at whole multiples of TAP_S whatever is asked."""
DAY_S = 86_400.0
SLOWDOWN_C, SHUTDOWN_C, MAX_MEMORY_C, WARM_C = 87, 92, 95, 83
"""°C at which the chip slows down and switches off, its memory is too hot, and software slows it down."""


@dataclass(frozen=True, slots=True)
class Board:
    """Figures of a product."""

    idle_w: float
    max_w: float
    sm_mhz: int
    memory_mhz: int
    links: int  # NVLinks
    pcie: int  # generation


BOARDS = {
    "B200": Board(140, 1000, 1965, 3996, 18, 5),
    "H200": Board(78, 700, 1980, 3201, 18, 5),
    "H100": Board(70, 700, 1980, 2619, 18, 5),
    "A100": Board(55, 400, 1410, 1593, 12, 4),
    "L40S": Board(35, 350, 2520, 9001, 0, 4),
    "A10": Board(18, 150, 1695, 6251, 0, 4),
    "L4": Board(13, 72, 2040, 6251, 0, 4),
}
OTHER = Board(40, 300, 1700, 5001, 0, 4)


def board_of(product: str) -> Board:
    """By the beginning of the product's or shape's name, the longest that fits."""
    names = sorted((name for name in BOARDS if product.startswith(name)), key=len)
    return BOARDS[names[-1]] if names else OTHER


@dataclass(frozen=True, slots=True)
class Run:
    """A workload on a GPU, in seconds since 1970; `until` is infinite while it runs."""

    name: str  # namespace/name
    serves: bool  # inference; else it trains
    since_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class Curves:
    """Figures of one GPU, one for each instant."""

    utilisation: Floats  # percent
    memory_activity: Floats  # percent
    power_w: Floats
    temp_c: Floats
    memory_temp_c: Floats
    memory_used: Floats  # share of all
    sm_mhz: Floats
    throttle: Floats  # bits
    energy_j: Floats


def runs_of(world: World, node: str, index: int) -> tuple[Run, ...]:
    """What ran and runs on a GPU, as far as the state remembers, oldest first."""
    past = [
        _run(ran.job, ran.since, ran.until)
        for ran in world.past
        if ran.node == node and index in ran.gpu_slots
    ]
    now = [
        _run(w.job, w.since, w.ends_at)
        for w in world.workloads
        if w.uses_gpus_of == node and index in w.gpu_indices
    ]
    return tuple(sorted((*past, *now), key=lambda run: run.since_s))


def _run(job: Job, since: datetime, until: datetime | None) -> Run:
    # Training ends some day; what has no end serves.
    end = np.inf if until is None else until.timestamp()
    return Run(f"{job.namespace}/{job.name}", job.duration is None, since.timestamp(), end)


def curves(uuid: str, board: Board, runs: Sequence[Run], faults: Sequence[GpuFails], times: Floats) -> Curves:
    """The figures of one GPU at these instants, in seconds since 1970. O(instants × runs)."""
    load = _load(uuid, runs, times)
    busy = _busy(runs, times)
    heated = _scripted_heat(faults, times)
    power = _power(uuid, board, runs, times) * np.where(heated >= SLOWDOWN_C, 0.55, 1.0)
    temp: Floats = np.maximum(_temperature(uuid, board, runs, times), heated, dtype=np.float64)
    throttle = _throttle(board, busy, power, temp)
    return Curves(
        utilisation=np.round(load * 100),
        memory_activity=np.round(load * 100 * (0.45 + 0.2 * _share(uuid, "memory"))),
        power_w=np.round(power, 1),
        temp_c=np.round(temp),
        memory_temp_c=np.round(temp + 6 + 6 * load),
        memory_used=_memory(runs, times),
        sm_mhz=np.round(_clock(uuid, board, busy, throttle, times)),
        throttle=throttle,
        energy_j=np.round(_energy(board, runs, times)),
    )


def _load(uuid: str, runs: Sequence[Run], times: Floats) -> Floats:
    """Share of the GPU that is used, 0 to 1."""
    load = np.zeros_like(times)
    for run in runs:
        curve = _inference(uuid, run, times) if run.serves else _training(uuid, run, times)
        load = np.where(_during(run, times), curve, load)
    return load


def _training(uuid: str, run: Run, times: Floats) -> Floats:
    """Full, but for the start and for checkpoints, which all GPUs of a job write together."""
    age = times - run.since_s
    period = 600 + 900 * _share(run.name, "checkpoint")
    waits = age % period > period - CHECKPOINT_S
    steady = 0.955 + 0.03 * _noise(uuid, "training", times)
    start = 0.05 + 0.25 * np.clip(age / WARM_UP_S, 0, 1)
    return np.select([age < WARM_UP_S, waits], [start, np.full_like(times, 0.08)], steady)


def _inference(uuid: str, run: Run, times: Floats) -> Floats:
    """Follows its users' day, with waves of minutes."""
    peak = DAY_S * (0.5 + 0.25 * _share(run.name, "peak"))  # between 12 and 18 h UTC
    day = 0.45 + 0.3 * np.cos(2 * np.pi * (times - peak) / DAY_S)
    waves = 0.12 * _noise(run.name, "waves", times / 6) + 0.06 * _noise(uuid, "requests", times)
    return np.asarray(np.clip(day + waves, 0.07, 0.98), dtype=np.float64)


def _power(uuid: str, board: Board, runs: Sequence[Run], times: Floats) -> Floats:
    load = _load(uuid, runs, times)
    rest = board.idle_w * (0.96 + 0.08 * _share(uuid, "idle"))
    draw = (0.74 + 0.12 * _share(uuid, "draw")) * (board.max_w - rest)
    base = np.where(_busy(runs, times), rest * 1.25, rest)
    wobble = 1 + 0.02 * _noise(uuid, "power", times)
    return np.asarray(np.minimum((base + draw * load) * wobble, board.max_w))


def _temperature(uuid: str, board: Board, runs: Sequence[Run], times: Floats) -> Floats:
    """Inlet air, and what the power of the last minutes adds; one GPU in sixteen is badly cooled."""
    grid = TAP_S * np.arange(times.min() // TAP_S - TAPS, times.max() // TAP_S + 2)
    weights = np.exp(-TAP_S / HEAT_S * np.arange(TAPS))
    smoothed = np.convolve(_power(uuid, board, runs, grid), weights / weights.sum())[: len(grid)]
    smooth = np.interp(times, grid, smoothed)
    cooling = 1.4 if crc32(f"{uuid}/hot".encode()) % 16 == 0 else 0.9 + 0.2 * _share(uuid, "cooling")
    inlet = 23 + 2 * _share(uuid, "inlet") + np.cos(2 * np.pi * (times / DAY_S - 0.6))
    return np.asarray(inlet + 45 * cooling * smooth / board.max_w)


def _throttle(board: Board, busy: NDArray[np.bool_], power: Floats, temp: Floats) -> Floats:
    reasons = (
        (~busy, IDLE),
        (power > 0.84 * board.max_w, POWER_CAP),
        (temp >= WARM_C, SOFTWARE_HEAT),
        (temp >= SLOWDOWN_C, HARDWARE | HARDWARE_HEAT),
    )
    return np.asarray(sum(np.where(holds, float(bit), 0.0) for holds, bit in reasons))


def _clock(uuid: str, board: Board, busy: NDArray[np.bool_], throttle: Floats, times: Floats) -> Floats:
    bits = throttle.astype(np.int64)
    slowed = [(bits & HARDWARE) > 0, (bits & SOFTWARE_HEAT) > 0, (bits & POWER_CAP) > 0]
    share = np.select(slowed, [0.4, 0.75, 0.9], 0.985)
    steps = 15 * np.round(_noise(uuid, "clock", times))  # clocks move in steps of 15 MHz
    return np.where(busy, np.minimum(board.sm_mhz * share + steps, board.sm_mhz), 345)


def _memory(runs: Sequence[Run], times: Floats) -> Floats:
    used = np.zeros_like(times)
    for run in runs:
        most = 0.92 if run.serves else 0.68 + 0.26 * _share(run.name, "memory")
        share = most * np.clip(0.2 + (times - run.since_s) / WARM_UP_S, 0, 1)
        used = np.where(_during(run, times), share, used)
    return used


ENERGY_FROM_S = datetime.fromisoformat("2026-01-01T00:00:00+00:00").timestamp()
"""Drivers were loaded at some instant; this one is as good as any."""


def _energy(board: Board, runs: Sequence[Run], times: Floats) -> Floats:
    """Rises always; from the mean power of rest and of work."""
    joules = board.idle_w * np.maximum(times - ENERGY_FROM_S, 0)
    for run in runs:
        mean_w = (0.4 if run.serves else 0.75) * (board.max_w - board.idle_w)
        joules = joules + mean_w * np.clip(times - run.since_s, 0, run.until_s - run.since_s)
    return joules


def _scripted_heat(faults: Sequence[GpuFails], times: Floats) -> Floats:
    heat = np.full_like(times, -np.inf)
    for fault in faults:
        if fault.temp_c is not None:
            until = np.inf if fault.until is None else fault.until.timestamp()
            holds = (times >= fault.at.timestamp()) & (times < until)
            heat = np.where(holds, np.maximum(heat, fault.temp_c), heat)
    return heat


def _during(run: Run, times: Floats) -> NDArray[np.bool_]:
    return (times >= run.since_s) & (times < run.until_s)


def _busy(runs: Sequence[Run], times: Floats) -> NDArray[np.bool_]:
    return np.any([_during(run, times) for run in runs], axis=0) if runs else np.zeros(times.shape, np.bool_)


@lru_cache(maxsize=20_000)
def _share(seed: str, what: str) -> float:
    """A number in [0, 1], always the same for the same words."""
    return crc32(f"{seed}/{what}".encode()) % 1000 / 999


def _noise(seed: str, what: str, times: Floats) -> Floats:
    """Between -1 and 1: three waves of minutes whose periods have no common multiple."""
    phase = 2 * np.pi * _share(seed, what)
    waves = [
        np.sin(2 * np.pi * times / period_s + phase * k)
        for k, period_s in ((1, 47.0), (2, 113.0), (3, 311.0))
    ]
    return np.asarray(np.mean(waves, axis=0))
