"""The questions that Prometheus is asked: all PromQL of this project. Pure.

Series double while pods of a GPU change, so every question takes the highest by GPU. DCGM writes 9223372036854775794
and its like for "not there": what is beyond all sense is left out before. Names of nodes and labels are quoted; nothing
of a question comes from a caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from reconciler.telemetry.dcgm_names import NAMES
from reconciler.telemetry.telemetry_port import KEPT, Metric, Summary

BY_GPU = "cluster, Hostname, UUID"
METRIC = "egs_metric"
"""Label that says which of our metrics a series is: functions over time drop its name."""
POD_LABELS = ("namespace", "pod", "container")
EXPORTED = "exported_"
"""Prefix of labels that the target has too, unless the scrape honours labels."""
STEP = timedelta(seconds=15)
"""How closely the time of the last sample is looked for."""
MOST = {Metric.ENERGY: "9e18"}
"""mJ since the driver was loaded pass a million in minutes; everything else is blank beyond it."""
SENSIBLE = "1e6"

OVER_TIME: Mapping[Summary, str] = {
    "mean": "avg_over_time",
    "highest": "max_over_time",
    "last": "last_over_time",
}


def latest(matchers: Mapping[str, str], nodes: Collection[str]) -> str:
    """The newest value of each of DCGM's metrics and each GPU, under the metric's name.

    One selector for all: joining a vector for each metric takes a second with 2,048 GPUs.
    """
    selector = _selector(matchers, nodes)
    parts: list[str] = []
    for most in dict.fromkeys(MOST.get(metric, SENSIBLE) for metric in Metric):
        names = [n for metric in Metric if MOST.get(metric, SENSIBLE) == most for n in NAMES[metric].names]
        series = f'{{__name__=~"{"|".join(names)}", {selector[1:]}'
        newest = f"max by (__name__, {BY_GPU}) (last_over_time({series}[{_s(KEPT)}]) < {most})"
        # `or` looks at all labels but the name: without one more it would take them for the same series.
        parts.append(f'label_replace({newest}, "{METRIC}", "{len(parts)}", "", "")')
    return " or ".join(parts)


def over_time(
    metrics: Collection[Metric], matchers: Mapping[str, str], nodes: Collection[str], window: timedelta
) -> str:
    """The summary of each metric and GPU over the window before each instant, with the label `METRIC`."""
    return _each(metrics, matchers, nodes, window, lambda metric: OVER_TIME[metric.summary])


def seen(matchers: Mapping[str, str], nodes: Collection[str]) -> str:
    """When each GPU was last measured, with everything its labels tell: number, product, pods."""
    temperature = NAMES[Metric.TEMPERATURE].names[0]  # each GPU has one, if only a blank
    labels = (*POD_LABELS, *(EXPORTED + label for label in POD_LABELS))
    by = ", ".join((BY_GPU, "gpu", "modelName", *labels))
    times = f"timestamp({temperature}{_selector(matchers, nodes)})[{_s(KEPT)}:{_s(STEP)}]"
    return f"max by ({by}) (max_over_time({times}))"


def _each(
    metrics: Collection[Metric],
    matchers: Mapping[str, str],
    nodes: Collection[str],
    window: timedelta,
    function: Callable[[Metric], str],
) -> str:
    # Ranges have both ends in Prometheus 2; a millisecond less leaves out the sample that lies just before the window.
    selector, reach = _selector(matchers, nodes), f"{window // timedelta(milliseconds=1) - 1}ms"
    parts = (
        f"label_replace({_newest_name(metric, function(metric), selector, reach)} "
        f'< {MOST.get(metric, SENSIBLE)}, "{METRIC}", "{metric.value}", "", "")'
        for metric in metrics
    )
    return f"max by ({METRIC}, {BY_GPU}) ({' or '.join(parts)})"


def _newest_name(metric: Metric, function: str, selector: str, reach: str) -> str:
    """By the newest of its names that there is."""
    names = [f"{function}({name}{selector}[{reach}])" for name in NAMES[metric].names]
    return names[0] if len(names) == 1 else f"({' or '.join(names)})"


def _selector(matchers: Mapping[str, str], nodes: Collection[str]) -> str:
    hosts = "|".join(re.escape(node) for node in sorted(nodes))
    pairs = [f"{label}={quoted(value)}" for label, value in sorted(matchers.items())]
    return "{" + ", ".join((*pairs, f"Hostname=~{quoted(hosts)}")) + "}"


def quoted(text: str) -> str:
    """The text as PromQL writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _s(duration: timedelta) -> str:
    return f"{int(duration.total_seconds())}s"
