"""Values of a cluster's GPUs from its agents' own rings, each asked through the API server's pod proxy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

from reconciler.telemetry.ring_format import LATEST, RANGE, question, samples_from, series_from
from reconciler.telemetry.telemetry_port import Latest, NodeKey, Query, Ranges, Silence
from schemas.errors import Fault

T = TypeVar("T")

AT_ONCE = 16
"""Agents asked at a time: with 10 ms each, 256 nodes take a sixth of a second."""


class Agents(Protocol):
    """The agents of a cluster."""

    def ask(self, node: str, path: str, parameters: Mapping[str, str]) -> bytes:
        """An agent's answer. Raises `Fault` (`NoMetrics` if this node has no agent that shows telemetry)."""


class RingTelemetry:
    """`Telemetry` of one cluster. Close it at the end."""

    def __init__(self, cluster: str, agents: Agents) -> None:
        self._cluster, self._agents = cluster, agents
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"rings-{cluster}")

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> Latest:  # noqa: ARG002 - agents have clocks
        def asked(node: NodeKey) -> Latest:
            return Latest(samples_from(self._agents.ask(node[1], LATEST, {}), node))

        found = self._each(nodes, asked, lambda silence: Latest(silences=(silence,)))
        return Latest(
            tuple(sample for one in found for sample in one.samples),
            tuple(silence for one in found for silence in one.silences),
        )

    def range(self, query: Query, now: datetime) -> Ranges:  # noqa: ARG002 - agents have clocks
        """The last six hours, as far as no agent restarted."""
        parameters = question(query)

        def asked(node: NodeKey) -> Ranges:
            return Ranges(series_from(self._agents.ask(node[1], RANGE, parameters), node, query))

        found = self._each(query.nodes, asked, lambda silence: Ranges(silences=(silence,)))
        return Ranges(
            tuple(series for one in found for series in one.series),
            tuple(silence for one in found for silence in one.silences),
        )

    def close(self) -> None:
        """Questions that are under way end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _each(
        self, nodes: Collection[NodeKey], ask: Callable[[NodeKey], T], silent: Callable[[Silence], T]
    ) -> list[T]:
        """By node; one that does not answer stops no other."""
        own = sorted(node for node in nodes if node[0] == self._cluster)
        return list(self._pool.map(partial(_told, ask, silent), own))


def _told(ask: Callable[[NodeKey], T], silent: Callable[[Silence], T], node: NodeKey) -> T:
    try:
        return ask(node)
    except Fault as fault:
        return silent(Silence(node[0], fault.reason, str(fault), node[1]))
