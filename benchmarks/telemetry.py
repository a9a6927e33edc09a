"""How long questions about GPUs take, with 64 and with 2,048 of them, and what telemetry costs an agent.

Each source is asked as a portal asks it, without the shared answers. Prometheus is Debian's, with samples written
before; rings are real ones, without a network between; the simulation computes its past. The agent is scraped as often
as it reads.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from agent.port import GpuReading
from agent.telemetry.exporter import Exporter
from benchmarks.agent.footprint import INTERVAL_S, SOURCE, cpu_s, resident_mb
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.telemetry.dcgm_names import NAMES
from reconciler.telemetry.prometheus_telemetry import PrometheusTelemetry
from reconciler.telemetry.ring_format import LATEST, asked
from reconciler.telemetry.ring_telemetry import RingTelemetry
from reconciler.telemetry.simulated_telemetry import SimulatedTelemetry
from reconciler.telemetry.telemetry_port import Metric, NodeKey, Query, Telemetry
from schemas.documents.cluster import ClusterSpec
from schemas.documents.metrics import Prometheus
from tests.support.podresources import container, kubelet, pod, response
from tests.support.prometheus import prometheus

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
FOUR = (Metric.UTILISATION, Metric.TEMPERATURE, Metric.POWER, Metric.MEMORY_USED)
GPUS = 8
SIZES = {8: timedelta(hours=1), 256: timedelta(minutes=10)}
"""Nodes, and how far back their samples go."""
SCRAPE = timedelta(seconds=30)
TIMES = 9
READINGS = 60


def main() -> None:
    for nodes, back in SIZES.items():
        every = frozenset(("east", f"n-{number}") for number in range(1, nodes + 1))
        some = frozenset(sorted(every)[:4])
        print(f"\n{nodes * GPUS} GPUs on {nodes} nodes; medians of {TIMES}, ms")
        for name, source in _sources(nodes, back):
            rows = {
                "newest of all": partial(source.latest, every, NOW),
                "newest of 4 nodes": partial(source.latest, some, NOW),
                "4 metrics of 4 nodes over an hour": partial(source.range, _query(some), NOW),
            }
            print(f"  {name:10}", {what: _ms(ask) for what, ask in rows.items()}, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for shown in (False, True):
            memory_mb, core_percent = _agent(Path(folder) / str(shown), shown)
            what = "with telemetry, pods, and a scrape each time" if shown else "without telemetry"
            print(f"agent {what}: {memory_mb:.1f} MB resident, {core_percent:.3f} % of a core", flush=True)


def _query(nodes: frozenset[NodeKey]) -> Query:
    return Query(nodes, FOUR, NOW - timedelta(hours=1), NOW, timedelta(seconds=30))


def _ms(ask: Callable[[], object]) -> float:
    ask()
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        ask()
        taken.append(time.perf_counter() - began)
    return round(1000 * statistics.median(taken), 1)


def _sources(nodes: int, back: timedelta) -> Iterator[tuple[str, Telemetry]]:
    pool = {"name": "n", "gpuShape": "H100-80GB", "gpusPerNode": GPUS, "memoryPerGpu": 80, "nodes": nodes}
    simulated = EmbeddedCluster("east", ClusterSpec.model_validate({"driver": "embedded", "pools": (pool,)}))
    yield "simulated", SimulatedTelemetry("east", simulated)
    yield "rings", RingTelemetry("east", _Rings(nodes))
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder), _samples(nodes, back)) as url:
        yield (
            "prometheus",
            PrometheusTelemetry("east", Prometheus(url=url, matchers={"cluster": "east"}), None),
        )


class _Rings:
    """Agents of nodes that all did the same."""

    def __init__(self, nodes: int) -> None:
        self._exporter = Exporter(("east", "n1"))
        for number in range(360):
            at = NOW - timedelta(hours=1) + number * timedelta(seconds=10)
            self._exporter.observe(tuple(_reading(index, number) for index in range(GPUS)), at)
        self._nodes = nodes

    def ask(self, node: str, path: str, parameters: Mapping[str, str]) -> bytes:
        if path == LATEST:
            return self._exporter.latest(NOW)
        return self._exporter.range(asked(dict(parameters), ("east", node)))


def _reading(index: int, number: int) -> GpuReading:
    values = {metric.value: 50 + (number + index) % 40 for metric in Metric if metric in NAMES}
    known = {name: value for name, value in values.items() if name in GpuReading.__slots__}
    return GpuReading(f"GPU-{index}", index, "H100-80GB", 81_920, **known)  # type: ignore[arg-type]


def _samples(nodes: int, back: timedelta) -> Iterator[str]:
    for name in (dcgm.names[0] for dcgm in NAMES.values()):
        for number in range(back // SCRAPE + 1):
            at_s = (NOW - back + number * SCRAPE).timestamp()
            for node in range(1, nodes + 1):
                for gpu in range(GPUS):
                    labels = (
                        f'gpu="{gpu}",UUID="GPU-{node}-{gpu}",device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",'
                        f'Hostname="n-{node}",container="server",namespace="nlp",pod="chat-{node}",cluster="east"'
                    )
                    yield f"{name}{{{labels}}} {50 + (number + gpu) % 40} {at_s:.0f}"


def _agent(folder: Path, shown: bool) -> tuple[float, float]:
    """Memory and share of a core of an agent that reads every 10 s; here every second, and a tenth counts."""
    folder.mkdir()
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-w", "-o", folder / "libnvidia-ml.so.1", SOURCE], check=True
    )
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", folder / "fleet.git"], check=True)
    command = [
        *(
            sys.executable,
            "-c",
            "from agent.main import main; main()",
            "run",
            "--repo",
            str(folder / "fleet.git"),
        ),
        *("--cluster", "east", "--node", "h100-1", "--interval", "1", "--state", str(folder / "state")),
    ]
    if shown:
        command += ["--listen", "127.0.0.1:19400", "--pod-resources", str(folder / "kubelet.sock")]
    pods = response([pod(f"chat-{n}", container("server", f"GPU-{n}")) for n in range(100)])
    environment = os.environ | {"LD_LIBRARY_PATH": str(folder)}
    with (
        kubelet(folder / "kubelet.sock", pods),
        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as agent,
    ):
        time.sleep(15)
        began = cpu_s(agent.pid)
        for _ in range(READINGS):
            time.sleep(1)
            if shown:
                urllib.request.urlopen("http://127.0.0.1:19400/metrics", timeout=10).read()
        used = cpu_s(agent.pid) - began
        memory = resident_mb(agent.pid)
        agent.terminate()
    return memory, 100 * used / READINGS / INTERVAL_S


if __name__ == "__main__":
    main()
