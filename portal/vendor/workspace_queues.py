"""A workspace's Kueue queues, as the API shows them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from portal.http.context import Wire
from portal.views.view import View
from reconciler.queries.details import queue_rows


class WorkspaceQueue(Wire):
    """Its queue in one cluster."""

    cluster: str
    gpus: int = Field(description="GPUs that its workloads may use together now; partitions with `mig`.")
    stop: Literal["None", "Hold", "HoldAndDrain"] = Field(
        description="None: workloads are admitted; Hold: no more are; HoldAndDrain: admitted ones are suspended too."
    )
    mig: str = Field(description='MIG profile of the partitions; "": whole GPUs.')
    state: Literal["Kept", "Observed", "Missing"] = Field(
        description="Kept: it is so in the cluster; Observed: it would be so; Missing: the message says why."
    )
    message: str


def queues_of(view: View, name: str) -> tuple[WorkspaceQueue, ...]:
    """By cluster; empty if the workspace wants none."""
    return tuple(WorkspaceQueue.model_validate(row) for row in queue_rows(view.facts, name))
