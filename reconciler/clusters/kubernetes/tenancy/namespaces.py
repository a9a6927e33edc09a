"""Namespaces of slices, created by us or adopted: their marks, and what blocks the deletion of one.

An existing namespace is adopted only if the cluster's admin offers it there (`egs.dev/adopt`): otherwise an
author of manifests could gain access to other people's workloads. Marks show policies and people the slice of
a namespace. Its real owner is in the slices' inventories (`slice_inventory`, `namespace_owner`), so a changed
mark has no effect.

Marks are written conditionally on the version read. A namespace that existed before us has `egs.dev/adopted`,
one that we created the label `app.kubernetes.io/managed-by: egs`, and only such a one is ever deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import (
    ADOPT,
    ADOPTED,
    KEEP,
    MANAGED_BY,
    MANAGER,
    NAMESPACE_SLICE,
    OBJECT_STAMP,
    OWNER,
)
from reconciler.clusters.kubernetes.nodes.node_marks import late, read_stamp, write_stamp
from reconciler.clusters.kubernetes.tenancy.slice_objects import labels
from reconciler.model.cluster_port import Refused, Stamp
from reconciler.model.memo import Memo

NAMESPACES = "/api/v1/namespaces"
_SYSTEM = frozenset({"default", "gpu-operator", "nvidia-gpu-operator"})
_SYSTEM_PREFIXES = ("kube-", "openshift-", "egs-")


@dataclass(frozen=True, slots=True)
class Space:
    name: str
    uid: str
    version: str
    slice: str  # empty: no mark
    project: str
    is_made: bool  # created by us, by its labels
    is_kept: bool  # a person wants it to outlive its slice
    is_leaving: bool
    offered: str = ""  # the project that the cluster's admin offers it to
    stamp: Stamp | None = None  # the stamp of the write that made it ours
    stuck: tuple[str, ...] = ()  # while it is being deleted: what the server waits for
    is_adopted: bool = False  # it existed before us, by its annotation

    @property
    def why_leaving(self) -> str:
        """Why its deletion is not finished, as a sentence."""
        what = "; ".join(self.stuck) or "its content is being deleted"
        return f"namespace {self.name} is Terminating: {what}"[:600]


def read_space(item: Json) -> Space:
    meta, status = item["metadata"], item.get("status") or {}
    own, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    found = [c for c in status.get("conditions") or () if c.get("status") == "True" and c.get("message")]
    finalizers = meta.get("finalizers") or ()
    stuck = [f"{c['type']}: {c['message']}" for c in found]
    stuck += [f"finalizer {name} on the namespace itself" for name in finalizers]
    is_leaving = "deletionTimestamp" in meta
    return Space(
        name=meta["name"],
        uid=meta["uid"],
        version=str(meta["resourceVersion"]),
        slice=own.get(NAMESPACE_SLICE, ""),
        project=own.get(OWNER, ""),
        is_made=own.get(MANAGED_BY) == MANAGER and ADOPTED not in notes,
        is_kept=KEEP in notes,
        is_leaving=is_leaving,
        offered=notes.get(ADOPT, ""),
        stamp=read_stamp(notes.get(OBJECT_STAMP)),
        stuck=tuple(stuck) if is_leaving else (),
        is_adopted=ADOPTED in notes,
    )


def is_protected(name: str, system: str) -> bool:
    """True if no slice may have it: its members would gain access to the cluster's components, or ours."""
    return name == system or name in _SYSTEM or name.startswith(_SYSTEM_PREFIXES)


def taken(namespace: str, slice_: str, project: str) -> Refused:
    """It belongs to that slice; `project` is mentioned if it is a different one."""
    whose = f" of project {project!r}" if project else ""
    return Refused("NamespaceTaken", f"namespace {namespace} belongs to slice {slice_}{whose}")


