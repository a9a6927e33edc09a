"""Keeps slices' Kueue objects where a cluster serves Kueue's API, and removes them: an offer of `optional_objects`."""

from __future__ import annotations

from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.queues.queue_objects import (
    CLUSTER_QUEUE,
    GROUP,
    PLURALS,
    TOPOLOGY,
    VERSIONS,
    Served,
    base_name,
    queue_objects,
    shown,
)
from reconciler.clusters.kubernetes.tenancy.optional_objects import OptionalObjects
from reconciler.clusters.kubernetes.tenancy.slice_objects import Kind
from reconciler.model.cluster_port import QueueView, SliceTerms
from schemas.errors import Fault


class Kueue:
    """What a slice has of Kueue (`optional_objects.Offer`)."""

    markers = frozenset({CLUSTER_QUEUE})
    following: frozenset[str] = frozenset()
    is_in_turn = True

    def __init__(self, project: str, cluster: str) -> None:
        self._project, self._cluster = project, cluster

    def wants(self, terms: SliceTerms) -> bool:
        return terms.queue is not None

    def served(self, api: Api) -> Served | None:
        """The preferred version that the server has; it counts only if it has what a queue needs."""
        group = api.find(f"/apis/{GROUP}")
        there = {found["version"] for found in (group or {}).get("versions") or ()}
        for version in VERSIONS:
            if version not in there:
                continue
            listed = (api.find(f"/apis/{GROUP}/{version}") or {}).get("resources") or ()
            names = {found["name"] for found in listed}
            if names >= {plural for kind, plural in PLURALS.items() if kind != TOPOLOGY}:
                return Served(version, PLURALS[TOPOLOGY] in names)
        return None

    def kinds(self, served: Served) -> tuple[Kind, ...]:
        return served.kinds

    def beside(self, api: Api) -> tuple[Informer[Any], ...]:  # noqa: ARG002 - the offer has it
        return ()

    def objects(self, terms: SliceTerms, served: Served) -> tuple[Json, ...]:
        return queue_objects(terms, self._project, served)

    def missing(self) -> str:
        versions = " nor ".join(VERSIONS)
        return (
            f"cluster {self._cluster} serves {GROUP} neither as {versions}, so the slice has no queue there; install "
            "Kueue in the cluster, or set spec.queues.kueue of the slice to false"
        )

    def unread(self, no: Fault) -> str:
        return f"the queues in cluster {self._cluster} cannot be read ({no}); the controller looks again in a minute"

    def forbidden(self, no: Fault) -> str:
        return (
            f"the controller may not keep queues in cluster {self._cluster} ({no}); set `kueue: true` in the values of "
            "its installation there, or set spec.queues.kueue of the slice to false"
        )


class Queues(OptionalObjects[Served]):
    """One project's queues in one cluster. Calls must come from one thread at a time."""

    def __init__(self, api: Api, project: str, cluster: str) -> None:
        super().__init__(api, project, Kueue(project, cluster))

    def views(self) -> dict[str, QueueView]:
        """By slice, of those that want a queue."""
        found: dict[str, QueueView] = {}
        for slice_ in sorted(self.wanting):
            have = self.find("", f"{CLUSTER_QUEUE}/{base_name(self.project, slice_)}")
            if self.problem:
                found[slice_] = QueueView(problem=self.problem)
            elif have is not None:
                found[slice_] = shown(have.body.get("spec") or {})
        return found
