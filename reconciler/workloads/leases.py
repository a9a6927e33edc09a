"""Which slices had which nodes when: the bound of what a caller may see of a GPU. Pure.

A lease counts from the start of its request to its strict end. Time of checks and of cleaning belongs to nobody's view.
For a node that came as a replacement the request's start would be too early: there it counts from its own checks.

Held by tests/reconciler/workloads/test_leases.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.facts import NodeKey
from reconciler.model.statuses import holders
from reconciler.telemetry.leased_time import Interval, Leased, joined
from schemas.status.gpr_status import GPRStatus, Phase


@dataclass(frozen=True, slots=True)
class Held:
    """A request that runs on a node now."""

    request: str  # slice/name
    uid: str
    since: datetime
    until: datetime

    @property
    def slice(self) -> str:
        return self.request.partition("/")[0]


def holding_now(requests: Mapping[str, GPRStatus], now: datetime) -> dict[NodeKey, Held]:
    """The request that runs on each node at `now`; nodes in preparation or being cleaned have none."""
    found: dict[NodeKey, Held] = {}
    for key, status in sorted(holders(requests).items()):
        for node, span in _spans(status):
            if (
                status.phase is Phase.PROVISIONED
                and span.since <= now
                and (span.until is None or now < span.until)
            ):
                assert span.until is not None
                found[node] = Held(key, status.uid, span.since, span.until)
    return found


def leased_to(statuses: Iterable[GPRStatus]) -> Leased:
    """When these requests had their nodes, by node: the caller chooses requests that they may see."""
    found: dict[NodeKey, list[Interval]] = defaultdict(list)
    for status in statuses:
        for node, span in _spans(status):
            found[node].append(span)
    return {node: joined(spans) for node, spans in sorted(found.items())}


def _spans(status: GPRStatus) -> Iterable[tuple[NodeKey, Interval]]:
    """Its nodes, each with the time in which it was the request's."""
    held, start, end = status.assignment, status.start_time, status.end_time
    if held is None or start is None or end is None:
        return
    if status.eviction is not None:
        end = min(end, status.eviction.at)
    for node in held.nodes:
        since = _since(status, node, start)
        if since is not None and since < end:
            yield (held.cluster, node), Interval(since, end)


def _since(status: GPRStatus, node: str, start: datetime) -> datetime | None:
    """When the node became the request's; None: it replaced another node, and nothing says when."""
    if not status.replaced_nodes:
        return start
    checked = [check.at for check in status.checks if check.node == node and check.stage == "pre"]
    return max(start, *checked) if checked else None
