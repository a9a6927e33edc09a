"""A planner that only tries things: every second, every node, every choice. Slow, and plainly right.

It knows nodes by name and holds by the second, and keeps no counts. What it shares with the planner is design,
section 6, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.calendars.stretches import free_stretches, free_throughout
from scheduler.snapshot import Plan, Pool, PoolKey, Request, Snapshot, Window

HORIZON = 120
"""Past every end that the random worlds can have; a request without a start before it has none."""


@dataclass(frozen=True)
class Job:
    """Nodes wanted for some seconds; `allowed` names the nodes it may use."""

    seconds: range
    nodes: int
    allowed: tuple[str, ...]


def assignable(jobs: Sequence[Job], busy: Mapping[str, frozenset[int]]) -> bool:
    """Whether nodes can be named for all jobs; `busy` seconds of a node are nobody's."""
    used = {name: set(seconds) for name, seconds in busy.items()}
    order = sorted(jobs, key=lambda job: (job.seconds.start, -len(job.seconds), -job.nodes))
    return not order or _assign(order, 0, (order[0].nodes, 0), used)


def _assign(jobs: Sequence[Job], at: int, rest: tuple[int, int], used: dict[str, set[int]]) -> bool:
    """Names `rest` (nodes still wanted, first node to look at) for job `at`, then all jobs after it."""
    if at == len(jobs):
        return True
    left, first = rest
    if left == 0:
        following = jobs[at + 1].nodes if at + 1 < len(jobs) else 0
        return _assign(jobs, at + 1, (following, 0), used)
    job = jobs[at]
    for place in range(first, len(job.allowed)):
        taken = used[job.allowed[place]]
        if not taken.isdisjoint(job.seconds):
            continue
        taken.update(job.seconds)
        if _assign(jobs, at, (left - 1, place + 1), used):
            return True
        taken.difference_update(job.seconds)
    return False


def busy_seconds(snapshot: Snapshot, pool: Pool) -> dict[str, frozenset[int]]:
    """When each node serves nobody or a lease."""
    busy: dict[str, set[int]] = {name: set() for name in pool.nodes}
    for name, windows in pool.windows.items():
        for window in windows:
            busy[name].update(range(window.begin, min(window.end, 3 * HORIZON)))
    for lease in snapshot.leases.values():
        if lease.pool == pool.key:
            for name in lease.nodes:
                busy[name].update(range(lease.held_from, lease.held_until))
    return {name: frozenset(seconds) for name, seconds in busy.items()}


def hold(snapshot: Snapshot, pool: Pool, request: Request, start: int) -> range:
    return range(max(snapshot.now, start - pool.prepare), start + request.duration + pool.drain)


def held_back(request: Request, pool: PoolKey) -> int:
    return request.fallback.get(pool, -1)


Placed = dict[str, tuple[PoolKey, int]]


