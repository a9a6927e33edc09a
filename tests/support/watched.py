"""A simulated cluster whose agents read for half an hour, as every source of telemetry should show it.

Minute 0: `train` begins on all GPUs of h100-1. Minute 10: it makes room for `tune`. Minute 15: GPU 2 of h100-1 is lost.
Minute 20: h100-2 dies. Everything that is read is remembered in `read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agent.port import GpuReading
from agent.simulated import SimulatedReader
from agent.telemetry.exporter import Exporter
from agent.telemetry.gpu_values import values_of
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import GpuFails, NodeDies
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.cluster_port import LeaseRef, SliceTerms, Stamp
from reconciler.telemetry.telemetry_port import Metric, NodeKey, PodRef
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault
from tests.support.prometheus import with_time

START = datetime(2026, 11, 20, 8, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
EVERY = 10 * SECOND
LASTS = 30 * MINUTE
A, B = ("east", "h100-1"), ("east", "h100-2")
NODES = (A, B)
POOL = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 4, "memoryPerGpu": 80, "nodes": 2}
LOST, CHANGE, LOSS, DEATH = 2, 10, 15, 20


def at(minute: float) -> datetime:
    return START + minute * MINUTE


def cluster(until: datetime) -> EmbeddedCluster:
    """What was done to it before then."""
    spec = ClusterSpec.model_validate({"driver": "embedded", "pools": (POOL,)})
    faults = (
        GpuFails(node=A[1], gpu=LOST, at=at(LOSS), xid=79, lost=True),
        NodeDies(node=B[1], at=at(DEATH)),
    )
    made = EmbeddedCluster("east", spec, faults=faults)
    stamp = Stamp(1, 1)
    made.ensure_slice(SliceTerms("vision", ("vision-train",)), stamp, START)
    made.add(A[1], LeaseRef("uid", "vision/train", "vision", at(600)), stamp, START)
    made.submit(Job("train", "vision-train", 4, timedelta(days=1)), START)
    if until >= at(CHANGE):
        made.withdraw("vision-train", "train", at(CHANGE))
        made.submit(Job("tune", "vision-train", 4, timedelta(days=1)), at(CHANGE))
    return made


@dataclass
class Watched:
    """Readings of all nodes, and exporters that have seen them."""

    read: dict[datetime, dict[NodeKey, tuple[GpuReading, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        before, after = cluster(START), cluster(at(CHANGE))
        readers = {}
        for now in _instants():
            source = before if now < at(CHANGE) else after
            for node in NODES:
                reader = readers.setdefault(
                    (node, source is after),
                    SimulatedReader(lambda t, n=node[1], s=source: s.gpu_readings(n, t)),
                )
                try:
                    self.read.setdefault(now, {})[node] = reader.read(now)
                except Fault:
                    continue  # no agent runs on a dead node

    def exporters(self, now: datetime) -> Mapping[NodeKey, Exporter]:
        """Of nodes that live then; each has seen everything up to then."""
        found = {
            node: Exporter(node, lambda readings, n=node: self.pods(n, readings, now))
            for node in self.read[max(t for t in self.read if t <= now)]
        }
        for instant in (t for t in sorted(self.read) if t <= now):
            for node, exporter in found.items():
                exporter.observe(self.read[instant].get(node, ()), instant)
        return found

    def pages(self) -> Iterator[str]:
        """What a Prometheus scrapes: every sample with its time."""
        now = [START]
        found = {
            node: Exporter(node, lambda readings, n=node: self.pods(n, readings, now[0])) for node in NODES
        }
        for now[0], nodes in sorted(self.read.items()):
            for node, readings in nodes.items():
                found[node].observe(readings, now[0])
                yield from with_time(found[node].metrics(now[0]), now[0].timestamp())

    def pods(
        self, node: NodeKey, readings: Sequence[GpuReading], now: datetime
    ) -> Mapping[str, tuple[PodRef, ...]]:
        pod = PodRef("vision-train", "train" if now < at(CHANGE) else "tune")
        return {r.uuid: (pod,) for r in readings if node == A}

    def value(self, node: NodeKey, index: int, metric: Metric, now: datetime) -> float | None:
        """What the last reading up to then said; None: nothing."""
        readings = self.read[max(t for t in self.read if t <= now)].get(node, ())
        reading = next((r for r in readings if r.index == index), None)
        xids = [
            x.xid for t in sorted(self.read) if t <= now for r in self.read[t].get(node, ()) for x in r.xids
        ]
        return None if reading is None else values_of(reading, xids[-1] if xids else 0).get(metric)


def _instants() -> list[datetime]:
    return [START + number * EVERY for number in range(LASTS // EVERY + 1)]
