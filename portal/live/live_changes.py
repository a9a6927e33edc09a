"""What differs between two views, for callers who see the same slices. Pure.

Held by tests/portal/live/test_live_changes.py: what a caller may not see is not named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from portal.identity.callers import Caller
from portal.views.inventories import held_of
from portal.views.queues import line_of
from portal.views.table_rows import clusters_seen
from portal.views.view import View
from reconciler.model.facts import NodeKey
from reconciler.model.statuses import Records, live
from scheduler.calendars.elastic import existing

MOST_NAMED = 500
"""Requests and nodes that one message names; beyond that everything counts as changed."""
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two views, for everybody."""

    requests: tuple[str, ...]
    nodes: tuple[NodeKey, ...]
    is_wide: bool
    """Documents that concern many things have changed, or whether a cluster answers."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What one caller is told of a difference."""

    requests: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    """As cluster/node."""
    is_all: bool = False
    """Anything may have changed; no names are given."""
    calendar: bool = False
    """Whether some bar may have changed, also a bar of others."""


EVERYTHING = Changes(is_all=True, calendar=True)


def id_of(view: View) -> str:
    """Names both commits: main changes also while nothing is decided."""
    return f"{view.status}.{view.main}"


def changes(found: Difference, view: View, caller: Caller) -> Changes:
    """The part that the caller may see in `view`, the newer one."""
    requests = tuple(key for key in found.requests if caller.may_see(key.partition("/")[0]))
    seen = clusters_seen(view, caller)
    nodes = tuple(f"{cluster}/{node}" for cluster, node in found.nodes if cluster in seen)
    if found.is_wide or len(requests) + len(nodes) > MOST_NAMED:
        return EVERYTHING
    return Changes(requests, nodes, calendar=bool(found.requests or found.nodes))


def difference(before: View, after: View) -> Difference:
    """O(requests + nodes) for what is not the same object in both."""
    requests = {
        *_changed(live(before.facts.requests), live(after.facts.requests)),
        *_ended(before, after),
        *_changed(before.wanted.filed, after.wanted.filed),
        *_changed(before.once_planned(line_of).turns, after.once_planned(line_of).turns),
    }
    nodes = {
        *_changed(before.facts.nodes, after.facts.nodes),
        *_changed(before.once_planned(held_of), after.once_planned(held_of)),
        *_of_pools(before, after),
    }
    old, new = before.wanted, after.wanted
    is_wide = (old.project, old.slices, old.clusters) != (new.project, new.slices, new.clusters)
    is_wide = is_wide or before.facts.clusters != after.facts.clusters
    return Difference(tuple(sorted(requests)), tuple(sorted(nodes)), is_wide)


def _changed(before: Mapping[Key, object], after: Mapping[Key, object]) -> Iterator[Key]:
    if before is after:
        return
    for key, old in before.items():
        new = after.get(key)
        if new is not old and new != old:
            yield key
    yield from (key for key in after if key not in before)


def _ended(before: View, after: View) -> set[str]:
    """Finished requests that are new or gone; they change no more."""
    old, new = before.facts.requests, after.facts.requests
    if isinstance(old, Records) and isinstance(new, Records):
        return set() if old.over is new.over else old.over.keys() ^ new.over.keys()
    return old.keys() ^ new.keys()


def _of_pools(before: View, after: View) -> Iterator[NodeKey]:
    """Nodes that came to a pool or left it."""
    for key in _changed(before.wanted.pools, after.wanted.pools):
        old, new = (view.wanted.pools.get(key) for view in (before, after))
        there = (set[str]() if pool is None else set(existing(pool)) for pool in (old, new))
        yield from ((key[0], node) for node in set[str].symmetric_difference(*there))
