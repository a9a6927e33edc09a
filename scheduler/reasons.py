"""Why a request has no start, or no earlier one, for people and machines."""

from __future__ import annotations

from enum import StrEnum

from scheduler.snapshot import FOREVER, Pool, Refusal, Request, Snapshot


class Reason(StrEnum):
    """Why a waiting request has no estimated start."""

    FITS_NOWHERE = "FitsNowhere"  # no pool it may use has such nodes, or enough of them
    NODES_OUT = "NodesOut"  # it would fit, but too many nodes are out for good
    CLUSTER_UNREACHABLE = "ClusterUnreachable"  # it would fit only where nothing new may start now
    NEEDS_APPROVAL = "NeedsApproval"  # an admin must approve first
    LIMIT_EXCEEDED = "LimitExceeded"  # beyond a hard limit of its slice


def no_place(snapshot: Snapshot, request: Request) -> Refusal:
    """Why no pool has a start for `request`."""
    pools = [snapshot.pools[key] for key in request.pools if key in snapshot.pools]
    large = [pool for pool in pools if len(pool.nodes) >= request.nodes]
    if not large:
        return _fits_nowhere(request, pools)
    names = ", ".join(pool_name(pool) for pool in large)
    if not any(pool.open for pool in large):
        text = f"{names} cannot be reached, so nothing new starts there; it is planned once the cluster answers again"
        return Refusal(request.key, Reason.CLUSTER_UNREACHABLE, text)
    in_service = max(_in_service(pool) for pool in large)
    if in_service >= request.nodes:
        text = (
            f"no {in_nodes(request.nodes)} of {names} are free for that long without interruption: maintenance comes "
            "before; ask for less time, or wait until an admin allows more"
        )
        return Refusal(request.key, Reason.NODES_OUT, text)
    text = (
        f"it needs {in_nodes(request.nodes)} at once but {names} has at most {in_service} in service; "
        "it is planned when nodes return"
    )
    return Refusal(request.key, Reason.NODES_OUT, text, f"{in_nodes(in_service)} or fewer")


def _fits_nowhere(request: Request, pools: list[Pool]) -> Refusal:
    if not pools:
        text = "no pool that it may use has nodes of this shape with enough GPUs and memory"
        return Refusal(request.key, Reason.FITS_NOWHERE, text)
    largest = max(pools, key=lambda pool: len(pool.nodes))  # the first of the largest, in its own order
    text = f"it asks for {in_nodes(request.nodes)} but no pool that it may use has so many"
    would_fit = f"{in_nodes(len(largest.nodes))} or fewer, in {pool_name(largest)}"
    return Refusal(request.key, Reason.FITS_NOWHERE, text, would_fit)


def _in_service(pool: Pool) -> int:
    def is_out(name: str) -> bool:
        return any(w.begin <= 0 and w.end >= FOREVER for w in pool.windows.get(name, ()))

    withheld = sum(kept.nodes for kept in pool.withheld if kept.end >= FOREVER)
    return max(0, sum(not is_out(name) for name in pool.nodes) - withheld)


def pool_name(pool: Pool) -> str:
    """As people write it: cluster/pool, or only the pool if there is no cluster."""
    return "/".join(part for part in pool.key if part)


def in_nodes(count: int) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} node" if count == 1 else f"{count} nodes"
