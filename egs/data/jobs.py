"""Workloads that people file: what became of each, and of its objects.

Held by tests/egs/test_sdk_jobs.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from egs.data.records import Change, Record, one, record, wire


@record
class JobObject(Record):
    """One Kubernetes object of a workload."""

    kind: str = ""
    name: str = ""
    state: str = ""
    """Pending, Running, Ready, Succeeded, Failed; Refused by the cluster; Changed by others, or Missing."""
    reason: str | None = None
    message: str | None = None


def _objects(rows: Any) -> tuple[JobObject, ...]:
    return tuple(map(one(JobObject), rows))


@record
class Job(Record):
    """A workload that was filed: where it runs, and the state of its objects."""

    name: str = ""
    workspace_name: str = wire("slice", default="")
    phase: str = ""
    """Pending, Running, Succeeded, Failed or Removed."""
    since: str | None = None
    reason: str | None = None
    message: str | None = None
    request_name: str = wire("gpr", default="")
    """Name of the request on whose nodes it runs."""
    cluster: str | None = None
    namespace: str | None = None
    objects: tuple[JobObject, ...] = wire("objects", default=(), read=_objects)
    events: tuple[Mapping[str, Any], ...] = wire("events", default=(), read=tuple)
    """The latest ones; empty in a list."""


@record
class DeployedJob(Record):
    """A workload as it was filed."""

    name: str = ""
    """workspace/name; `job` and `delete_job` take it."""
    request_id: str = wire("gprId", default="")
    """The request on whose nodes it runs; `wait_for` and the others take it."""
    request_name: str = wire("gprName", default="")
    """workspace/name of that request."""
    text: str = ""
    """After a dry run: the files that it would write."""
    change: Change = wire("change", default=Change(), read=one(Change))
