"""Findings about GPUs: broken, slowed down, idle, or slower than the others. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from statistics import median

from reconciler.telemetry.telemetry_port import Metric
from reconciler.workloads.alerts import MEMORY_FULL_SHARE, Severity, memory_share
from reconciler.workloads.diagnosis.episode import Cause, Episode, Finding, by_node, clock, counted, listed
from reconciler.workloads.gpu_rows import Gpu
from reconciler.workloads.thresholds import BRAKE_BIT, HEAT_BITS

SLOW_SHARE = 0.85
"""A busy GPU whose clock is below this share of the others' median is slow."""
LEAST_OTHERS = 3
"""Busy GPUs that a median needs."""


def found_in(episode: Episode) -> Iterator[Finding]:
    """What is wrong with the GPUs of an episode."""
    yield from _unhealthy(episode)
    yield from _errors(episode)
    yield from _slowed(episode, Cause.POWER_BRAKE, BRAKE_BIT)
    yield from _slowed(episode, Cause.HEAT_SLOWDOWN, HEAT_BITS)
    yield from _unused(episode)
    yield from _slower(episode)
    yield from _full(episode)


def _unhealthy(episode: Episode) -> Iterator[Finding]:
    bad = [gpu for gpu in episode.gpus if gpu.device is not None and not gpu.device.healthy]
    if bad:
        said = tuple(f"{gpu.name}: {', '.join(gpu.device.reasons)}" for gpu in bad if gpu.device is not None)
        text = f"{by_node(bad)} {_is(bad)} broken, as the node's agent says"
        advice = "save a checkpoint; the node is replaced inside the running request if a spare is free"
        yield Finding(Cause.GPU_UNHEALTHY, Severity.CRITICAL, text, advice, said, len(bad))


def _errors(episode: Episode) -> Iterator[Finding]:
    """Errors that appeared during the lease: an older one is not this workload's."""
    said, bad = [], []
    for gpu in episode.gpus:
        for metric, words in (
            (Metric.XID, "error Xid {:g}"),
            (Metric.ECC_UNCORRECTABLE, "{:g} lasting memory errors"),
        ):
            since = _appeared(episode, gpu, metric)
            if since is not None:
                bad.append(gpu)
                said.append(
                    f"{gpu.name}: {words.format(gpu.values[metric])} since {clock(since, episode.now)}"
                )
    if bad:
        once = list({gpu.uuid: gpu for gpu in bad}.values())
        text = f"{by_node(once)} had errors during this lease"
        advice = "look up the Xid in the vendor's catalog; after memory errors start again from the last checkpoint"
        yield Finding(Cause.GPU_ERRORS, Severity.CRITICAL, text, advice, tuple(said), len(once))


def _appeared(episode: Episode, gpu: Gpu, metric: Metric) -> datetime | None:
    """Since when the present value holds, if it rose within the known time; None: it did not."""
    now = gpu.values.get(metric)
    points = episode.points(gpu, metric)
    if not now or not any(point.value != now for point in points):
        return None
    return _since(episode, gpu, metric, lambda value: value == now)


def _since(episode: Episode, gpu: Gpu, metric: Metric, holds: Callable[[float], bool]) -> datetime | None:
    """The first of the latest points in a row that hold; None: the last one does not."""
    found = None
    for point in reversed(episode.points(gpu, metric)):
        if not holds(point.value):
            break
        found = point.at
    return found


def _slowed(episode: Episode, cause: Cause, bits: int) -> Iterator[Finding]:
    slow = [gpu for gpu in episode.measured if int(gpu.values.get(Metric.THROTTLE, 0)) & bits]
    if not slow:
        return
    begins = [_since(episode, gpu, Metric.THROTTLE, lambda value: bool(int(value) & bits)) for gpu in slow]
    known = [begin for begin in begins if begin is not None]
    since = f" since {clock(min(known), episode.now)}" if known else ""
    by, advice = (
        ("heat", "an admin checks the node's cooling; ask for another node if it lasts")
        if cause is Cause.HEAT_SLOWDOWN
        else (
            "the machine's power brake",
            "an admin checks the machine's power supplies and the rack's budget",
        )
    )
    text = f"{by_node(slow)} {_is(slow)} slowed down by {by}{since}"
    said = tuple(f"{gpu.name}: {_state(gpu)}" for gpu in slow[:4])
    yield Finding(cause, Severity.WARNING, text, advice, said, len(slow))


def _state(gpu: Gpu) -> str:
    """Temperature, clock and power, as far as they are known."""
    parts = (
        (Metric.TEMPERATURE, "{:g} °C", gpu.limits.temp_c, " of {:g} °C"),
        (Metric.SM_CLOCK, "{:g} MHz", None, ""),
        (Metric.POWER, "{:g} W", None, ""),
    )
    said = [
        words.format(gpu.values[metric]) + (of.format(limit) if limit else "")
        for metric, words, limit, of in parts
        if metric in gpu.values
    ]
    return ", ".join(said) or "no values"


