"""Repairs single objects of a slice: conditionally, and less and less often if the repairs are undone.

Known objects come from informers. Every write is conditional on the known version, and an object with a newer
stamp is never overwritten: an outdated controller that wakes up meets a newer one's writes. It can make at
most one write: create an object that is gone by now, or change one that no other writer has touched since. Either
shows as a difference to the newer controller, which repairs it in its next cycle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, NAMESPACE_SLICE, OBJECT_STAMP, OWNER
from reconciler.clusters.kubernetes.nodes.node_marks import late, stamp_of, write_stamp
from reconciler.clusters.kubernetes.tenancy.slice_objects import (
    BINDING,
    CLUSTER_ROLE,
    KINDS,
    MEMBER_ROLE,
    Kind,
    differing,
    identity,
    member_role,
)
from reconciler.model import backoff
from reconciler.model.cluster_port import Busy, Refused, Stamp
from schemas.reading.units import parse_instant

AGAIN = timedelta(seconds=1)
"""After a concurrent change of an object."""
SLICE_KINDS = (*KINDS.values(), CLUSTER_ROLE)
"""Kinds that every slice has in every cluster."""


@dataclass(frozen=True, slots=True)
class Item:
    """An object of ours, reduced to the compared fields."""

    kind: str
    namespace: str
    name: str
    slice: str
    uid: str
    version: str
    body: Json  # metadata with labels only, the content of its kind, and what is shown of it
    by: str = ""  # the last other writer, by field manager
    is_leaving: bool = False  # it is being deleted, and something holds it back
    made: datetime | None = None  # when it was created


@dataclass(frozen=True, slots=True)
class Quarrel:
    """Number and time of repairs of one object to the same content; the first write is not a repair."""

    content: str
    count: int
    at: datetime

    @property
    def rests_until(self) -> datetime:
        """When it may be repaired again."""
        if not self.count:
            return self.at
        return self.at + backoff.OBJECT_REPAIRS.after(self.count)


def repaired(before: Quarrel | None, content: str, now: datetime) -> Quarrel:
    """After a write at `now`; other content, or a long time without changes, starts again."""
    if before is None or before.content != content:
        return Quarrel(content, 0, now)
    return Quarrel(content, 1 if _in_peace(before, now) else before.count + 1, now)


class Quarrels:
    """For all objects written recently, by path; older entries are removed."""

    def __init__(self) -> None:
        self._all: dict[str, Quarrel] = {}
        self._swept: datetime | None = None

    def rests_until(self, path: str, content: str, now: datetime) -> datetime | None:
        """When this content may be written again; None: now."""
        quarrel = self._all.get(path)
        if quarrel is None or quarrel.content != content or now >= quarrel.rests_until:
            return None
        return quarrel.rests_until

    def __len__(self) -> int:
        return len(self._all)

    def repaired(self, path: str, content: str, now: datetime) -> None:
        self._sweep(now)
        self._all[path] = repaired(self._all.get(path), content, now)

    def _sweep(self, now: datetime) -> None:
        """Rarely, since a large fleet starts with thousands of writes in one cycle."""
        if self._swept is None:
            self._swept = now
        elif now - self._swept > backoff.OBJECT_REPAIRS.longest:
            self._all = {path: kept for path, kept in self._all.items() if not _in_peace(kept, now)}
            self._swept = now


def _in_peace(quarrel: Quarrel, now: datetime) -> bool:
    return now - quarrel.rests_until > backoff.OBJECT_REPAIRS.longest


def read_item(kind: Kind, item: Json) -> Item:
    """The compared fields of an object as read from the server."""
    meta = item["metadata"]
    own = meta.get("labels") or {}
    fields = (*kind.content, *kind.shown)
    body = {"metadata": {"labels": own}, **{field: item[field] for field in fields if field in item}}
    made = meta.get("creationTimestamp")
    return Item(
        kind=kind.name,
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        slice=_slice_of(item),
        uid=meta["uid"],
        version=str(meta["resourceVersion"]),
        body=body,
        by=_others(meta),
        is_leaving="deletionTimestamp" in meta,
        made=None if made is None else parse_instant(made),
    )


def is_ours(item: Json) -> bool:
    """True if we ever wrote it, whatever its labels are now."""
    return any(entry.get("manager") == MANAGER for entry in item["metadata"].get("managedFields") or ())


def _others(meta: Json) -> str:
    """Its last other writer; a status update is not a change of the object."""
    entries = [
        entry
        for entry in meta.get("managedFields") or ()
        if entry.get("manager") not in {MANAGER, None} and not entry.get("subresource")
    ]
    newest = max(entries, key=lambda e: str(e.get("time") or ""), default=None)
    return "" if newest is None else str(newest["manager"])


class Repairs:
    """Objects of these kinds of this project's slices, and their only writer in this process."""

    def __init__(
        self, api: Api, project: str, wake: Callable[[], None], kinds: Iterable[Kind] = SLICE_KINDS
    ) -> None:
        self._api, self._project, self._wake = api, project, wake
        self._kinds = {kind.name: kind for kind in kinds}
        self._known = {name: self._informer(kind) for name, kind in self._kinds.items()}
        self._quarrels = Quarrels()

    def _informer(self, kind: Kind) -> Informer[Item]:
        ours = f"{MANAGED_BY}={MANAGER}"
        if kind is CLUSTER_ROLE:
            return Informer(self._api, kind.path(), _read_role, ours, self._wake)
        selector = f"{ours},{NAMESPACE_SLICE},{OWNER}={self._project}"
        return Informer(self._api, kind.path(), partial(_read_own, kind), selector, self._wake)

    @property
    def informers(self) -> tuple[Informer[Item], ...]:
        return tuple(self._known.values())

    def items(self) -> list[Item]:
        """Every object with the labels of one of our slices."""
        return [
            item
            for name, known in self._known.items()
            if self._kinds[name] is not CLUSTER_ROLE
            for _, item in sorted(known.items().items())
        ]

    def find(self, namespace: str, what: str) -> Item | None:
        """By Kind/name; an object of the cluster as a whole has no namespace."""
        kind, _, name = what.partition("/")
        return self._known[kind].items().get(_key(namespace, name))

    def role(self) -> tuple[str, ...] | None:
        """How the fixed ClusterRole differs; None if it is missing."""
        have = self.find("", f"{CLUSTER_ROLE.name}/{MEMBER_ROLE}")
        return None if have is None else differing(CLUSTER_ROLE, member_role(), have.body)

    def put_role(self, now: datetime) -> Busy | Refused | None:
        """Ensures the fixed ClusterRole."""
        have = self.find("", f"{CLUSTER_ROLE.name}/{MEMBER_ROLE}")
        if have is not None and not differing(CLUSTER_ROLE, member_role(), have.body):
            return None
        return self._write(CLUSTER_ROLE, member_role(), have, now)

    def put(self, want: Json, stamp: Stamp, now: datetime, *, is_new: bool) -> Busy | Refused | None:
        """Ensures the object. `is_new`: its namespace was just created, so the object cannot exist."""
        kind, namespace = self._kinds[want["kind"]], want["metadata"].get("namespace", "")
        have = self.find(namespace, identity(want))
        if have is not None and not differing(kind, want, have.body):
            return None
        if have is None and not is_new:
            found = self._api.find(kind.path(namespace, want["metadata"]["name"]))
            if found is not None and not is_ours(found):
                text = f"{_shown(want)} is not ours but has a name that we need; rename it"
                return Refused("ObjectTaken", text)
            have = None if found is None else read_item(kind, found)
        return self._write(kind, _stamped(want, stamp), have, now)

    def drop(self, namespace: str, what: str, slice_: str) -> None:
        """Deletes the slice's object of that Kind/name; a foreign one, or another slice's, stays."""
        kind, _, name = what.partition("/")
        path, known = self._kinds[kind].path(namespace, name), self.find(namespace, what)
        found = self._api.find(path)
        if found is not None:
            if not is_ours(found) or _slice_of(found) not in {slice_, ""}:
                return
            self._api.delete(path, uid=found["metadata"]["uid"])
            self._known[kind].forget(_key(namespace, name), int(found["metadata"]["resourceVersion"]))
        elif known is not None:
            self._known[kind].forget(_key(namespace, name), int(known.version))

    def _write(self, kind: Kind, want: Json, have: Item | None, now: datetime) -> Busy | Refused | None:
        path = kind.path(want["metadata"].get("namespace", ""), want["metadata"]["name"])
        content = json.dumps([want["metadata"]["labels"], *(want[f] for f in kind.content)], sort_keys=True)
        if (until := self._quarrels.rests_until(path, content, now)) is not None:
            by = f" by {have.by}" if have is not None and have.by else ""
            return Busy(until, f"{path} is changed again and again{by}; pausing until then")
        try:
            self._apply(kind, path, want, have)
        except Rejected as no:
            if no.status != 409:
                raise
            if kind is CLUSTER_ROLE:  # of no slice, so it has no stamp; the informer catches up
                return _contended(path, now)
            if (trouble := self._again(kind, path, want, now)) is not None:
                return trouble
        self._quarrels.repaired(path, content, now)
        return None

    def _again(self, kind: Kind, path: str, want: Json, now: datetime) -> Busy | Refused | None:
        """Once more, on the present version: a quota's status changes with every pod."""
        found, stamp = self._api.find(path), stamp_of(want)
        if found is not None and stamp is not None:
            refusal = late(_shown(want), stamp_of(found), stamp)
            if refusal is not None:
                return refusal
        try:
            self._apply(kind, path, want, None if found is None else read_item(kind, found))
        except Rejected as no:
            if no.status != 409:
                raise
            return _contended(path, now)
        return None

    def _apply(self, kind: Kind, path: str, want: Json, have: Item | None) -> None:
        if have is not None and kind is BINDING and have.body["roleRef"] != want["roleRef"]:
            self._api.delete(path, uid=have.uid)  # a binding's role cannot be changed
            have = None
        condition = {} if have is None else {"resourceVersion": have.version}
        done = self._api.apply(path, {**want, "metadata": {**want["metadata"], **condition}})
        if kind.is_exact and differing(kind, want, done):  # an apply leaves foreign fields alone
            done = self._api.replace(path, {**done, **{field: want[field] for field in kind.content}})
        self._known[kind.name].learn(done)


def _key(namespace: str, name: str) -> str:
    """As informers name an object."""
    return f"{namespace}/{name}" if namespace else name


def _shown(want: Json) -> str:
    namespace = want["metadata"].get("namespace")
    return f"{identity(want)} in namespace {namespace}" if namespace else identity(want)


def _slice_of(item: Json) -> str:
    return str((item["metadata"].get("labels") or {}).get(NAMESPACE_SLICE, ""))


def _read_own(kind: Kind, item: Json) -> Item | None:
    """Our labels alone make no object ours."""
    return read_item(kind, item) if is_ours(item) else None


def _read_role(item: Json) -> Item | None:
    return read_item(CLUSTER_ROLE, item) if item["metadata"]["name"] == MEMBER_ROLE else None


def _contended(path: str, now: datetime) -> Busy:
    return Busy(now + AGAIN, f"{path} was changed concurrently")


def _stamped(want: Json, stamp: Stamp) -> Json:
    meta = want["metadata"]
    notes: Mapping[str, str] = {**(meta.get("annotations") or {}), OBJECT_STAMP: write_stamp(stamp)}
    return {**want, "metadata": {**meta, "annotations": dict(notes)}}
