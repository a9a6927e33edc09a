"""The agent's `/metrics`: OpenMetrics text with dcgm-exporter's names and labels. Pure.

Dashboards and alerts made for dcgm-exporter work on it. A value that a GPU does not have has no line. Counters are of
type unknown: OpenMetrics wants a counter's name to end in `_total`, and theirs do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent.telemetry.gpu_values import Values
from reconciler.telemetry.dcgm_names import NAMES, DcgmName
from reconciler.telemetry.telemetry_port import Metric, PodRef

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ShownGpu:
    """One GPU as it is shown, with the containers that use it."""

    uuid: str
    index: int
    product: str
    values: Values
    pods: tuple[PodRef, ...] = ()


def text_of(gpus: Sequence[ShownGpu], node: str) -> str:
    """All metrics of a node. A shared GPU has a line for each container, like dcgm-exporter's."""
    labels = {gpu.uuid: _labels(gpu, node) for gpu in gpus}
    lines = [line for metric, name in NAMES.items() for line in _family(metric, name, gpus, labels)]
    return "\n".join((*lines, "# EOF", ""))


def _family(
    metric: Metric, name: DcgmName, gpus: Iterable[ShownGpu], labels: dict[str, list[str]]
) -> Iterator[str]:
    rows = [
        f"{name.names[0]}{{{text}}} {_number(gpu.values[metric] * name.scale)}"
        for gpu in gpus
        if metric in gpu.values
        for text in labels[gpu.uuid]
    ]
    if rows:
        yield f"# HELP {name.names[0]} {name.help}"
        yield f"# TYPE {name.names[0]} {'unknown' if name.rises else 'gauge'}"
        yield from rows


def _labels(gpu: ShownGpu, node: str) -> list[str]:
    own = {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "device": f"nvidia{gpu.index}",
        "modelName": gpu.product,
        "Hostname": node,
    }
    users = gpu.pods or (PodRef("", ""),)
    return [
        ",".join(
            f'{key}="{_escaped(value)}"'
            for key, value in {
                **own,
                "container": pod.container,
                "namespace": pod.namespace,
                "pod": pod.pod,
            }.items()
        )
        for pod in users
    ]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
