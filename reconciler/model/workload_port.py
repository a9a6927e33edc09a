"""Workloads as a cluster's driver gets and shows them: objects to apply, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from schemas.documents.workload import RENDERED_KINDS
from schemas.status.workload_status import ObjectState


@dataclass(frozen=True, slots=True, order=True)
class WorkloadRun:
    """One lease of a workload's request: a request that starts anew makes another run."""

    uid: str  # of the request
    start: datetime


@dataclass(frozen=True, slots=True, order=True)
class WorkloadObject:
    """One object to be applied, as canonical JSON."""

    kind: str
    name: str
    body: str

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class WorkloadTerms:
    """A workload in one cluster, for one run."""

    key: str  # slice/name
    namespace: str
    run: WorkloadRun
    digest: str  # of the objects
    objects: tuple[WorkloadObject, ...]  # in the order of application
    ended: tuple[
        str, ...
    ] = ()  # Kind/name of objects that have ended in this run: not applied again, not removed

    @property
    def slice(self) -> str:
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]


@dataclass(frozen=True, slots=True, order=True)
class ObjectView:
    """One object as it is now."""

    kind: str
    name: str
    state: ObjectState
    reason: str = ""
    message: str = ""
    ready: int | None = None  # replicas that are ready; None: it has none, or does not say

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class PlacedWorkload:
    """A workload of which a cluster has objects, or had some in this run."""

    key: str  # slice/name
    namespace: str
    run: WorkloadRun
    digest: str  # of the objects that were applied last
    objects: tuple[ObjectView, ...]  # in the order of application

    def differs(self, terms: WorkloadTerms) -> bool:
        """True if the terms require a write: other objects, or one that is missing, changed or refused."""
        if (self.run, self.digest, self.namespace) != (terms.run, terms.digest, terms.namespace):
            return True
        return any(each.state in TO_APPLY and each.id not in terms.ended for each in self.objects)


ENDPOINT_LABEL, VERSION_LABEL = "egs.dev/endpoint", "egs.dev/version"
"""Of the objects and pods of an endpoint's version."""
LEAST_REPLICAS = "egs.dev/least-replicas"
"""Annotation of a Deployment whose number of replicas is a scaler's: it has as many where none was accepted."""
SERVER_PORT = 8000
"""Of the server in a pod of an endpoint."""

TO_APPLY = frozenset({ObjectState.MISSING, ObjectState.CHANGED, ObjectState.REFUSED})
"""States in which an object must be applied (again)."""


def ends(kind: str) -> bool:
    """True if objects of this kind run to an end of their own."""
    return kind in RENDERED_KINDS and RENDERED_KINDS[kind].ends


def in_order(objects: Iterable[WorkloadObject]) -> tuple[WorkloadObject, ...]:
    """What others refer to first, then as in the document."""
    return tuple(sorted(objects, key=lambda each: not RENDERED_KINDS[each.kind].first))
