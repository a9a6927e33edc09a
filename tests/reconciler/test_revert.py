"""A reverted commit undoes what it caused (C2, H13, H14).

Two worlds live through the same minutes; in one of them a change is merged and reverted. In between they differ, and
in the end nobody can tell them apart: not by the clusters, and not by what is promised. What stays is a start that came
meanwhile, and a promise that somebody who is still there was given: neither is ever taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from reconciler.clusters.simulated.scripted_faults import NamespaceDeleted
from schemas.reading.units import format_instant
from tests.support.laws import Laws
from tests.support.world import World, at, cluster, gpr, gpr_path, project, slice_

MERGED, LOOKED, REVERTED, END = at(5), at(8), at(10), at(20)
BASE = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(),
    "slices/a/slice.yaml": slice_("a", quota={"gpus": 16}),
    "slices/b/slice.yaml": slice_("b"),
    gpr_path("a/runs"): gpr("a", "runs", nodes=2, priority=200),
    gpr_path("b/waits"): gpr("b", "waits", notBefore=format_instant(at(40))),
    gpr_path("a/last"): gpr("a", "last", nodes=2),
}
"""`a/runs` has both nodes of east until minute 62; the others wait for them."""
WINDOW = {"begin": format_instant(at(65)), "end": format_instant(at(95)), "nodes": ["h100-1"]}
QUOTA = {"gpus": 16}
IDLE = {path: text for path, text in BASE.items() if "/gprs/" not in path}
POOL = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 2}
Happens = Callable[[World], object]


def shown(world: World) -> dict[str, Any]:
    """Everything that a person could see of it, but for what happened on the way."""
    facts = world.facts()
    found: dict[str, Any] = {
        key: (status.phase, status.reason, status.estimated_start_time, status.assignment, status.end_time)
        for key, status in facts.requests.items()
    }
    found |= {f"{cluster}/{name}": record.state for (cluster, name), record in facts.nodes.items()}
    for name in facts.clusters:
        view = world.drivers[name].observe(world.now)
        found[f"slices of {name}"] = view.slices
        found |= {f"marks of {name}/{node.name}": (node.lease, node.isolated) for node in view.nodes.values()}
    return found


def nothing(_: World) -> None:
    """Nobody else does anything."""


def namespace_deleted(world: World) -> None:
    """Somebody deletes what is a slice's."""
    world.drivers["east"].inject(NamespaceDeleted(namespace="a", at=at(6)))


def both_bad(world: World) -> None:
    """Two agents find their nodes unfit."""
    for name in ("h100-1", "h100-2"):
        world.report(name, healthy=False)


def lived(
    base: Mapping[str, str], change: Mapping[str, str], happens: Happens
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is shown between merge and revert, and at the end; an empty change is never merged."""
    world = World({**BASE, **dict.fromkeys(BASE.keys() - base.keys())})
    laws = Laws(world)
    world.run(MERGED)
    if change:
        world.commit(change)
    happens(world)
    world.run(LOOKED)
    between = shown(world)
    world.run(REVERTED)
    if change:
        world.commit({path: base.get(path) for path in change})
    world.run(END)
    laws.reads_back()
    assert laws.broken == []
    return between, shown(world)


@pytest.mark.parametrize(
    ("base", "change", "happens"),
    [
        pytest.param(BASE, {"slices/c/slice.yaml": slice_("c")}, nothing, id="a new slice"),
        pytest.param(
            BASE,
            {"slices/a/slice.yaml": slice_("a", namespaces=["a", "more"], quota=QUOTA)},
            nothing,
            id="one more namespace",
        ),
        pytest.param(BASE, {"clusters/west.yaml": cluster("west")}, nothing, id="a new cluster"),
        pytest.param(BASE, {"clusters/east.yaml": cluster(nodes=4)}, nothing, id="more nodes in a pool"),
        pytest.param(BASE, {"clusters/east.yaml": cluster(maintenance=[WINDOW])}, nothing, id="maintenance"),
        pytest.param(BASE, {"clusters/east.yaml": cluster(mode="observe")}, nothing, id="mode observe"),
        pytest.param(
            BASE, {"clusters/east.yaml": cluster(paused=True)}, namespace_deleted, id="a pause of a cluster"
        ),
        pytest.param(
            BASE,
            {"slices/a/slice.yaml": slice_("a", quota=QUOTA, paused=True)},
            namespace_deleted,
            id="a pause of a slice",
        ),
        pytest.param(
            IDLE,
            {"clusters/east.yaml": cluster(pools=[{**POOL, "maxIsolated": 2}])},
            both_bad,
            id="a higher maxIsolated",
        ),
        pytest.param(
            BASE,
            {"project.yaml": project(limits={"nodesPerRequest": 1})},
            nothing,
            id="a limit of the project",
        ),
        pytest.param(
            BASE, {"slices/a/slice.yaml": slice_("a", quota={"gpus": 8})}, nothing, id="a smaller quota"
        ),
        pytest.param(
            BASE, {gpr_path("b/urgent"): gpr("b", "urgent", 2, priority=300)}, nothing, id="an urgent request"
        ),
    ],
)
def test_it_is_as_if_it_had_never_been_merged(
    base: Mapping[str, str], change: Mapping[str, str], happens: Happens
) -> None:
    meant_between, meant = lived(base, {}, happens)
    between, found = lived(base, change, happens)
    assert between != meant_between
    assert found == meant
