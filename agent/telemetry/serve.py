"""Puts the parts of an agent's telemetry together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.telemetry.exporter import Exporter, Pods
from agent.telemetry.server import TelemetryServer
from reconciler.clock import Clock, monotonic_s
from reconciler.telemetry.telemetry_port import NodeKey


@contextmanager
def serve(listen: str, node: NodeKey, pod_resources: Path | None, clock: Clock) -> Iterator[Exporter]:
    """Served until the end of the block. Raises UserError `WrongUse` or `ListenFailed`."""
    exporter = Exporter(node, _pods(pod_resources))
    server = TelemetryServer(listen, exporter, node, clock)
    server.start()
    try:
        yield exporter
    finally:
        server.stop()


def _pods(socket: Path | None) -> Pods:
    if socket is None:
        return lambda _: {}
    from agent.telemetry.pod_resources import PodsOfGpus, lister  # HTTP/2 costs some megabytes

    return PodsOfGpus(lister(socket), monotonic_s)
