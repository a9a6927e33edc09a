"""Differences between two snapshots, as changes that can be undone one by one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TypeVar

from scheduler.calendars.elastic import is_placeholder
from scheduler.fairness.rank import Rank, mover, rank_key
from scheduler.snapshot import FOREVER, Change, ChangeKind, Lease, Pool, PoolKey, Request, Snapshot, Window
from schemas.status.gpr_status import Cause

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Known:
    """What the caller knows about a change beyond the snapshots."""

    cause: Cause
    by: str = ""


def changes_between(
    before: Snapshot, after: Snapshot, known: Mapping[tuple[ChangeKind, str], Known] | None = None
) -> tuple[Change, ...]:
    """Every difference that can take nodes away; `known` causes replace the usual cause of a kind.

    Differences that only free nodes (a removed request, an early end, a returned node) are left out.
    """
    found = (
        *_requests(before, after),
        *_leases(before, after),
        *_pools(before, after),
        *_nodes(before, after),
        *_clock(before, after),
    )
    return tuple(_as_known(change, known or {}) for change in found)


def undo(before: Snapshot, after: Snapshot, changes: Iterable[Change]) -> Snapshot:
    """`after` with `before`'s entry for the key of each change; everything else stays as it is now."""
    chosen = tuple(changes)
    entries = dict.fromkeys(change.key for change in chosen if change.kind in _OF_ENTRIES)
    undone = _undo_entries(before, after, entries) if entries else after
    for change in chosen:
        if change.kind not in _OF_ENTRIES:
            undone = _UNDO[change.kind](before, undone, change.key)
    return undone


def promised(before: Snapshot, after: Snapshot, key: str) -> int | None:
    """The last committed start of a waiting request, even if it was edited since."""
    for snapshot in (after, before):
        request = snapshot.requests.get(key)
        if request is not None and request.promise is not None:
            return request.promise.start
    return None


def node_key(pool: PoolKey, node: str) -> str:
    """The key of a node's change."""
    return "/".join((*pool, node))


def pool_key(pool: PoolKey) -> str:
    """The key of a pool's change."""
    return "/".join(pool)


