"""What a workspace exports to its other clusters, as the API shows it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from portal.http.context import Wire
from portal.views.view import View
from reconciler.queries.details import service_rows


class WorkspaceExport(Wire):
    """One exported Service."""

    namespace: str
    name: str
    dns: str = Field(description="Its name in every cluster of the workspace.")
    state: Literal["Exported", "Waiting", "Unanswered", "Refused", "Conflict"] = Field(
        description="Exported: other clusters can use it; Waiting: not yet; Unanswered: no controller has taken it up; "
        "Refused: its controller cannot export it; Conflict: other clusters export another one of its name."
    )
    message: str


class WorkspaceServices(Wire):
    """What it exports from one cluster."""

    cluster: str
    state: Literal["Kept", "Observed", "Missing"] = Field(
        description="Kept: it is so in the cluster; Observed: nothing is written; Missing: the message says why."
    )
    policy: Literal["ClusterNames", "Addresses", "None"] = Field(
        description="How network policies name its other clusters."
    )
    message: str
    exports: tuple[WorkspaceExport, ...]


def services_of(view: View, name: str) -> tuple[WorkspaceServices, ...]:
    """By cluster; empty if the workspace exports nothing."""
    return tuple(WorkspaceServices.model_validate(row) for row in service_rows(view.facts, name))
