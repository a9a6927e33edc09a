"""What we applied of each workload: one ConfigMap `workload-<slice>.<name>` in the system namespace.

It is written before the objects that it lists, always on the version that was read. So after a crash it lists at least
everything that we applied, and everything can be removed again. It has names, no contents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, NAMESPACE_SLICE, OWNER, WORKLOAD
from reconciler.model.workload_port import WorkloadRun
from schemas.reading.units import format_instant, parse_instant


@dataclass(frozen=True, slots=True)
class AppliedObject:
    """One object that we applied, or tried to."""

    api: str
    kind: str
    name: str
    fields: str = ""  # digest of the fields that we own; empty: its last apply was refused
    reason: str = ""  # why it was refused; empty: it was not
    message: str = ""

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class WorkloadRecord:
    """One workload in this cluster, as we last wrote it."""

    key: str  # slice/name
    namespace: str
    run: WorkloadRun
    digest: str
    objects: tuple[AppliedObject, ...] = ()
    version: str = ""  # resourceVersion; empty: not written yet


class WorkloadRecords:
    """All records of one project in a cluster. Thread-safe."""

    def __init__(self, api: Api, namespace: str, project: str, wake: Callable[[], None]) -> None:
        self._api, self._namespace, self._project = api, namespace, project
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        selector = f"{MANAGED_BY}={MANAGER},{WORKLOAD},{OWNER}={project}"
        self.informer = Informer(api, self._path, read_record, selector, wake)

    def all(self) -> Mapping[str, WorkloadRecord]:
        """By slice/name."""
        return {record.key: record for _, record in sorted(self.informer.items().items())}

    def get(self, key: str) -> WorkloadRecord | None:
        return self.informer.items().get(f"{self._namespace}/{_name(key)}")

    def write(self, record: WorkloadRecord) -> WorkloadRecord:
        """Conditional on its version; raises `Rejected` 409 if others wrote it."""
        body = self._body(record)
        if record.version:
            written = self._api.replace(f"{self._path}/{_name(record.key)}", body)
        else:
            written = self._api.create(self._path, body)
        self.informer.learn(written)
        return replace(record, version=str(written["metadata"]["resourceVersion"]))

    def delete(self, record: WorkloadRecord) -> None:
        self._api.delete(f"{self._path}/{_name(record.key)}", version=record.version)
        self.informer.forget(f"{self._namespace}/{_name(record.key)}", int(record.version))

    def _body(self, record: WorkloadRecord) -> Json:
        slice_, _, name = record.key.partition("/")
        own = {MANAGED_BY: MANAGER, NAMESPACE_SLICE: slice_, WORKLOAD: name, OWNER: self._project}
        meta: Json = {"name": _name(record.key), "namespace": self._namespace, "labels": own}
        if record.version:
            meta["resourceVersion"] = record.version
        data = {
            "namespace": record.namespace,
            "uid": record.run.uid,
            "start": format_instant(record.run.start),
            "digest": record.digest,
            "objects": json.dumps([asdict(each) for each in record.objects]),
        }
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def read_record(item: Json) -> WorkloadRecord:
    """Raises ValueError, LookupError or TypeError for a damaged one: the informer skips it and says so."""
    meta, data = item["metadata"], item["data"]
    own = meta["labels"]
    return WorkloadRecord(
        key=f"{own[NAMESPACE_SLICE]}/{own[WORKLOAD]}",
        namespace=data["namespace"],
        run=WorkloadRun(data["uid"], parse_instant(data["start"])),
        digest=data["digest"],
        objects=tuple(AppliedObject(**each) for each in json.loads(data["objects"])),
        version=str(meta["resourceVersion"]),
    )


def _name(key: str) -> str:
    return f"workload-{key.replace('/', '.')}"