class Spaces:
    """All namespaces of the cluster, and the only writer of their marks in this process."""

    def __init__(self, api: Api, project: str, wake: Callable[[], None]) -> None:
        self._api, self._project = api, project
        self.informer = Informer(api, NAMESPACES, read_space, wake=wake)
        self._marked: Memo[dict[str, list[Space]]] = Memo()

    def find(self, name: str) -> Space | None:
        """The last known version."""
        return self.informer.items().get(name)

    def marked(self, slice_: str) -> list[Space]:
        """Namespaces with the slice's mark, including those being deleted."""
        return self.by_slice().get(slice_, [])

    def by_slice(self) -> dict[str, list[Space]]:
        """Namespaces marked for slices of this project, by us or by others."""
        known = self.informer.items()
        return self._marked.of("", partial(self._by_slice, known), same=(known,))

    def _by_slice(self, known: Mapping[str, Space]) -> dict[str, list[Space]]:
        found: dict[str, list[Space]] = {}
        for _, space in sorted(known.items()):
            if space.slice and space.project == self._project:
                found.setdefault(space.slice, []).append(space)
        return found

    def is_marked(self, space: Space, slice_: str) -> bool:
        return space.slice == slice_ and space.project == self._project

    def is_whole(self, space: Space, slice_: str, made: bool) -> bool:
        """True if it has all its labels; `made`: by us, according to the slice's claim."""
        return self.is_marked(space, slice_) and (space.is_made or space.is_adopted or not made)

    def withheld(self, space: Space, slice_: str) -> Refused | None:
        """Why that slice cannot adopt a namespace without a claim."""
        if space.slice and not self.is_marked(space, slice_):
            return taken(space.name, space.slice, "" if space.project == self._project else space.project)
        if space.offered == self._project:
            return None
        return Refused(
            "NamespaceNotOffered",
            f"namespace {space.name} was not made for slice {slice_} and is not offered to it; an admin of the "
            f"cluster can offer it with `kubectl annotate namespace {space.name} {ADOPT}={self._project} "
            "--overwrite`; or give the slice another namespace",
        )

    def mark(
        self, name: str, slice_: str, stamp: Stamp, made: bool, withheld: Callable[[], Refused | None]
    ) -> Refused | None:
        """Ensures the namespace with the slice's mark; `withheld` says why that is not allowed, as of then.

        Raises `Rejected` with 409 if it changed meanwhile: the next call uses the new version.
        """
        space = self.find(name) or self._read(name)
        if space is None:
            meta = {
                "name": name,
                "labels": labels(slice_, self._project),
                "annotations": {OBJECT_STAMP: write_stamp(stamp)},
            }
            self.informer.learn(
                self._api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
            )
            return None
        if (refusal := withheld()) is not None:
            return refusal
        is_whole = self.is_whole(space, slice_, made)
        if not is_whole or space.stamp is None or space.stamp.term < stamp.term:
            # Each leader writes its stamp once: then the version read by an older one is outdated, and cannot
            # be deleted.
            own = labels(slice_, self._project)
            notes = {OBJECT_STAMP: write_stamp(stamp)}
            if not made:
                own.pop(MANAGED_BY)
                notes |= {} if space.is_made else {ADOPTED: "true"}
            self._merge(space, own, notes)
        return None

    def unmark(self, name: str) -> None:
        """Removes its mark; everything else stays."""
        space = self.find(name)
        if space is None or space.is_leaving:
            return
        own: dict[str, str | None] = {NAMESPACE_SLICE: None, OWNER: None}
        if space.is_made:
            own[MANAGED_BY] = None
        self._merge(space, own, {OBJECT_STAMP: None, ADOPTED: None})

    def delete(self, name: str, stamp: Stamp) -> Refused | None:
        """Deletes it with its content; only as it was read, and never if a newer controller has taken it."""
        space = self.find(name)
        if space is not None and (refusal := late(f"namespace {name}", space.stamp, stamp)) is not None:
            return refusal
        try:
            if space is not None and not space.is_leaving:
                self._api.delete(f"{NAMESPACES}/{name}", uid=space.uid, version=space.version)
        finally:
            self._read(name)
        return None

    def _merge(self, space: Space, own: dict[str, str] | dict[str, str | None], notes: object) -> None:
        meta = {"resourceVersion": space.version, "labels": own, "annotations": notes}
        try:
            done = self._api.merge(f"{NAMESPACES}/{space.name}", {"metadata": meta})
        except Rejected as no:
            if no.status == 409:
                self._read(space.name)
            raise
        self.informer.learn(done)

    def _read(self, name: str) -> Space | None:
        found = self._api.find(f"{NAMESPACES}/{name}")
        if found is not None:
            self.informer.learn(found)
            return read_space(found)
        known = self.find(name)
        if known is not None:
            self.informer.forget(name, int(known.version))
        return None
