"""How often nodes failed lately (D17, B8): what counts as a fault, and for how long."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.health.node_faults import KEPT, MOST, with_faults
from reconciler.model.facts import Facts
from reconciler.status.render import render
from schemas.documents.cluster import Cluster, ClusterSpec
from schemas.status.node_status import NodeMetadata, NodeRecord, NodeState
from tests.reconciler.acting.test_actions import wanted
from tests.support.readback import facts_from
from tests.support.world import at, cluster, parsed

NODE = ("east", "h100-1")
NOW = at(100)


def spec(**more: object) -> dict[str, ClusterSpec]:
    document = parsed("clusters/east.yaml", cluster("east", **more))
    assert isinstance(document, Cluster)
    return {"east": document.spec}


def record(state: NodeState, reason: str) -> NodeRecord:
    return NodeRecord(
        metadata=NodeMetadata(name=NODE[1]),
        cluster="east",
        pool="h100",
        state=state,
        reason=reason,
        since=NOW,
    )


BAD = record(NodeState.UNHEALTHY, "Xid79")
WORSE = record(NodeState.QUARANTINED, "FaultTrend")
SUSPECT = record(NodeState.SUSPECT, "Xid79")
SILENT = record(NodeState.LOST, "NodeNotReady")
GONE = record(NodeState.LOST, "NodeGone")
CORDONED = record(NodeState.CORDONED, "Cordoned")


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, None, 0, id="a sound node has none"),
        pytest.param(None, BAD, 1, id="its agent reports it bad"),
        pytest.param(None, SUSPECT, 1, id="also where it stays in service"),
        pytest.param(None, SILENT, 1, id="it falls silent"),
        pytest.param(BAD, BAD, 0, id="it stays bad"),
        pytest.param(BAD, WORSE, 0, id="it gets worse"),
        pytest.param(SUSPECT, BAD, 0, id="it is taken out at last"),
        pytest.param(CORDONED, BAD, 1, id="it was only cordoned before"),
        pytest.param(None, CORDONED, 0, id="somebody cordons it"),
        pytest.param(None, GONE, 0, id="the cluster forgets it"),
    ],
)
def test_an_outage_counts_once(old: NodeRecord | None, new: NodeRecord | None, want: int) -> None:
    before, after = ({NODE: r} if r is not None else {} for r in (old, new))
    assert len(with_faults({}, (before, after), spec(), NOW).get(NODE, ())) == want


@pytest.mark.parametrize(
    ("times", "clusters", "want"),
    [
        pytest.param((NOW - KEPT + timedelta(seconds=1),), spec(), 1, id="a month's are kept"),
        pytest.param((NOW - KEPT,), spec(), 0, id="what is older is not"),
        pytest.param(
            (at(1), at(3)),
            spec(cleared=[{"node": "h100-1", "at": at(2).isoformat()}]),
            1,
            id="mended meanwhile",
        ),
        pytest.param((at(1),), {}, 0, id="its cluster is gone"),
        pytest.param(tuple(at(m) for m in range(90)), spec(), MOST, id="no more than say anything"),
    ],
)
def test_what_is_remembered(times: tuple[object, ...], clusters: dict[str, ClusterSpec], want: int) -> None:
    found = with_faults({NODE: times}, ({}, {}), clusters, NOW)  # type: ignore[dict-item]
    assert len(found.get(NODE, ())) == want


def test_the_history_is_a_fact() -> None:
    facts = Facts(NOW, faults={NODE: (at(1), at(50))})
    files = render(facts, wanted(), (), ())
    assert facts_from(files, NOW, "").faults == facts.faults
