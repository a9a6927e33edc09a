"""Ranked sentences about a workload: what is wrong, what it rests on, what to do. Pure.

The same function answers on a repository, on a server and in tests. What explains a symptom silences it: pods that
crash are told, and not also that their GPUs are idle.

Held by tests/reconciler/workloads/test_diagnosis.py, over the episodes of tests/cases/diagnosis/.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from reconciler.telemetry.telemetry_port import Metric
from reconciler.workloads.alerts import ORDER, Severity
from reconciler.workloads.diagnosis import devices, pods, speed
from reconciler.workloads.diagnosis.episode import Cause, Episode, Finding, clock, counted

SILENCED: dict[Cause, frozenset[Cause]] = {
    Cause.ALL_IDLE: frozenset(
        {
            *(
                Cause.PODS_CRASH,
                Cause.OUT_OF_MEMORY,
                Cause.IMAGE_PULL,
                Cause.PODS_STARTING,
                Cause.PODS_UNPLACED,
            ),
            *(Cause.PODS_HELD_BACK, Cause.PODS_REFUSED, Cause.PODS_FAILED, Cause.NO_PODS),
        }
    ),
    Cause.WAITING: frozenset({Cause.HEAT_SLOWDOWN, Cause.POWER_BRAKE}),
    Cause.INPUT_BOUND: frozenset({Cause.WAITING, Cause.HEAT_SLOWDOWN, Cause.POWER_BRAKE}),
    Cause.WELL: frozenset(Cause) - {Cause.WELL, Cause.ENDS_EARLY, Cause.OVERSIZED, Cause.NO_PODS_SEEN},
}
"""Symptoms, and the causes of which one is enough to leave them out."""


def diagnose(episode: Episode) -> tuple[Finding, ...]:
    """What is known to be wrong, the most severe first; one sentence that all is well if nothing is."""
    found = [*pods.found_in(episode), *devices.found_in(episode), *speed.found_in(episode), *_lease(episode)]
    found += [*_unknown(episode), *_well(episode)]
    causes = {finding.cause for finding in found}
    kept = [finding for finding in found if not SILENCED.get(finding.cause, frozenset()) & causes]
    order = list(Cause)
    return tuple(
        sorted(kept, key=lambda one: (ORDER[one.severity], -one.gpus, order.index(one.cause), one.sentence))
    )


def _lease(episode: Episode) -> Iterator[Finding]:
    if episode.waiting:
        when = (
            "it has no start yet"
            if episode.next_start is None
            else f"it starts at {clock(episode.next_start, episode.now)}"
        )
        text = f"{episode.waiting} has no nodes yet: {when}"
        advice = f"`egs why {episode.waiting}` says what it waits for"
        yield Finding(Cause.REQUEST_WAITS, Severity.INFO, text, advice)
    for one in episode.replaced:
        text = f"{one.node} was replaced at {clock(one.at, episode.now)}: pods on it ended"
        advice = (
            "a job that does not restart by itself hangs from then on: restart it from its last checkpoint"
        )
        yield Finding(Cause.NODE_REPLACED, Severity.WARNING, text, advice, (one.message,))
    if episode.eviction is not None and episode.eviction.at > episode.now:
        why = {
            "Preempted": "a more urgent request needs its nodes",
            "Idle": "its GPUs are idle",
            "Stopped": "it was stopped",
        }
        text = f"its nodes are released at {clock(episode.eviction.at, episode.now)}: {why[episode.eviction.reason]}"
        yield Finding(Cause.ENDS_EARLY, Severity.WARNING, text, "save a checkpoint before", ())


def _unknown(episode: Episode) -> Iterator[Finding]:
    """What this diagnosis could not look at: no value is no good news."""
    if episode.request and not episode.measured:
        stale = [gpu for gpu in episode.gpus if gpu.sample is not None]
        text = (
            f"the values of {counted(len(stale), 'GPU')} are older than a minute, so use and heat are unknown"
            if stale
            else "nothing measures these GPUs, so use and heat are unknown; health comes from agents only"
        )
        advice = "an admin connects Prometheus or the nodes' agents as docs/guides/watch-gpus.md says"
        yield Finding(Cause.NO_TELEMETRY, Severity.INFO, text, advice, tuple(dict.fromkeys(episode.silences)))
    if episode.pods_silence:
        text = "its pods could not be looked at"
        advice = "give this command access to the cluster, or ask on a server that has it"
        yield Finding(Cause.NO_PODS_SEEN, Severity.INFO, text, advice, (episode.pods_silence,))


def _well(episode: Episode) -> Iterator[Finding]:
    busy = episode.busy
    if not busy:
        return
    use = fmean(gpu.values[Metric.UTILISATION] for gpu in busy)
    of = len(episode.measured)
    text = f"nothing is wrong: {len(busy)} of {counted(of, 'GPU')} work, used {use:.0f} % on average"
    yield Finding(Cause.WELL, Severity.INFO, text, "nothing", (), 0)


def row(finding: Finding) -> dict[str, Any]:
    """One finding as data."""
    return {
        "cause": str(finding.cause),
        "severity": str(finding.severity),
        "sentence": finding.sentence,
        "evidence": list(finding.evidence),
        "advice": finding.advice,
        "gpus": finding.gpus,
    }
