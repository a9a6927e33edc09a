"""All input of planning, as integers and names: a `Snapshot` in, a `Plan` out.

Times are whole seconds since 1970 (or since 0 for the bare engine); intervals are [begin, end).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from schemas.status.gpr_status import Cause

FOREVER = 1 << 60
"""Later than any instant; adding a duration does not overflow 64 bits."""

PoolKey = tuple[str, str]
"""(cluster, pool)."""


@dataclass(frozen=True, slots=True)
class Window:
    """A time in which a node is unavailable."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Withheld:
    """Any `nodes` nodes of a pool that serve no request on [begin, end)."""

    begin: int
    end: int
    nodes: int
    reserve: bool = False  # kept by the project; otherwise they do not exist yet


@dataclass(frozen=True, slots=True)
class Pool:
    """Equal nodes. `windows` names the nodes with a calendar of their own; the others are interchangeable.

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
    open: bool = True  # False: the cluster is unreachable; leases stand, but nothing new starts
    discovered: bool = False  # its nodes come and go, so too few of them now rules nothing out
    windows: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    reserve: int = 0  # nodes that the project keeps; `withheld` is what remains of them, and when
    withheld: tuple[Withheld, ...] = ()
    """Nodes on which no request is planned: a project's reserve, less what it serves now."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A committed start that stands until a cause moves it.

    `bound` is copied from the placement: otherwise the planner must find again which nodes with their own calendars
    each promise uses.
    """

    pool: PoolKey
    start: int
    bound: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A waiting request. `pools` are those it may use, in its order of preference (see `scheduler.choices.fit`)."""

    key: str  # slice/name
    slice: str  # empty: no slice rule
    nodes: int
    duration: int
    pools: tuple[PoolKey, ...]
    priority: int = 101
    boost: int = 0  # added to its priority by ageing, within its band
    move: int = 0  # an admin's adjustment among requests of its priority: higher first
    share: int = 0  # steps of fairness, as of when it took its place: less comes first
    service: int = 0  # `rank.service_of` if shorter service comes first; 0 if the time of filing decides
    filed_at: int = 0
    not_before: int = 0
    promise: Promise | None = None
    movable: bool = True
    """False: it must not start before its promise (start: promised, or ready with no pod waiting)."""
    fallback: Mapping[PoolKey, int] = field(default_factory=dict)
    """Pools that are used only if all others, and those with earlier instants here, give no start by this instant:
    clusters marked burst, and pools that are not the preferred ones. Of equally early pools the least held back is
    used."""
    latest: int = FOREVER  # no later-filed request of its band may push it past this instant
    may_displace: bool = True
    """False: the last committed plan had no start for it, and it is unchanged since. It then takes only nodes that no
    promise holds, so that new free nodes (which are not a cause of a slip) delay no request."""


def shown_slice(slice_: str) -> str:
    """The calendar of a slice for requests with only observed pools, separate from the slice's own.

    So requests that can only be shown take nothing from those that can start. The space keeps the name unique.
    """
    return f"{slice_} in observed clusters" if slice_ else ""


@dataclass(frozen=True, slots=True)
class Lease:
    """Nodes held by a decided request: Provisioning, Provisioned or Releasing."""

    key: str
    slice: str
    pool: PoolKey
    nodes: tuple[str, ...]
    held_from: int
    start: int
    end: int
    held_until: int  # end + drain, or later if cleaning takes longer


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The world at `now`. Pools, leases and requests are keyed by their keys; their order has no meaning."""

    now: int
    pools: Mapping[PoolKey, Pool]
    leases: Mapping[str, Lease]
    requests: Mapping[str, Request]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when a waiting request is to start; `bound` are nodes fixed during planning."""

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
    """A promise that was taken out during planning, and the reason."""

    key: str
    by: str  # key of the request that needed the nodes; empty if the promise could not hold any more


@dataclass(frozen=True, slots=True)
class Plan:
    """Placements and refusals by request; `order` is the rank, first to last, over all waiting requests."""

    order: tuple[str, ...]
    placements: Mapping[str, Placement]
    refusals: Mapping[str, Refusal]
    displaced: Sequence[Displaced] = ()

    def starts(self) -> Mapping[str, int]:
        """The start of each placement."""
        if isinstance(self.placements, KnowsStarts):
            return self.placements.starts()
        return {key: place.start for key, place in self.placements.items()}


@runtime_checkable
class KnowsStarts(Protocol):
    """Placements that give their starts without making the rest."""

    def starts(self) -> Mapping[str, int]: ...


class ChangeKind(StrEnum):
    """The part of a snapshot that a change affects."""

    REQUEST = "request"
    LEASE = "lease"
    POOL = "pool"  # the whole pool: open or not, its times
    NODE = "node"  # one node: its windows, or its existence
    CLOCK = "clock"  # the controller was away


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the last committed snapshot and this one, which can be undone alone."""

    kind: ChangeKind
    key: str  # request or lease key; cluster/pool; cluster/pool/node
    cause: Cause
    by: str = ""
