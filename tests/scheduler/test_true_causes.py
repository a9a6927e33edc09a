"""Causes of slips against an oracle that knows what happened and tries to leave it out, in every combination (E10).

The oracle shares no code with `scheduler.causes.causes` and `scheduler.causes.changes`: it replays the history
without some of what happened, and plans by trying everything wherever all nodes are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.causes.causes import Moved, slips
from scheduler.causes.changes import changes_between
from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Snapshot
from tests.scheduler.brute import BrutePlanner
from tests.scheduler.happenings import Happening, after, committed_worlds, happenings
from tests.scheduler.worlds import EAST, lease, pool, request, world
from tests.support.profile import law

Named = frozenset[tuple[str, str]]


def starts(snapshot: Snapshot) -> dict[str, int]:
    """By trying everything where nodes are alike; where they are not, as the planner names them."""
    if any(pool.windows for pool in snapshot.pools.values()):
        return {key: place.start for key, place in plan(snapshot).placements.items()}
    return {key: start for key, (_, start) in BrutePlanner(snapshot).run().items()}


def smallest_sets(before: Snapshot, happened: Sequence[Happening], key: str, was: int) -> tuple[Named, ...]:
    """What, left out, would have kept the promise: all sets of the least size."""
    harmful = [one for one in happened if one.cause is not None]
    for size in range(1, len(harmful) + 1):
        found = []
        for left_out in combinations(harmful, size):
            start = starts(after(before, [one for one in happened if one not in left_out])).get(key)
            if start is not None and start <= was:
                found.append(frozenset((str(one.cause), one.by) for one in left_out))
        if found:
            return tuple(found)
    return ()


def late(before: Snapshot, now: Snapshot) -> dict[str, tuple[int, int | None]]:
    """Whose promise moved later, and from when to when."""
    there = starts(now)
    promises = {key: r.promise.start for key, r in before.requests.items() if r.promise is not None}
    return {
        key: (was, there.get(key))
        for key, was in promises.items()
        if key in now.requests and ((start := there.get(key)) is None or start > was)
    }


def named(slip: Moved) -> Named:
    return frozenset((str(change.cause), change.by) for change in slip.causes)


def test_what_is_needed_only_beside_something_else_is_not_named_with_it() -> None:
    """`one` would keep its start if it had not been raised and neither had `two`; but neither did it."""
    one, two = request("one", duration=1), request("two", duration=1)
    bare = world(one, two, pools=[pool(1)], leases=[lease("run", ["h100-1"], 2)])
    before = with_promises(bare, plan(bare))
    filed = request("new", duration=1, priority=300)
    raised = {r.key: replace(r, priority=200, promise=None) for r in (one, two)}
    longer = lease("run", ["h100-1"], 5)
    now = replace(
        before,
        requests={**raised, filed.key: filed},
        leases={longer.key: longer},
        pools={EAST: replace(pool(1), open=False)},
    )
    (slip, *_) = (s for s in slips(before, now, changes_between(before, now), plan(now)) if s.key == one.key)
    assert named(slip) == {
        ("HigherRankArrived", filed.key),
        ("RequestChanged", longer.key),
        ("ClusterUnreachable", "east"),
    }


@law(250)
@given(committed_worlds(plan), st.data())
def test_each_slip_names_a_smallest_set_of_what_did_it(before: Snapshot, data: st.DataObject) -> None:
    happened = data.draw(happenings(before))
    now = after(before, happened)
    found = {slip.key: slip for slip in slips(before, now, changes_between(before, now), plan(now))}
    assert {key: (slip.was, slip.now) for key, slip in found.items()} == late(before, now)
    for key, slip in found.items():
        assert slip.proven
        assert len({change.by for change in slip.causes}) == len(slip.causes), "each has its own"
        assert named(slip) in smallest_sets(before, happened, key, slip.was)
