"""Whether the nodes of a running request still reach each other fast enough, as their clusters measure it. Pure."""

from __future__ import annotations

from reconciler.clusters.port import CheckResult
from reconciler.events import Event, Told
from reconciler.facts import Scene
from schemas.status import Check, GPRStatus

NAMED = 3
"""Nodes of one event that are named."""


def with_latency(key: str, status: GPRStatus, scene: Scene) -> tuple[GPRStatus, tuple[Event, ...]]:
    """The status with the checks between its nodes that fail, and a word about those that did not fail before.

    One row for a node that fails, none for one that passes: a figure that moves is no fact.
    """
    assert status.assignment is not None
    known = {c.node: c for c in status.checks if c.stage == "run"}
    rows: dict[str, Check] = {}
    fresh: list[Check] = []
    for node in status.assignment.nodes:
        results = scene.seen.outcomes.checks.get((status.uid, node, "run"))
        bad = [r for r in results if not r.passed] if isinstance(results, tuple) else []
        if node in known and (bad or not isinstance(results, tuple)):
            rows[node] = known[node]
        elif bad:
            rows[node] = _row(node, bad[0], scene)
            fresh.append(rows[node])
    if rows == known:
        return status, ()
    others = tuple(c for c in status.checks if c.stage != "run")
    status = status.model_copy(update={"checks": (*others, *rows.values())})
    return status, (_told(key, fresh, status, scene),) if fresh else ()


def _row(node: str, bad: CheckResult, scene: Scene) -> Check:
    return Check(
        stage="run", node=node, name=bad.name, passed=False, value=bad.value, log=bad.log, at=scene.now
    )


def _told(key: str, fresh: list[Check], status: GPRStatus, scene: Scene) -> Event:
    assert status.assignment is not None
    texts = "; ".join(f"{c.node}: {c.log or c.value}" for c in fresh[:NAMED])
    more = f" and {len(fresh) - NAMED} more nodes" if len(fresh) > NAMED else ""
    text = f"{key}: its nodes reach each other too slowly: {texts}{more}"
    return Event(scene.now, Told.LATENCY_HIGH, text, key, status.assignment.cluster, fresh[0].node)
