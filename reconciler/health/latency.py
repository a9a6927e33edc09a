"""Whether the nodes of a running request still reach each other fast enough, by their clusters' measurements. Pure."""

from __future__ import annotations

from reconciler.health.check_results import rows
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context
from schemas.status.gpr_status import Check, GPRStatus

NAMED = 3
"""Nodes listed in one event."""


def with_latency(key: str, status: GPRStatus, context: Context) -> tuple[GPRStatus, tuple[Event, ...]]:
    """The status with the latency checks of its nodes, and an event about new failures.

    One row per node, as of its last change between pass and fail: a fluctuating number is not a fact.
    """
    assert status.assignment is not None
    known = {c.node: c for c in status.checks if c.stage == "run"}
    found: dict[str, Check] = {}
    fresh: list[Check] = []
    for node in status.assignment.nodes:
        results = context.seen.outcomes.checks.get((status.uid, node, "run"))
        if not isinstance(results, tuple) or not results:
            found |= {node: known[node]} if node in known else {}
            continue
        said = next((r for r in results if not r.passed), results[0])
        if node in known and known[node].passed is said.passed:
            found[node] = known[node]
            continue
        (found[node],) = rows([said], ("run", node, context.now), status.checks)
        fresh += [] if said.passed else [found[node]]
    if found == known:
        return status, ()
    others = tuple(c for c in status.checks if c.stage != "run")
    status = status.edited(checks=(*others, *found.values()))
    return status, (_told(key, fresh, status, context),) if fresh else ()


def _told(key: str, fresh: list[Check], status: GPRStatus, context: Context) -> Event:
    assert status.assignment is not None
    texts = "; ".join(f"{c.node}: {c.log or c.value}" for c in fresh[:NAMED])
    more = f" and {len(fresh) - NAMED} more nodes" if len(fresh) > NAMED else ""
    text = f"{key}: its nodes reach each other too slowly: {texts}{more}"
    return Event(context.now, EventReason.LATENCY_HIGH, text, key, status.assignment.cluster, fresh[0].node)
