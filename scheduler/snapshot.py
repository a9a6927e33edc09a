"""All that planning needs, as integers and names: a `Snapshot` in, a `Plan` out.

Times are whole seconds since 1970 (or since 0 for the bare engine); intervals are [begin, end).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.status.gpr_status import Cause

FOREVER = 1 << 60
"""Later than any instant; still far from overflow in 64 bits when durations are added."""

PoolKey = tuple[str, str]
"""(cluster, pool)."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch in which a node serves nobody."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Withheld:
    """So many nodes of a pool, whichever, that serve no request on [begin, end)."""

    begin: int
    end: int
    nodes: int
    reserve: bool = False  # kept by the project; else they are not there yet


@dataclass(frozen=True, slots=True)
class Pool:
    """Equal nodes. `windows` names the nodes that have a calendar of their own; the others are interchangeable.

    A node that is out for good (unhealthy, cordoned, lost) has the window [0, FOREVER).
    """

    key: PoolKey
    gpu_shape: str
    gpus_per_node: int
    memory_per_gpu: int
    nodes: tuple[str, ...]
    prepare: int = 0
    drain: int = 0
    rdma: bool = False
    secondary_network: bool = False
    instance_type: str | None = None
    price_per_gpu_hour: float = 0.0
    observed: bool = False  # mode observe: planned and shown, never started
    open: bool = True  # False: the cluster cannot be reached, running leases stand and nothing new starts
    discovered: bool = False  # its nodes come and go, so that too few of them now rule nothing out
    windows: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    reserve: int = 0  # nodes that the project keeps of it; `withheld` is what is left of them, and when
    withheld: tuple[Withheld, ...] = ()
    """Nodes that no request is planned on, whichever they are: a project's reserve, less what it serves now."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A committed start that stands until a named cause moves it.

    `bound` repeats the placement's, where it was kept: without it the planner has to find again which nodes
    with calendars of their own each promise uses.
    """

    pool: PoolKey
    start: int
    bound: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request that waits. `pools` are those it may use, in its order of preference (see `scheduler.choices.fit`)."""

    key: str  # slice/name
    slice: str  # empty: no slice rule
    nodes: int
    duration: int
    pools: tuple[PoolKey, ...]
    priority: int = 101
    boost: int = 0  # what ageing adds to its priority, within its band
    move: int = 0  # an admin's word on its place among requests of its priority: higher first
    share: int = 0  # steps of fairness, of what was read when it took its place: less comes first
    service: int = 0  # `rank.service_of` where shorter service comes first; 0 where time of filing decides
    filed_at: int = 0
    not_before: int = 0
    promise: Promise | None = None
    movable: bool = (
        True  # False: may not start before its promise (start: promised, or ready with no pod waiting)
    )
    fallback: Mapping[PoolKey, int] = field(default_factory=dict)
    """Those of its pools that are used only where all others, and those of earlier instants here, give no start by
    this instant: clusters marked burst, and pools that are not the preferred ones. Of equally early pools the least
    held back is taken."""
    latest: int = FOREVER  # no request of its band that was filed later pushes it past this instant
    may_displace: bool = True
    """False: it had no start when the last plan was committed, and asks for the same since. It then takes only
    room that no promise holds, so that room that appears (for which there is no cause of a slip) delays nobody."""


def shown_slice(slice_: str) -> str:
    """The slice in whose calendar a request stands that has only observed pools: one beside that of its own slice.

    So what can only be shown takes no room of what can start. A space is in no name of a slice.
    """
    return f"{slice_} in observed clusters" if slice_ else ""


@dataclass(frozen=True, slots=True)
class Lease:
    """Nodes that are held by a request that was decided: Provisioning, Provisioned or Releasing."""

    key: str
    slice: str
    pool: PoolKey
    nodes: tuple[str, ...]
    held_from: int
    start: int
    end: int
    held_until: int  # end + drain, or later when cleaning takes longer


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The world at `now`. Pools, leases and requests are keyed by their own keys; their order means nothing."""

    now: int
    pools: Mapping[PoolKey, Pool]
    leases: Mapping[str, Lease]
    requests: Mapping[str, Request]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when a waiting request is to start; `bound` are the nodes fixed already while planning."""

    key: str
    pool: PoolKey
    start: int
    end: int
    bound: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A waiting request that cannot be placed: why, and what would fit."""

    key: str
    reason: str
    message: str
    would_fit: str = ""


@dataclass(frozen=True, slots=True)
class Displaced:
    """A promise that was taken out while planning, and by what."""

    key: str
    by: str  # key of the request that needed the room; empty when the promise could not hold any more


@dataclass(frozen=True, slots=True)
class Plan:
    """Placements and refusals by request; `order` is the rank, first to last, over all waiting requests."""

    order: tuple[str, ...]
    placements: Mapping[str, Placement]
    refusals: Mapping[str, Refusal]
    displaced: Sequence[Displaced] = ()


class ChangeKind(StrEnum):
    """Which part of a snapshot a change touched."""

    REQUEST = "request"
    LEASE = "lease"
    POOL = "pool"  # the whole pool: its openness, its times
    NODE = "node"  # one node's windows, or its coming and going
    CLOCK = "clock"  # the controller was away


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs between the snapshot last committed and this one, and can be undone alone."""

    kind: ChangeKind
    key: str  # request or lease key; cluster/pool; cluster/pool/node
    cause: Cause
    by: str = ""
