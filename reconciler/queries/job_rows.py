"""`egs get jobs` and `egs describe job`: the workloads of slices, and what became of each."""

from __future__ import annotations

from typing import Any

from reconciler.queries.state import State
from reconciler.sources.command_errors import NotFound
from schemas.documents.workload import WorkloadSpec
from schemas.reading.units import wire
from schemas.rules.view import workload_path
from schemas.rules.workload_rules import identity
from schemas.status.workload_status import WorkloadPhase, WorkloadStatus

Row = dict[str, Any]


def rows(state: State, slice_: str | None = None) -> list[Row]:
    """Every workload, by slice and name."""
    wanted, facts = state.wanted.workloads, state.facts.workloads
    keys = sorted({*wanted, *facts})
    return [_row(key, state) for key in keys if slice_ in (None, key.partition("/")[0])]


def job_data(state: State, key: str, told: list[dict[str, str]]) -> Row:
    """The data of `egs describe job`. Raises NotFound."""
    known = {*state.wanted.workloads, *state.facts.workloads}
    if key not in known:
        raise NotFound("workload", key, known)
    own = f"workload {key} "
    events = [row for row in told if row["message"].startswith(own)]
    return {**_row(key, state), "file": workload_path(*key.split("/")), "events": events}


def _row(key: str, state: State) -> Row:
    slice_, _, name = key.partition("/")
    spec, status = state.wanted.workloads.get(key), state.facts.workloads.get(key)
    return {
        "slice": slice_,
        "name": name,
        "phase": str(WorkloadPhase.PENDING if status is None else status.phase),
        "since": None if status is None else wire(status.since),
        "reason": "NotSeen" if status is None else status.reason,
        "message": "no controller has read it yet" if status is None else status.message,
        "gpr": _gpr(spec, status),
        "cluster": None if status is None else status.cluster,
        "namespace": None if status is None else status.namespace,
        "objects": _objects(spec, status),
    }


def _gpr(spec: WorkloadSpec | None, status: WorkloadStatus | None) -> str:
    if spec is not None:
        return spec.gpr
    return "" if status is None else status.gpr


def _objects(spec: WorkloadSpec | None, status: WorkloadStatus | None) -> list[Row]:
    """As last seen; of one that has not run, those of its document."""
    if status is not None and status.objects:
        return [each.model_dump(mode="json") for each in status.objects]
    named = () if spec is None else (identity(each) for each in spec.manifests)
    return [
        {"kind": kind, "name": name, "state": "Pending", "reason": None, "message": None}
        for kind, name in named
    ]
