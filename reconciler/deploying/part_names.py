"""Names and labels of installed objects. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, SYSTEM_NAMESPACE

RBAC = "rbac.authorization.k8s.io"
NAME = "app.kubernetes.io/name"
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
PART_OF = "app.kubernetes.io/part-of"
APP = "egs"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an installation goes, and what its cluster serves."""

    version: str  # of the image if the values give none
    name: str = APP
    budgets: str = "policy/v1"  # apiVersion of a PodDisruptionBudget

    @property
    def namespace(self) -> str:
        """The namespace of the drivers' own objects."""
        return SYSTEM_NAMESPACE

    def named(self, part: str) -> str:
        return f"{self.name}-{part}"


def picked(place: Place, part: str) -> dict[str, str]:
    return {NAME: APP, INSTANCE: place.name, COMPONENT: part}


def labels(place: Place, part: str) -> dict[str, str]:
    return picked(place, part) | {PART_OF: APP, MANAGED_BY: MANAGER}


def about(place: Place, part: str, *, namespaced: bool = True) -> Json:
    where = {"namespace": place.namespace} if namespaced else {}
    return {"name": place.named(part), **where, "labels": labels(place, part)}
