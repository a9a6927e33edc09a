"""Requests, their fields and quotes under the names of the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from egs.commands.errors import wrong_use
from egs.commands.output import Row
from egs.remote import asking


def named(request: str) -> str:
    """The request itself. Raises Said if it is not SLICE/GPR."""
    if request.count("/") != 1 or not all(request.split("/")):
        raise wrong_use(f"{request} names no request; write SLICE/GPR, for example vision/train")
    return request


FIELDS: Mapping[str, str] = {
    "nodes": "numberOfGPUNodes",
    "gpusPerNode": "numberOfGPUs",
    "memoryPerGpu": "memoryPerGPU",
    "gpuShape": "gpuShape",
    "instanceType": "instanceType",
    "duration": "exitDuration",
    "priority": "priority",
    "displayName": "gprName",
    "clusters": "preferredClusters",
    "template": "templateName",
    "notBefore": "notBefore",
    "start": "start",
    "prefer": "prefer",
    "maxWait": "maxWait",
    "model": "model",
    "model.name": "model",
    "network.rdma": "enableRDMA",
    "network.secondary": "enableSecondaryNetwork",
    "idleTimeout": "idleTimeOutDuration",
    "preemptible": "enableEviction",
    "requeueOnFailure": "requeueOnFailure",
    "extend": "extend",
    "stopped": "stopped",
    "earlyRelease": "earlyRelease",
}
"""Fields of a request's file, and their names over HTTP."""


def wired(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a request's file as they go over HTTP."""
    return {FIELDS[name]: value for name, value in terms.items()}


def quotes(slice_: str, terms: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
    """The rows of `egs wait`, and notes about them. The server does not say whether a row is `preferred`."""
    told = asking.told("POST", "gpr/waittime", {"sliceName": slice_, **wired(terms)})
    items = told.data["items"]
    # A message that holds for all pools is not repeated for each of them.
    alone = [one for one in items if not one["estimatedStartTime"] and one["message"] not in told.message]
    by_pool = [f"{one['clusterName']}/{one['pool']}: {one['message']}" for one in alone]
    more = {"preferred": None} if terms.get("prefer") else {}
    return [_quote(one) | more for one in items], [*([told.message] if told.message else []), *by_pool]


_QUOTE: Mapping[str, str] = {"cluster": "clusterName", "memoryPerGpu": "memoryPerGPU"}
_QUOTED = (
    *("cluster", "pool", "gpuShape", "gpusPerNode", "memoryPerGpu", "freeNodes", "estimatedStartTime"),
    *("estimatedWaitSeconds", "needsApproval", "pricePerGpuHour", "reason"),
)


def _quote(item: Row) -> dict[str, Any]:
    """A row of `egs wait -o json`; what is empty over HTTP is null there."""
    found = {name: item[_QUOTE.get(name, name)] for name in _QUOTED}
    found |= {name: found[name] or None for name in ("estimatedStartTime", "reason")}
    return found | ({"forecast": item["forecast"]} if item.get("forecast") else {})
