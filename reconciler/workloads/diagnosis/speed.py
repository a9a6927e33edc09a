"""Findings about speed: work that waits for data or for others, and requests larger than their work. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from reconciler.telemetry.telemetry_port import Metric
from reconciler.workloads.alerts import Severity, memory_share
from reconciler.workloads.diagnosis.episode import Cause, Episode, Finding, clock, counted, listed
from reconciler.workloads.gpu_rows import Gpu
from reconciler.workloads.thresholds import POWER_SHARE

LITTLE_POWER, LITTLE_USE = 0.5, 75.0
"""Below both, busy GPUs wait for input: share of the board's power, per cent of the time."""
SPINNING_POWER, SPINNING_USE = 0.45, 90.0
"""Below this power and above this use they spin in a collective."""
SMALL_USE, SMALL_MEMORY = 30.0, 0.25
LEAST_POINTS = 10
"""Minutes from which an average says something."""


def found_in(episode: Episode) -> Iterator[Finding]:
    """What makes the work of an episode slow."""
    slow = [check for check in episode.checks if check.stage == "run" and not check.passed]
    if slow:
        said = tuple(
            " ".join(f"{check.node}: {check.log or check.value}".split())[:300] for check in slow[:4]
        )
        nodes = sorted({check.node for check in slow})
        since = min(check.at for check in slow)
        reach = "reaches" if len(nodes) == 1 else "reach"
        text = f"{listed(nodes, 2)} {reach} the other nodes too slowly since {clock(since, episode.now)}"
        advice = "an admin looks at the nodes' RDMA links and switches; NCCL_DEBUG=INFO shows which network is in use"
        yield Finding(Cause.LATENCY_HIGH, Severity.WARNING, text, advice, said, len(episode.gpus))
    yield from _waiting(episode, has_slow_network=bool(slow))


def _waiting(episode: Episode, *, has_slow_network: bool) -> Iterator[Finding]:
    busy = [gpu for gpu in episode.busy if len(episode.points(gpu, Metric.UTILISATION)) >= LEAST_POINTS]
    uses = [episode.mean(gpu, Metric.UTILISATION) for gpu in busy]
    powers = [share for gpu in busy if (share := _power_share(episode, gpu)) is not None]
    if not busy or len(powers) < len(busy):
        return
    use, power = fmean(one for one in uses if one is not None), fmean(powers)
    said = (
        f"use {use:.0f} %, power {power:.0%} of the board's, over {counted(len(busy), 'GPU')} and the last hour",
    )
    if use >= SPINNING_USE and power < SPINNING_POWER and len(busy) > 1:
        text = f"the GPUs wait for each other: they look busy ({use:.0f} %) but draw only {power:.0%} of their power"
        advice = (
            "see the network finding: collectives are as slow as the slowest link"
            if has_slow_network
            else "a rank may hang or be slower: look at each rank's log, and set NCCL_DEBUG=INFO"
        )
        yield Finding(Cause.WAITING, Severity.WARNING, text, advice, said, len(busy))
    elif use < SMALL_USE and _is_small(busy):
        text = f"the request is larger than its work: GPUs used {use:.0f} %, with under a quarter of their memory"
        advice = "ask for fewer or smaller GPUs next time, or for a MIG profile with `sharing: mig:PROFILE`"
        yield Finding(Cause.OVERSIZED, Severity.INFO, text, advice, said, len(busy))
    elif use < LITTLE_USE and power < LITTLE_POWER:
        draw = f"the GPUs draw {power:.0%} of their power and work {use:.0f} % of the time"
        text = f"input-bound: {draw}; they wait for data"
        advice = "give the data loader more workers and prefetch, and keep the data on the nodes' own disks"
        yield Finding(Cause.INPUT_BOUND, Severity.WARNING, text, advice, said, len(busy))


def _power_share(episode: Episode, gpu: Gpu) -> float | None:
    drawn = episode.mean(gpu, Metric.POWER)
    most = gpu.values.get(Metric.POWER_LIMIT)
    if most is None and gpu.limits.power_w is not None:
        most = gpu.limits.power_w / POWER_SHARE
    return None if drawn is None or not most else drawn / most


def _is_small(gpus: list[Gpu]) -> bool:
    shares = [memory_share(gpu) for gpu in gpus]
    return all(share is not None and share < SMALL_MEMORY for share in shares)
