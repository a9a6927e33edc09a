"""What we made for each slice, and by whose word: one ConfigMap `slice-<slice>` in the system namespace.

It is written before anything that it names, always on top of the version that was read, and only by a stamp that is not
older than its own. So it is the fence of a slice's writes, and after a crash it names at least all that we made. When
the slice goes it stays as a tombstone with its stamp: an older controller does not bring the slice back.

It names each namespace with its uid as soon as that is known. So it says whose a namespace is, whatever labels somebody
writes on it, and tells it from a later one of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, NAMESPACE_SLICE, OWNER
from reconciler.clusters.kubernetes.nodes.node_marks import late, read_stamp, write_stamp
from reconciler.model.cluster_port import Refused, Stamp
from reconciler.model.memo import Memo
from schemas.errors import Fault

TRIES = 4
_NAMESPACES = "/api/v1/namespaces"


@dataclass(frozen=True, slots=True)
class Claim:
    """One slice in this cluster, as we last wrote it."""

    slice: str
    project: str
    stamp: Stamp | None = None
    namespaces: Mapping[str, bool] | None = (
        None  # True: we made it, False: it was there; None: the slice is gone
    )
    objects: tuple[str, ...] = ()  # Kind/name of what each of its namespaces may have of ours
    leaving: bool = False  # its removal has begun
    uids: Mapping[str, str] = field(default_factory=dict)  # of its namespaces, as far as they are known
    version: str = ""  # resourceVersion; empty: it is not written yet

    @property
    def made(self) -> Mapping[str, bool]:
        """Its namespaces; none where it is gone."""
        return self.namespaces or {}


def read_claim(item: Json) -> Claim | None:
    """None for what is no claim, or was made unreadable: then nothing is known to be made by us."""
    meta, data = item["metadata"], item.get("data") or {}
    slice_, project = (meta.get("labels") or {}).get(NAMESPACE_SLICE), data.get("project", "")
    if slice_ is None or meta["name"] != _name(slice_):
        return None
    stamp, version = read_stamp(data.get("stamp")), str(meta["resourceVersion"])
    try:
        namespaces, objects = json.loads(data["namespaces"]), json.loads(data["objects"])
        leaving, uids = data.get("leaving") == "true", dict(json.loads(data.get("uids", "{}")))
        return Claim(slice_, project, stamp, namespaces, tuple(objects), leaving, uids, version)
    except (KeyError, ValueError, TypeError):
        return Claim(slice_, project, stamp, version=version)


def _name(slice_: str) -> str:
    return f"slice-{slice_}"


class Claims:
    """All claims of a cluster, of every project. Thread-safe."""

    def __init__(self, api: Api, namespace: str, project: str, wake: Callable[[], None]) -> None:
        self._api, self._namespace, self._project = api, namespace, project
        self._path = f"{_NAMESPACES}/{namespace}/configmaps"
        self.informer = Informer(
            api, self._path, read_claim, f"{MANAGED_BY}={MANAGER},{NAMESPACE_SLICE}", wake
        )
        self._naming: Memo[dict[str, tuple[Claim, ...]]] = Memo()

    def get(self, slice_: str) -> Claim:
        """As last known; an empty one where there is none."""
        known = self.informer.items().get(f"{self._namespace}/{_name(slice_)}")
        return known or Claim(slice_, self._project)

    def newest(self) -> Stamp | None:
        """The newest stamp that one of this project bears."""
        own = (claim for claim in self.informer.items().values() if claim.project == self._project)
        return max((claim.stamp for claim in own if claim.stamp is not None), default=None)

    def naming(self, namespace: str) -> tuple[Claim, ...]:
        """The claims, of every project, that name this namespace."""
        known = self.informer.items()
        return self._naming.of("", partial(_by_namespace, known), same=(known,)).get(namespace, ())

    def refusal(self, claim: Claim, stamp: Stamp) -> Refused | None:
        """Why a write by that stamp may not touch this slice."""
        if claim.project != self._project and claim.namespaces is not None:
            return Refused(
                "SliceTaken",
                f"slice {claim.slice} of project {claim.project!r} is in this cluster already, and nodes bear the "
                "name of a slice alone; rename one of the two",
            )
        held = claim.stamp if claim.project == self._project else None
        return late(f"slice {claim.slice}", held, stamp)

    def take(self, slice_: str, stamp: Stamp, change: Callable[[Claim], Claim]) -> Claim | Refused:
        """The claim as `change` makes it of the present one, bearing the stamp; nothing is written where it is so."""
        claim = self.get(slice_)
        for _ in range(TRIES):
            refusal = self.refusal(claim, stamp)
            if refusal is not None:
                return refusal
            wanted = replace(change(claim), project=self._project, stamp=stamp)
            if wanted == claim:
                return claim
            try:
                return self._write(wanted)
            except Rejected as no:
                if no.status not in {404, 409}:
                    raise
                claim = self._read(slice_)
        raise Fault(f"slice {slice_} changed under {TRIES} writes in a row; tried again", "SliceContended")

    def _write(self, claim: Claim) -> Claim:
        body, path = self._body(claim), f"{self._path}/{_name(claim.slice)}"
        written = self._api.replace(path, body) if claim.version else self._create(body)
        self.informer.learn(written)
        return replace(claim, version=str(written["metadata"]["resourceVersion"]))

    def _create(self, body: Json) -> Json:
        try:
            return self._api.create(self._path, body)
        except Rejected as no:
            if no.status != 404:
                raise
        # Whoever installed us made the namespace; where it is missing all the same, nothing could ever be written.
        meta = {"name": self._namespace, "labels": {MANAGED_BY: MANAGER}}
        self._api.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        return self._api.create(self._path, body)

    def _read(self, slice_: str) -> Claim:
        found = self._api.find(f"{self._path}/{_name(slice_)}")
        if found is None:
            return Claim(slice_, self._project)
        self.informer.learn(found)
        return read_claim(found) or Claim(
            slice_, self._project, version=str(found["metadata"]["resourceVersion"])
        )

    def _body(self, claim: Claim) -> Json:
        assert claim.stamp is not None
        meta = {
            "name": _name(claim.slice),
            "namespace": self._namespace,
            "labels": {MANAGED_BY: MANAGER, NAMESPACE_SLICE: claim.slice, OWNER: claim.project},
        }
        if claim.version:
            meta["resourceVersion"] = claim.version
        data = {
            "project": claim.project,
            "stamp": write_stamp(claim.stamp),
            "namespaces": json.dumps(claim.namespaces, sort_keys=True),
            "objects": json.dumps(claim.objects),
        }
        if claim.leaving:
            data["leaving"] = "true"
        if claim.uids:
            data["uids"] = json.dumps(claim.uids, sort_keys=True)
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _by_namespace(known: Mapping[str, Claim]) -> dict[str, tuple[Claim, ...]]:
    found: dict[str, tuple[Claim, ...]] = {}
    for _, claim in sorted(known.items()):
        for name in claim.made:
            found[name] = (*found.get(name, ()), claim)
    return found