def _unused(episode: Episode) -> Iterator[Finding]:
    idle, busy = episode.idle, episode.busy
    if not idle:
        return
    if not busy:
        if not episode.unfinished and not episode.pods_silence:
            return  # that no pod uses them says more
        since = _idle_since(episode)
        after = "" if since is None else f" since {clock(since, episode.now)}"
        text = f"none of the {counted(len(idle), 'GPU')} works{after}, although pods run on them"
        advice = "look at the pods' logs: they may wait for data, for each other, or for a person"
        yield Finding(Cause.ALL_IDLE, Severity.WARNING, text, advice, _memory(episode), len(idle))
        return
    asked = sum(pod.gpus for pod in episode.unfinished if pod.node is not None)
    unasked = episode.allocated - asked
    of = counted(len(episode.measured), "GPU")
    works = f"{len(busy)} work{'s' if len(busy) == 1 else ''}"
    text = f"{of} are allocated, {works}; {by_node(idle)} {_is(idle)} idle"
    if episode.is_whole and not episode.pods_silence and unasked >= len(idle):
        advice = (
            "its pods ask for fewer GPUs than the request has: start more, or ask for fewer nodes next time"
        )
        said: tuple[str, ...] = (f"the request has {episode.allocated} GPUs, its pods ask for {asked}",)
    else:
        advice = (
            "look for a process that ended or hangs, and at CUDA_VISIBLE_DEVICES and the number of processes"
        )
        said = tuple(f"{gpu.name}: used {gpu.values[Metric.UTILISATION]:g} %" for gpu in idle[:4])
    yield Finding(Cause.PARTLY_USED, Severity.WARNING, text, advice, said, len(idle))


def _idle_since(episode: Episode) -> datetime | None:
    """Since when all are idle, as far as it is known."""
    begins = [_since(episode, gpu, Metric.UTILISATION, lambda value: value < 5) for gpu in episode.idle]
    known = [begin for begin in begins if begin is not None]
    return max(known) if len(known) == len(begins) and known else None


def _memory(episode: Episode) -> tuple[str, ...]:
    used = [gpu.values[Metric.MEMORY_USED] for gpu in episode.idle if Metric.MEMORY_USED in gpu.values]
    if not used:
        return ()
    held = [value for value in used if value > 1024]
    if held:
        count = f"{counted(len(held), 'GPU')} hold{'s' if len(held) == 1 else ''} memory"
        return (f"{count}, {max(held) / 1024:.0f} GiB at most",)
    return ("no GPU holds memory: no model is loaded",)


def _slower(episode: Episode) -> Iterator[Finding]:
    """A GPU that is busy at a lower clock than its peers, without heat or brake."""
    clocks = {gpu.uuid: episode.mean(gpu, Metric.SM_CLOCK) for gpu in episode.busy}
    known = {uuid: value for uuid, value in clocks.items() if value is not None}
    if len(known) < LEAST_OTHERS + 1:
        return
    usual = median(known.values())
    slow = [
        gpu
        for gpu in episode.busy
        if known.get(gpu.uuid, usual) < SLOW_SHARE * usual
        and not int(gpu.values.get(Metric.THROTTLE, 0)) & (HEAT_BITS | BRAKE_BIT)
    ]
    if slow and len(slow) * 2 < len(known):
        said = tuple(f"{gpu.name}: {known[gpu.uuid]:.0f} MHz; the others {usual:.0f} MHz" for gpu in slow[:4])
        text = f"{by_node(slow)} {_is(slow)} slower than the others, which wait for it at every step"
        advice = (
            "have the node checked (`egs describe node`); a synchronous job runs as fast as its slowest GPU"
        )
        yield Finding(Cause.SLOW_GPU, Severity.WARNING, text, advice, said, len(slow))


def _full(episode: Episode) -> Iterator[Finding]:
    full = [gpu for gpu in episode.measured if (memory_share(gpu) or 0) >= MEMORY_FULL_SHARE]
    if full:
        shares = [f"{gpu.name}: {memory_share(gpu) or 0:.0%}" for gpu in full[:4]]
        text = f"the memory of {by_node(full)} is full"
        advice = "lower the batch size, the sequence length, or the share that the server may use"
        yield Finding(Cause.GPU_MEMORY_FULL, Severity.WARNING, text, advice, (listed(shares),), len(full))


def _is(gpus: list[Gpu] | tuple[Gpu, ...]) -> str:
    return "is" if len(gpus) == 1 else "are"
