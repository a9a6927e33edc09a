"""GPR objects, the files that come from them, and what may become of both: values for `requests`. Pure."""

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
"""Label of a file: cluster/slice/namespace/name/uid of the object that it comes from."""
GENERATION = PREFIX + "generation"
"""Label of a file: the object's generation that it was written from."""
FILED_BY = AUTHOR
"""Label of a file: address of who asked for that generation, where admission vouched for it. Whoever deletes the object
is not known; what follows from that is done on behalf of this person."""


@dataclass(frozen=True, slots=True)
class GprObject:
    """One GPR object, cut down to what is read of it."""

    namespace: str
    name: str
    uid: str
    generation: int
    created: datetime
    spec: Json
    is_released: bool
    author: str | None  # as the annotation says
    manager: str  # who wrote the spec last, by their own word
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
    """The object that a file comes from."""

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
    """None for a file of people; also for a copy under another name, which took the label along."""
    parts = document.metadata.labels.get(ORIGIN, "").split("/")
    if len(parts) != 5:
        return None
    found = Origin(*parts)
    return found if found.key == f"{document.spec.slice}/{document.metadata.name}" else None


@dataclass(frozen=True, slots=True)
class ObjectsView:
    """All that is looked at."""

    cluster: str
    via: Via
    objects: Mapping[str, GprObject]  # by namespace/name
    namespaces: Mapping[str, str]  # slices, by namespace
    repository: Repository  # main
    text: Callable[[str], bytes]  # a file of main
    statuses: Mapping[str, GPRStatus]
    lost: Mapping[str, bytes] = field(default_factory=dict)
    """Files that main has no more while their requests hold nodes, as they count, by key."""
    proposals: Mapping[str, bytes | None] = field(default_factory=dict)
    """What each branch of ours has as the request's file, by key; absent where no branch waits to be merged."""
    guarded_since: datetime | None = None  # see `authors`
    troubles: Mapping[str, Refusal] = field(default_factory=dict)  # by key: why it could not be pushed
    gone: frozenset[str] = frozenset()  # keys of `orphans` whose objects were looked for and not found


@dataclass(frozen=True, slots=True)
class Author:
    """Who a change is by."""

    name: str
    is_verified: bool


DOOR = Author("", is_verified=True)
"""Nobody is known to have deleted an object: the door itself speaks for one that is gone."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Files of one request to be changed; without a change its branch goes back to main."""

    key: str
    via: Via
    changes: Mapping[str, bytes | None]
    subject: str
    author: Author
    origin: str
    behalf: str = ""
    """Address of whom admission vouches for; empty: of nobody, so that the change is nobody's where main is judged."""


@dataclass(frozen=True, slots=True)
class StatusPatch:
    """An object's status as it should be."""

    asked: GprObject
    status: Json


Action = Edit | StatusPatch


def branch_of(cluster: str, key: str) -> str:
    """The branch on which a request of a cluster's object is proposed."""
    return f"egs/gpr/{cluster}/{key}"
