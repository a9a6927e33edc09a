"""The state of a simulated cluster when its process is killed, or has company."""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.cluster_port import LeaseRef, SliceTerms, Stamp
from schemas.documents.cluster import ClusterSpec

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
POOL = {"name": "n", "gpuShape": "H100", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 40}
SPEC = ClusterSpec.model_validate({"driver": "embedded", "pools": (POOL,)})


def lease(n: int) -> LeaseRef:
    return LeaseRef(f"uid-{n}", f"red/job-{n}", "red", NOW + timedelta(hours=n))


@pytest.mark.parametrize("writes_before", [1, 7, 60])
def test_a_process_killed_at_any_instant_leaves_a_whole_state(tmp_path, writes_before):
    """SIGKILL while it writes without pause; what is read afterwards is one of the states it made."""
    state = tmp_path / "east.json"
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        cluster = EmbeddedCluster("east", SPEC, state)
        for n in range(1, 10_000):
            os.write(told, b".")
            cluster.add(f"n-{n % 40 + 1}", lease(n % 40 + 1), Stamp(1, n), NOW)
        os._exit(0)
    while writes_before > 0:
        writes_before -= len(os.read(heard, writes_before))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    nodes = EmbeddedCluster("east", SPEC, state).observe(NOW).nodes
    assert all(v.lease == lease(int(name[2:])) for name, v in nodes.items() if v.lease is not None)


def test_drivers_that_share_a_state_lose_nothing(tmp_path):
    """Two controllers and a person at once, each with an object of its own."""
    state = tmp_path / "east.json"
    EmbeddedCluster("east", SPEC, state).ensure_slice(SliceTerms("red", ("red",)), Stamp(1, 0), NOW)
    mine = [EmbeddedCluster("east", SPEC, state) for _ in range(3)]

    def submit(worker: int) -> None:
        for n in range(20):
            mine[worker].submit(Job(f"job-{worker}-{n}", "red", 0), NOW)

    threads = [threading.Thread(target=submit, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(EmbeddedCluster("east", SPEC, state).observe(NOW).workloads) == 60
