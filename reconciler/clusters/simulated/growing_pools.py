"""Elastic pools of a simulated cluster: nodes arrive some time after the request, and leave at once. Pure.

An unscaled pool has its minimum of nodes. Names are never reused, so that the state of a removed node does
not affect another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.clusters.simulated.simulated_world import EPOCH, Fleet, Made, Sized, World, views_of
from reconciler.clusters.simulated.simulated_writes import WriteTarget, stale
from reconciler.model.cluster_port import Answer, Done, Stamp
from schemas.documents.pool import Pool


def fleet_at(base: Fleet, world: World, now: datetime) -> Fleet:
    """The fleet with the nodes of its elastic pools at `now`; the same object if no pool is elastic."""
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
    """The pool's target size, and its nodes, including those on their way."""
    assert pool.elastic is not None
    found = world.sizes.get(pool.name)
    if found is not None:
        return found
    names = tuple(Made(f"{pool.name}-{i}", EPOCH) for i in range(1, pool.elastic.min + 1))
    return Sized(pool.elastic.min, names, pool.elastic.min)


def sizes_of(base: Fleet, world: World) -> Mapping[str, int]:
    """Each elastic pool's last target size."""
    return {pool.name: sized(pool, world).count for pool in base.spec.pools if pool.elastic is not None}


def scaled(
    s: WriteTarget, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp
) -> tuple[World, Answer]:
    """Missing nodes arrive after the pool's `scaleUp`; surplus nodes are removed from `leaving` first, then
    those on their way.
    """
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
