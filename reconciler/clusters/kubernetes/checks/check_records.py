"""Each node's checks and their results: one ConfigMap per node, in the system namespace.

With it a restarted controller finds earlier checks. Each write is conditional on the version that was read
and has the stamp of the decision. It is deleted with its node, through its owner reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, get_args

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import CHECK, MANAGED_BY, MANAGER, OBJECT_STAMP
from reconciler.clusters.kubernetes.nodes.node_inventory import Node
from reconciler.clusters.kubernetes.nodes.node_marks import late, stamp_of, write_stamp
from reconciler.model.cluster_port import CheckResult, Refused, Stage, Stamp
from schemas.errors import Fault
from schemas.reading.units import format_instant, parse_instant

STAGES: tuple[Stage, ...] = get_args(Stage)
FRESH = timedelta(minutes=20)
"""How long results count: after a short wait a start needs no new checks, after a long one it does."""
TRIES = 3
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Run:
    """The checks of one stage for one lease."""

    uid: str
    begun: datetime
    peer: str = ""  # the node that the latency is measured to
    ended: datetime | None = None
    results: tuple[CheckResult, ...] = ()

    def counts(self, uid: str, now: datetime, longest: timedelta) -> bool:
        """True if it is, or will be, the answer for that lease at that time."""
        return self.uid == uid and now < (self.ended or self.begun + longest) + FRESH

    @property
    def passed(self) -> bool:
        """True if it ended without a failure."""
        return self.ended is not None and all(result.passed for result in self.results)


@dataclass(frozen=True, slots=True)
class Record:
    """Everything recorded about one node."""

    name: str
    version: str | None  # None: not in the cluster yet
    stamp: Stamp | None
    runs: Mapping[Stage, Run]


class Records:
    """Reads records from an informer and writes them one by one."""

    def __init__(self, api: Api, namespace: str, wake: Callable[[], None]) -> None:
        self._api, self._namespace = api, namespace
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self.informer = Informer(api, self._path, read_record, f"{MANAGED_BY}={MANAGER},{CHECK}=record", wake)

    def of(self, node: str) -> Record:
        """The record of that node; an empty one if there is none."""
        name = record_name(node)
        return self.informer.items().get(f"{self._namespace}/{name}") or Record(name, None, None, {})

    def write(self, node: Node, stage: Stage, run: Run, stamp: Stamp) -> Refused | None:
        """Stores it; refused if the record has a newer stamp."""
        record = self.of(node.name)
        for _ in range(TRIES):
            refusal = late(f"the record of checks of node {node.name}", record.stamp, stamp)
            if refusal is not None:
                return refusal
            body = written(
                replace(record, stamp=stamp, runs={**record.runs, stage: run}), node, self._namespace
            )
            try:
                self.informer.learn(self._put(record, body))
            except Rejected as no:
                if no.status not in {404, 409} or (no.status == 404 and record.version is None):
                    raise
                record = self._read(record.name)
            else:
                return None
        raise Fault(f"the checks of node {node.name} were changed concurrently; retrying", "NodeContended")

    def _put(self, record: Record, body: Json) -> Json:
        if record.version is None:
            return self._api.create(self._path, body)
        return self._api.replace(f"{self._path}/{record.name}", body)

    def _read(self, name: str) -> Record:
        found = self._api.find(f"{self._path}/{name}")
        return Record(name, None, None, {}) if found is None else read_record(found)


def record_name(node: str) -> str:
    """One per node; a name that is too long is cut and made unique with a hash."""
    if len(node) <= LONGEST_NAME:
        return f"checks-{node}"
    return f"checks-{node[:LONGEST_NAME].rstrip('.-')}-{sha256(node.encode()).hexdigest()[:8]}"


def written(record: Record, node: Node, namespace: str) -> Json:
    """The record as a ConfigMap owned by its node."""
    meta: Json = {
        "name": record.name,
        "namespace": namespace,
        "labels": {MANAGED_BY: MANAGER, CHECK: "record"},
        "annotations": {} if record.stamp is None else {OBJECT_STAMP: write_stamp(record.stamp)},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}],
    }
    if record.version is not None:
        meta["resourceVersion"] = record.version
    data = {stage: json.dumps(_run_text(run)) for stage, run in sorted(record.runs.items())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def read_record(item: Json) -> Record:
    """A record; a damaged run counts as not run."""
    meta = item["metadata"]
    runs = {stage: _run((item.get("data") or {}).get(stage)) for stage in STAGES}
    return Record(
        meta["name"],
        meta["resourceVersion"],
        stamp_of(item),
        {stage: run for stage, run in runs.items() if run is not None},
    )


def _run_text(run: Run) -> Json:
    return {
        "uid": run.uid,
        "begun": format_instant(run.begun),
        "peer": run.peer,
        "ended": None if run.ended is None else format_instant(run.ended),
        "results": [
            {"name": r.name, "passed": r.passed, "value": r.value, "log": r.log} for r in run.results
        ],
    }


def _run(text: str | None) -> Run | None:
    if text is None:
        return None
    try:
        found: Any = json.loads(text)
        return Run(
            uid=str(found["uid"]),
            begun=parse_instant(found["begun"]),
            peer=str(found["peer"]),
            ended=None if found["ended"] is None else parse_instant(found["ended"]),
            results=tuple(
                CheckResult(str(r["name"]), r["passed"] is True, str(r["value"]), str(r["log"]))
                for r in found["results"]
            ),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
