"""A cluster of which nothing measures the GPUs, and why."""

from __future__ import annotations

from reconciler.telemetry.telemetry_port import Latest, Ranges, Silence


class Unmeasured:
    """`Telemetry` without a value."""

    def __init__(self, why: Silence) -> None:
        self._why = why

    def latest(self, *_: object) -> Latest:
        """Why there is none."""
        return Latest(silences=(self._why,))

    def range(self, *_: object) -> Ranges:
        """Why there is none."""
        return Ranges(silences=(self._why,))


def silence(cluster: str, why: str = "") -> Silence:
    """`why`: what went wrong; empty: there is no source."""
    text = f"nothing measures the GPUs of cluster {cluster}: connect Prometheus or its agents"
    return Silence(cluster, "NoMetrics", why or text)
