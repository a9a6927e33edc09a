"""What we created for each slice, with the stamp: one ConfigMap `slice-<slice>` in the system namespace.

It is written before anything that it lists, always on the version that was read, and never by an older stamp.
So it fences a slice's writes, and after a crash it lists at least everything that we created. When the slice
is removed it stays as a tombstone with its stamp: an older controller cannot bring the slice back.

It records each namespace's uid once known. So it proves who owns it, whatever its labels are, and
distinguishes it from a later one of the same name.
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
    namespaces: Mapping[str, bool] | None = None
    """True: created by us, False: it existed. None: the slice is removed."""
    objects: tuple[str, ...] = ()  # Kind/name of the objects that each of its namespaces may have
    leaving: bool = False  # its removal has begun
    uids: Mapping[str, str] = field(default_factory=dict)  # of its namespaces, if known
    version: str = ""  # resourceVersion; empty: not written yet

    @property
    def made(self) -> Mapping[str, bool]:
        """Its namespaces; empty if it is removed."""
        return self.namespaces or {}


def read_claim(item: Json) -> Claim | None:
    """None for other or damaged ConfigMaps: then nothing is known to be created by us."""
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
    """All claims in a cluster, of every project. Thread-safe."""

    def __init__(self, api: Api, namespace: str, project: str, wake: Callable[[], None]) -> None:
        self._api, self._namespace, self._project = api, namespace, project
        self._path = f"{_NAMESPACES}/{namespace}/configmaps"
        self.informer = Informer(
            api, self._path, read_claim, f"{MANAGED_BY}={MANAGER},{NAMESPACE_SLICE}", wake
        )
        self._naming: Memo[dict[str, tuple[Claim, ...]]] = Memo()

    def get(self, slice_: str) -> Claim:
        """The last known claim; an empty one if there is none."""
        known = self.informer.items().get(f"{self._namespace}/{_name(slice_)}")
        return known or Claim(slice_, self._project)

    def newest(self) -> Stamp | None:
        """The newest stamp among this project's claims."""
        own = (claim for claim in self.informer.items().values() if claim.project == self._project)
        return max((claim.stamp for claim in own if claim.stamp is not None), default=None)

    def naming(self, namespace: str) -> tuple[Claim, ...]:
        """The claims, of every project, that list this namespace."""
        known = self.informer.items()
        return self._naming.of("", partial(_by_namespace, known), same=(known,)).get(namespace, ())

    def refusal(self, claim: Claim, stamp: Stamp) -> Refused | None:
        """Why a write with that stamp may not change this slice."""
        if claim.project != self._project and claim.namespaces is not None:
            return Refused(
                "SliceTaken",
                f"slice {claim.slice} of project {claim.project!r} is in this cluster already, and nodes are "
                "marked with the slice's name only; rename one of the two",
            )
        held = claim.stamp if claim.project == self._project else None
        return late(f"slice {claim.slice}", held, stamp)

    def take(self, slice_: str, stamp: Stamp, change: Callable[[Claim], Claim]) -> Claim | Refused:
        """The claim after `change`, with the stamp; written only if it differs."""
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
        raise Fault(f"slice {slice_} changed during {TRIES} writes in a row; retrying", "SliceContended")

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
        # The installation creates the namespace; this is a fallback, without which nothing could be written.
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
