"""Elastic pools of a simulated cluster: nodes that come some time after they were asked for, and go at once. Pure.

A pool that nobody scaled has its least number of nodes. Names are never used again, so that what was done to a node
that went does not stick to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.clusters.simulated.simulated_world import EPOCH, Fleet, Made, Sized, World, views_of
from reconciler.clusters.simulated.simulated_writes import WriteTarget, stale
from reconciler.model.cluster_port import Answer, Done, Stamp
from schemas.documents.cluster import Pool


def fleet_at(base: Fleet, world: World, now: datetime) -> Fleet:
    """The fleet with the nodes that its elastic pools have at `now`; this very object where no pool is elastic."""
    grown = {pool.name: pool for pool in base.spec.pools if pool.elastic is not None}
    if not grown:
        return base
    made: dict[str, Pool] = {
        node.name: pool
        for pool in grown.values()
        for node in sized(pool, world).nodes
        if node.ready_at <= now and node.name not in base.pools
    }
    views = views_of(base.cluster, base.spec, made)
    return Fleet(base.cluster, base.spec, {**base.pools, **made}, {**base.views, **views})


def sized(pool: Pool, world: World) -> Sized:
    """How large the pool is told to be, and its nodes, those to come too."""
    assert pool.elastic is not None
    found = world.sizes.get(pool.name)
    if found is not None:
        return found
    names = tuple(Made(f"{pool.name}-{i}", EPOCH) for i in range(1, pool.elastic.min + 1))
    return Sized(pool.elastic.min, names, pool.elastic.min)


def sizes_of(base: Fleet, world: World) -> Mapping[str, int]:
    """What each elastic pool was told last."""
    return {pool.name: sized(pool, world).count for pool in base.spec.pools if pool.elastic is not None}


def scaled(
    s: WriteTarget, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp
) -> tuple[World, Answer]:
    """Missing nodes come after the pool's `scaleUp`; of too many go those of `leaving` first, then those to come."""
    found = next((p for p in s.fleet.spec.pools if p.name == pool and p.elastic is not None), None)
    if found is None or found.elastic is None:
        return s.refused("NotElastic", f"the cluster has no pool {pool} that grows and shrinks")
    have = sized(found, s.world)
    if (late := stale(f"pool {pool}", have.stamp, stamp)) is not None:
        return s.world, late
    nodes, made = have.nodes, have.made
    while len(nodes) < count:
        made += 1
        nodes = (*nodes, Made(f"{pool}-{made}", s.now + found.elastic.scale_up))
    going = sorted(nodes, key=lambda node: (node.name not in leaving, node.ready_at <= s.now))
    free = [node for node in going if s.world.held(node.name).lease is None]
    gone = set(free[: max(0, len(nodes) - count)])
    nodes = tuple(node for node in nodes if node not in gone)
    left = {name: held for name, held in s.world.nodes.items() if name not in {node.name for node in gone}}
    after = Sized(count, nodes, made, stamp)
    return replace(s.world, nodes=left, sizes={**s.world.sizes, pool: after}), Done()