def _requests(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    moved = dict.fromkeys(
        sorted(
            key
            for key, request in after.requests.items()
            if (old := before.requests.get(key)) is not None and old.move != request.move
        )
    )
    for key, request in sorted(after.requests.items()):
        old = before.requests.get(key)
        if old is request:
            continue
        if old is None:
            cause = Cause.REQUEUED if key in before.leases else Cause.HIGHER_RANK_ARRIVED
            yield Change(ChangeKind.REQUEST, key, cause, key)
        elif asked(request) != asked(old) or _asks_anew(request, old):
            if moved and asked(replace(request, move=old.move)) == asked(old):
                cause, by = Cause.ADMIN_MOVED, mover(key, moved, *_ranks(before, after, (key, *moved)))
            else:
                cause, by = Cause.REQUEST_CHANGED, key
            yield Change(ChangeKind.REQUEST, key, cause, by)
        elif request.pools != old.pools:
            yield Change(ChangeKind.REQUEST, key, Cause.POLICY_CHANGED, key)


def _ranks(before: Snapshot, after: Snapshot, keys: Sequence[str]) -> tuple[dict[str, Rank], dict[str, Rank]]:
    old, new = ({k: rank_key(side.requests[k]) for k in keys} for side in (before, after))
    return old, new


def _asks_anew(request: Request, old: Request) -> bool:
    return request.promise is None and (old.promise is not None or request.may_displace > old.may_displace)


def asked(request: Request) -> tuple[object, ...]:
    """What its people wrote; promise, pools and rank adjustments are derived from it."""
    found: tuple[object, ...] = _asked_fields(request)
    return found


_DERIVED = {
    "promise", "movable", "may_displace", "pools", "slice", "fallback", "boost", "share", "service", "latest",
}  # fmt: skip
_asked_fields = attrgetter(*(f.name for f in fields(Request) if f.name not in _DERIVED))


def _leases(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    for key, lease in sorted(after.leases.items()):
        old = before.leases.get(key)
        if old is None and _holds_more_than_promised(lease, before.requests.get(key)):
            yield Change(ChangeKind.LEASE, key, Cause.REQUEST_CHANGED, key)
        elif old is not None and set(lease.nodes) - set(old.nodes):
            yield Change(ChangeKind.LEASE, key, Cause.NODE_REPLACED, key)
        elif old is not None and lease.end > old.end:
            yield Change(ChangeKind.LEASE, key, Cause.REQUEST_CHANGED, key)
        elif old is not None and lease.held_until > old.held_until:
            yield Change(ChangeKind.LEASE, key, Cause.CHECKS_FAILED, key)


def _holds_more_than_promised(lease: Lease, request: Request | None) -> bool:
    """A promise that becomes a lease as promised changes nothing for other requests."""
    if request is None or request.promise is None:
        return True
    promised = (request.promise.pool, request.nodes, request.promise.start + request.duration)
    return promised != (lease.pool, len(lease.nodes), lease.end) or lease.start < request.promise.start


def _pools(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    for key, old in before.pools.items():
        pool = after.pools.get(key)
        if pool is None or (old.open and not pool.open):
            yield Change(ChangeKind.POOL, pool_key(key), Cause.CLUSTER_UNREACHABLE, key[0])
        elif _terms(pool) != _terms(old):
            yield Change(ChangeKind.POOL, pool_key(key), Cause.POLICY_CHANGED, key[0])


def _terms(pool: Pool) -> Pool:
    plain = replace(pool, nodes=(), windows={}, open=True, observed=False, price_per_gpu_hour=0.0)
    # Use of the reserve is not a policy; `reconciler.planning.elastic_pools` knows why nodes come later than they did.
    return replace(plain, withheld=tuple(kept for kept in pool.withheld if not kept.reserve))


def _nodes(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    for key, old in before.pools.items():
        pool = after.pools.get(key)
        if pool is not None:
            there = frozenset(pool.nodes)
            fewer = len(pool.nodes) < len(old.nodes)  # a placeholder disappears when a new node arrives
            for name in old.nodes:
                if is_placeholder(name) and name not in there:
                    if fewer:
                        yield Change(ChangeKind.NODE, node_key(key, name), Cause.POLICY_CHANGED, key[0])
                    continue
                cause = _node_cause(old.windows.get(name, ()), pool.windows.get(name, ()), name in there)
                if cause is not None:
                    yield Change(ChangeKind.NODE, node_key(key, name), cause, node_key(key, name))


def _node_cause(old: Sequence[Window], new: Sequence[Window], is_there: bool) -> Cause | None:
    if not is_there:
        return Cause.NODE_LOST
    added = [window for window in new if not _covered(window, old)]
    if not added:
        return None
    is_out = any(window.begin <= 0 and window.end >= FOREVER for window in added)
    return Cause.NODE_LOST if is_out else Cause.MAINTENANCE_ADDED


def _covered(window: Window, by: Sequence[Window]) -> bool:
    """Whether it takes no time that one of `by` had not taken."""
    return any(other.begin <= window.begin and window.end <= other.end for other in by)


def _clock(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    starts = (promised(before, after, key) for key in after.requests)
    if after.now > before.now and any(start is not None and start < after.now for start in starts):
        yield Change(ChangeKind.CLOCK, "", Cause.CONTROLLER_ABSENT)


def _as_known(change: Change, known: Mapping[tuple[ChangeKind, str], Known]) -> Change:
    told = known.get((change.kind, change.key))
    return change if told is None else replace(change, cause=told.cause, by=told.by or change.by)


def _undo_entries(before: Snapshot, after: Snapshot, keys: Iterable[str]) -> Snapshot:
    # A lease that went back into the queue, or the reverse, is one change of one key.
    chosen = tuple(keys)
    return replace(
        after,
        requests=_with_all(after.requests, {key: before.requests.get(key) for key in chosen}),
        leases=_with_all(after.leases, {key: before.leases.get(key) for key in chosen}),
    )


def _undo_pool(before: Snapshot, after: Snapshot, key: str) -> Snapshot:
    found = next((k for k in (*before.pools, *after.pools) if pool_key(k) == key), None)
    if found is None:
        return after
    old, new = before.pools.get(found), after.pools.get(found)
    if old is not None and new is not None:
        old = replace(old, nodes=new.nodes, windows=new.windows)  # its nodes are changes of their own
    return replace(after, pools=_with(after.pools, found, old))


def _undo_node(before: Snapshot, after: Snapshot, key: str) -> Snapshot:
    found = next((k for k in after.pools if key.startswith(pool_key(k) + "/")), None)
    if found is None or found not in before.pools:
        return after
    name, old, new = key.removeprefix(pool_key(found) + "/"), before.pools[found], after.pools[found]
    nodes = tuple(node for node in new.nodes if node != name or name in old.nodes)
    if name in old.nodes and name not in nodes:
        nodes = (*nodes, name)
    windows = _with(new.windows, name, old.windows.get(name))
    return replace(after, pools=_with(after.pools, found, replace(new, nodes=nodes, windows=windows)))


_OF_ENTRIES = frozenset({ChangeKind.REQUEST, ChangeKind.LEASE})
_UNDO: dict[ChangeKind, Callable[[Snapshot, Snapshot, str], Snapshot]] = {
    ChangeKind.POOL: _undo_pool,
    ChangeKind.NODE: _undo_node,
    ChangeKind.CLOCK: lambda before, after, _: replace(after, now=before.now),
}


def _with(entries: Mapping[Key, Entry], key: Key, entry: Entry | None) -> dict[Key, Entry]:
    """`entries` with this entry replaced, or removed; the order of the others stays."""
    return _with_all(entries, {key: entry})


def _with_all(entries: Mapping[Key, Entry], instead: Mapping[Key, Entry | None]) -> dict[Key, Entry]:
    return {k: e for k, e in {**entries, **instead}.items() if e is not None}
