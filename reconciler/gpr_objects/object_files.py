"""GPR objects, the files made from them, and their possible changes: values for `requests`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from reconciler.clusters.kubernetes.names import AUTHOR, PREFIX, RELEASE
from reconciler.gpr_objects.object_status import Refusal
from schemas.documents.gpr import GPR
from schemas.reading.units import parse_instant
from schemas.rules.repository import Repository
from schemas.status.gpr_status import GPRStatus

Json = dict[str, Any]
Via = Literal["commit", "branch"]

ORIGIN = PREFIX + "origin"
"""Label of a file: cluster/slice/namespace/name/uid of its object."""
GENERATION = PREFIX + "generation"
"""Label of a file: the generation of the object that it was written from."""
FILED_BY = AUTHOR
"""Label of a file: address of the author of that generation, if admission vouched for it. The deleter of an
object is unknown; a deletion is done on behalf of this person.
"""


@dataclass(frozen=True, slots=True)
class GprObject:
    """One GPR object, reduced to the fields that are read."""

    namespace: str
    name: str
    uid: str
    generation: int
    created: datetime
    spec: Json
    is_released: bool
    author: str | None  # from the annotation
    manager: str  # the last writer of the spec, as the client claims
    status: Json


def asked_from(item: Json) -> GprObject | None:
    """None for an object that is being deleted: it counts as gone."""
    meta = item["metadata"]
    if "deletionTimestamp" in meta:
        return None
    annotations = meta.get("annotations") or {}
    return GprObject(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        generation=meta.get("generation", 1),
        created=parse_instant(meta["creationTimestamp"]),
        spec=item.get("spec") or {},
        is_released=annotations.get(RELEASE) == "true",
        author=annotations.get(AUTHOR) or None,
        manager=_manager(meta),
        status=item.get("status") or {},
    )


def _manager(meta: Json) -> str:
    entries = [
        entry
        for entry in meta.get("managedFields") or ()
        if "f:spec" in (entry.get("fieldsV1") or {}) or "f:metadata" in (entry.get("fieldsV1") or {})
    ]
    newest: Json = max(entries, key=lambda entry: str(entry.get("time", "")), default={})
    return str(newest.get("manager", "unknown"))


@dataclass(frozen=True, slots=True)
class Origin:
    cluster: str
    slice: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """The request's `slice/name`."""
        return f"{self.slice}/{self.name}"

    def __str__(self) -> str:
        return f"{self.cluster}/{self.slice}/{self.namespace}/{self.name}/{self.uid}"


def origin_of(document: GPR) -> Origin | None:
    """None for a person's file; also for a copy under another name, which has the label too."""
    parts = document.metadata.labels.get(ORIGIN, "").split("/")
    if len(parts) != 5:
        return None
    found = Origin(*parts)
    return found if found.key == f"{document.spec.slice}/{document.metadata.name}" else None


@dataclass(frozen=True, slots=True)
class ObjectsView:
    """All inputs."""

    cluster: str
    via: Via
    objects: Mapping[str, GprObject]  # by namespace/name
    namespaces: Mapping[str, str]  # slices, by namespace
    repository: Repository  # main
    text: Callable[[str], bytes]  # a file of main
    statuses: Mapping[str, GPRStatus]
    lost: Mapping[str, bytes] = field(default_factory=dict)
    """Files missing on main whose requests hold nodes, as they count, by key."""
    proposals: Mapping[str, bytes | None] = field(default_factory=dict)
    """The request's file on each of our branches, by key; absent if no branch waits for a merge."""
    guarded_since: datetime | None = None  # see `authors`
    troubles: Mapping[str, Refusal] = field(default_factory=dict)  # by key: why pushing failed
    gone: frozenset[str] = frozenset()  # keys of `orphans` whose objects were confirmed to be missing


@dataclass(frozen=True, slots=True)
class Author:
    name: str
    is_verified: bool


DOOR = Author("", is_verified=True)
"""Deletions have no known author: the door itself acts for a deleted object."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Files of one request to change; without a change its branch is reset to main."""

    key: str
    via: Via
    changes: Mapping[str, bytes | None]
    subject: str
    author: Author
    origin: str
    behalf: str = ""
    """Address of the person that admission vouches for; empty: none, so a judged main treats the author as unknown."""


@dataclass(frozen=True, slots=True)
class StatusPatch:
    asked: GprObject
    status: Json


Action = Edit | StatusPatch


def branch_of(cluster: str, key: str) -> str:
    """The branch that proposes the request of a cluster's object."""
    return f"egs/gpr/{cluster}/{key}"