@dataclass
class BrutePlanner:
    """Design, section 6, step by step."""

    snapshot: Snapshot
    placed: Placed = field(default_factory=dict)
    displaced: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.busy = {key: busy_seconds(self.snapshot, pool) for key, pool in self.snapshot.pools.items()}
        waiting = self.snapshot.requests.values()
        self.order = sorted(waiting, key=lambda r: (-r.priority, -r.move, r.filed_at, r.key))

    def run(self) -> Placed:
        for request in self.order:
            self.stand(request)
        for place, request in enumerate(self.order):
            if request.key not in self.placed:
                self.place(request, self.order[:place])
        for request in self.order:
            if request.key in self.placed:
                self.compress(request)
        return self.placed

    def stand(self, request: Request) -> None:
        promise = request.promise
        if promise is None:
            return
        pool = self.snapshot.pools.get(promise.pool)
        open_ = pool is not None and pool.open and promise.pool in request.pools
        in_time = promise.start >= max(self.snapshot.now, request.not_before)
        if open_ and in_time and self.possible(self.placed, request, promise.pool, promise.start):
            self.placed[request.key] = (promise.pool, promise.start)
        else:
            self.displaced.append((request.key, ""))

    def place(self, request: Request, above: Sequence[Request]) -> None:
        displaces = request.may_displace or request.promise is not None
        leaders = (
            {r.key: self.placed[r.key] for r in above if r.key in self.placed} if displaces else self.placed
        )
        found = self.earliest(leaders, request)
        if found is None:
            return
        pool, start = found
        for other in (pool, *request.pools):
            in_vain = (
                held_back(request, other) <= held_back(request, pool) or held_back(request, other) < start
            )
            may = in_vain and self.may_start(request, other, start)
            if may and self.possible(self.placed, request, other, start):
                self.placed[request.key] = (other, start)
                return
        self.make_room(request, pool, start)
        self.placed[request.key] = (pool, start)

    def make_room(self, request: Request, pool: PoolKey, start: int) -> None:
        lower = [r for r in reversed(self.order[self.order.index(request) + 1 :]) if r.key in self.placed]
        gone = [r for r in lower if self.same_slice(request, start, r, self.placed[r.key][1])]
        for other in gone:
            del self.placed[other.key]
        victims = []
        for other in lower:
            if other.key in self.placed and not self.possible(self.placed, request, pool, start):
                victims.append((other, self.placed.pop(other.key)))
        for other, spot in reversed(victims):
            self.placed[other.key] = spot
            if not self.possible(self.placed, request, pool, start):
                del self.placed[other.key]
                gone.append(other)
        rank = {r.key: i for i, r in enumerate(self.order)}
        for other in sorted(gone, key=lambda r: rank[r.key]):
            self.displaced.append((other.key, request.key))

    def compress(self, request: Request) -> None:
        current = self.placed.pop(request.key)
        self.placed[request.key] = self.earliest(self.placed, request, current) or current

    def earliest(
        self, placed: Placed, request: Request, current: tuple[PoolKey, int] | None = None
    ) -> tuple[PoolKey, int] | None:
        """Pools that are held back come last, and not at all where the others are in time.

        With a place of its own it takes what is earlier, and in a pool less held back what is as early.
        """
        best = None
        for since in sorted({held_back(request, pool) for pool in request.pools}):
            own = None if current is None else held_back(request, current[0])
            reached = best or (current if own is not None and own < since else None)
            if reached is not None and reached[1] <= since:
                break
            before = HORIZON if current is None else current[1] + (since < own)
            pools = [pool for pool in request.pools if held_back(request, pool) == since]
            found = self.first_of(placed, request, pools, before)
            if found is not None and (best is None or found[1] < best[1]):
                best = found
        return best

    def first_of(
        self, placed: Placed, request: Request, pools: Sequence[PoolKey], before: int
    ) -> tuple[PoolKey, int] | None:
        for start in range(self.snapshot.now, before):
            for pool in pools:
                if self.may_start(request, pool, start) and self.possible(placed, request, pool, start):
                    return pool, start
        return None

    def may_start(self, request: Request, pool: PoolKey, start: int) -> bool:
        there = self.snapshot.pools[pool]
        least = max(self.snapshot.now + there.prepare, request.not_before)
        if request.promise is not None and not request.movable:
            least = max(least, request.promise.start)
        return there.open and start >= least

    def possible(self, placed: Placed, request: Request, pool: PoolKey, start: int) -> bool:
        there = self.snapshot.pools[pool]
        here = [(self.get(key), s) for key, (p, s) in placed.items() if p == pool] + [(request, start)]
        jobs = [Job(hold(self.snapshot, there, r, s), r.nodes, there.nodes) for r, s in here]
        if not self.slice_free(placed, request, start) or not self.spares(jobs, there):
            return False
        return assignable(jobs, self.busy[pool])

    def spares(self, jobs: Sequence[Job], pool: Pool) -> bool:
        """Whether all that is withheld stays free while the last of the jobs runs."""
        for second in jobs[-1].seconds if pool.withheld else ():
            held = sum(job.nodes for job in jobs if second in job.seconds)
            out = sum(second in seconds for seconds in self.busy[pool.key].values())
            kept = sum(kept.nodes for kept in pool.withheld if kept.begin <= second < kept.end)
            if held + out + kept > len(pool.nodes):
                return False
        return True

    def slice_free(self, placed: Placed, request: Request, start: int) -> bool:
        if not request.slice:
            return True
        others = [
            (at, at + self.get(k).duration)
            for k, (_, at) in placed.items()
            if self.get(k).slice == request.slice
        ]
        running = [(x.start, x.end) for x in self.snapshot.leases.values() if x.slice == request.slice]
        return not any(begin < start + request.duration and start < end for begin, end in others + running)

    def same_slice(self, one: Request, start: int, other: Request, at: int) -> bool:
        meanwhile = at < start + one.duration and start < at + other.duration
        return bool(one.slice) and one.slice == other.slice and meanwhile

    def get(self, key: str) -> Request:
        return self.snapshot.requests[key]


def realisable(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether concrete nodes can be named for the whole plan."""
    for key, pool in snapshot.pools.items():
        here = [(snapshot.requests[p.key], p.start) for p in plan.placements.values() if p.pool == key]
        jobs = [Job(hold(snapshot, pool, r, start), r.nodes, pool.nodes) for r, start in here]
        if not assignable(jobs, busy_seconds(snapshot, pool)):
            return False
    return True


@dataclass
class BoundPlanner(BrutePlanner):
    """As the parent, but who is planned stays with the nodes that end when those end that it was bound to.

    `groups` says so for each request: how many nodes of which end.
    """

    groups: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    def possible(self, placed: Placed, request: Request, pool: PoolKey, start: int) -> bool:
        there = self.snapshot.pools[pool]
        stretches = free_stretches(there, self.snapshot.leases.values(), self.snapshot.now)
        jobs = [Job(hold(self.snapshot, there, request, start), request.nodes, there.nodes)]
        for key, (where, at) in placed.items():
            if where == pool:
                seconds = hold(self.snapshot, there, self.get(key), at)
                within = Window(seconds.start, seconds.stop)
                for end, count in self.groups[key]:
                    names = [
                        n for n, s in stretches.items() if (w := free_throughout(s, within)) and w.end == end
                    ]
                    jobs.append(Job(seconds, count, tuple(names)))
        return self.slice_free(placed, request, start) and assignable(jobs, self.busy[pool])
