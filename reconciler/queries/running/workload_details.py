"""Workloads as data: what each request runs, each workload with its figures, its pods, its diagnosis. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.model.pod_port import Pod
from reconciler.queries.running.sight import Sight
from reconciler.queries.workload_rows import rows_at
from reconciler.workloads import gpu_rows
from reconciler.workloads.gpu_rows import Gpu
from reconciler.workloads.model_names import ModelFound, Said
from reconciler.workloads.summary import summary
from reconciler.workloads.workload import Workload
from schemas.reading.units import format_instant

Row = dict[str, Any]


def request_rows(seen: Sight, slice_: str | None = None) -> list[Row]:
    """The rows of `egs get workloads`: requests that have nodes, each with what it runs."""
    rows = rows_at(seen.wanted, seen.facts, seen.now, slice_)
    return [with_runs(seen, row) for row in rows if row["name"] in seen.requests]


def with_runs(seen: Sight, row: Row) -> Row:
    """A row of a request, with its workloads and the figures of its GPUs."""
    runs = [one for one in seen.workloads if seen.request_of(one) == row["name"]]
    return {
        **row,
        "summary": summary(seen.gpus_of_request(row["name"]), row["numGPUs"]),
        "runs": [run_row(seen, one) for one in runs],
        "podsUnknown": _silence(seen, row["clusterName"]),
    }


def _silence(seen: Sight, cluster: str) -> str:
    """Why its pods are unknown; empty: they are known."""
    found = seen.pods.get(cluster)
    return "" if found is None else found.silence


def run_row(seen: Sight, workload: Workload) -> Row:
    """One workload."""
    key = workload.key
    return {
        "id": key.id,
        "kind": key.kind,
        "name": key.name,
        "clusterName": key.cluster,
        "namespace": key.namespace,
        "sliceName": workload.slice,
        "request": seen.request_of(workload) or None,
        "foundBy": workload.via,
        "phase": workload.phase,
        "model": model_row(workload.model),
        "numGPUs": workload.gpus,
        "numPods": sum(not pod.is_over for pod in workload.pods),
        "nodes": list(workload.nodes),
        "summary": summary(seen.gpus_of_workload(workload), workload.gpus),
    }


def model_row(model: ModelFound) -> Row:
    """The model with the source of each value."""
    return {
        "name": _said(model.name),
        "framework": _said(model.framework),
        "parameters": {name: _said(said) for name, said in sorted(model.parameters.items())},
    }


def _said(said: Said | None) -> Row | None:
    return None if said is None else {"value": said.value, "source": said.source}


def pod_rows(seen: Sight, workloads: Sequence[Workload]) -> list[Row]:
    """Their pods, each with its GPUs."""
    return [_pod_row(seen, workload, pod) for workload in workloads for pod in workload.pods]


def _pod_row(seen: Sight, workload: Workload, pod: Pod) -> Row:
    gpus = [
        gpu for gpu in seen.gpus if any(one.key == pod.key and one.cluster == pod.cluster for one in gpu.pods)
    ]
    waits = next((container.waiting for container in pod.containers if container.waiting), "")
    ended = next((container.ended for container in pod.containers if container.ended), "")
    return {
        "name": pod.name,
        "namespace": pod.namespace,
        "clusterName": pod.cluster,
        "workload": workload.key.id,
        "phase": pod.phase,
        "reason": waits or ("Unschedulable" if pod.unplaced and pod.node is None else "") or ended,
        "message": pod.unplaced if pod.node is None else "",
        "node": pod.node,
        "numGPUs": pod.gpus,
        "restarts": pod.restarts,
        "startTime": "" if pod.started is None else format_instant(pod.started),
        "gpus": [_gpu_of_pod(gpu) for gpu in gpus] if pod.holds_gpus else [],
    }


def _gpu_of_pod(gpu: Gpu) -> Row:
    """A GPU of a pod, with the address of its values over time; `certain` False: one of the node's."""
    return {
        "uuid": gpu.uuid,
        "index": gpu.index,
        "certain": gpu.is_pod_certain,
        "closeness": gpu.closeness,
        "hot": gpu.is_hot,
        "metrics": f"/api/v1/metrics/range?gpu={gpu.uuid}",
    }


def gpu_table(seen: Sight, text: str = "", *, hot_only: bool = False) -> list[Row]:
    """Rows of GPUs, the nearest to their limits first; those in which the text occurs."""
    rows = (gpu_rows.row(gpu, seen.now) for gpu in seen.gpus)
    return [row for row in rows if (row["hot"] or not hot_only) and (not text or gpu_rows.matches(row, text))]
