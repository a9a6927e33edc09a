"""The fields of a request in a form, and the API's names for them. Pure.

A form's fields have short names, because they also stand in addresses: `/requests/new?shape=H100-80GB&nodes=2`.

Held by tests/portal/pages/test_request_fields.py: what a request says comes back as the same request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from portal.http.errors import bad_parameters
from portal.pages.forms import Form
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import format_instant, parse_instant

_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise bad_parameters(f"{name}: this must be a whole number") from error


def _flag(name: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise bad_parameters(f"{name}: this must be yes or no")
    return text == "yes"


def _text(_: str, text: str) -> str:
    return text


def _names(_: str, text: str) -> list[str]:
    return text.replace(",", " ").split()


def _instant(_: str, text: str) -> str:
    """A browser's input has no zone; the label says UTC."""
    return f"{text}:00Z" if _WITHOUT_ZONE.fullmatch(text) else text


WIRE: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "name": ("gprName", _text),
    "slice": ("sliceName", _text),
    "nodes": ("numberOfGPUNodes", _whole),
    "gpus": ("numberOfGPUs", _whole),
    "shape": ("gpuShape", _names),
    "memory": ("memoryPerGPU", _whole),
    "instance": ("instanceType", _text),
    "cluster": ("preferredClusters", _names),
    "duration": ("exitDuration", _text),
    "priority": ("priority", _whole),
    "template": ("templateName", _text),
    "notBefore": ("notBefore", _instant),
    "start": ("start", _text),
    "prefer": ("prefer", _text),
    "maxWait": ("maxWait", _text),
    "idle": ("idleTimeOutDuration", _text),
    "preemptible": ("enableEviction", _flag),
    "requeue": ("requeueOnFailure", _flag),
    "rdma": ("enableRDMA", _flag),
    "model": ("model", _text),
    "file": ("name", _text),
}
"""By the form's name: the API's name, and how its text is read."""
HELD = ("model", "idle")
"""Fields that may change while a request has its nodes; `check_edit` holds the rule of docs/reference/kinds/gpr.md."""
EDITED = tuple(name for name in WIRE if name not in ("slice", "template", "file"))
"""Fields of the form that changes a request."""


def body_of(form: Form, *, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """The filled fields under the API's names; empty ones are left to the template and the defaults. ApiError 422."""
    given = ((name, form.get(name, "")) for name in WIRE if name not in leave_out)
    return {WIRE[name][0]: WIRE[name][1](name, text) for name, text in given if text}


def changes_of(form: Form, shown: Form) -> dict[str, Any]:
    """Fields that differ from those shown, under the API's names; null: emptied. ApiError 422."""
    found = {}
    for name in EDITED:
        text = form.get(name, shown.get(name, ""))
        if text != shown.get(name, ""):
            wire, read = WIRE[name]
            found[wire] = read(name, text) if text else None
    return found


def fields_of(spec: RequestSpec) -> Form:
    """The form of a request as it is."""
    return {
        "name": spec.display_name or "",
        "slice": spec.slice,
        "nodes": str(spec.nodes),
        "gpus": str(spec.gpus_per_node),
        "shape": ", ".join(spec.gpu_shapes),
        "memory": str(spec.memory_per_gpu or ""),
        "instance": spec.instance_type or "",
        "cluster": ", ".join(spec.clusters),
        "duration": short(spec.duration),
        "priority": str(spec.priority),
        "notBefore": "" if spec.not_before is None else format_instant(spec.not_before)[:16],
        "start": spec.start,
        "prefer": spec.prefer,
        "maxWait": "" if spec.max_wait is None else short(spec.max_wait),
        "idle": "" if spec.idle_timeout is None else short(spec.idle_timeout),
        "preemptible": _said(spec.preemptible),
        "requeue": _said(spec.requeue_on_failure),
        "rdma": _said(spec.network.rdma),
        "model": spec.model.name,
    }


def short(length: timedelta) -> str:
    """A duration as people write it: `6h`, `1d12h`, `90m` becomes `1h30m`."""
    minutes = int(length.total_seconds()) // 60
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "m"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0m"


def minute_of(text: str) -> str:
    """An instant for a browser's input: UTC, to the minute; a text that is none stays as it is."""
    try:
        return format_instant(parse_instant(text))[:16]
    except ValueError:
        return text


def _said(flag: bool) -> str:
    return "yes" if flag else "no"


LABELS: Mapping[str, str] = {
    "name": "Name",
    "slice": "Workspace",
    "nodes": "GPU nodes",
    "gpus": "GPUs per node",
    "shape": "GPU shape",
    "memory": "Memory per GPU, GB",
    "instance": "Machine type",
    "cluster": "Cluster",
    "duration": "Reserve for",
    "priority": "Priority",
    "template": "Template",
    "notBefore": "Not before (UTC)",
    "start": "Start",
    "prefer": "Prefer",
    "maxWait": "Longest wait",
    "idle": "Release when idle for",
    "preemptible": "May make room",
    "requeue": "Queue again on failure",
    "rdma": "Only nodes with RDMA",
    "model": "Model",
    "file": "Name of its file",
}
