"""Which pools serve a request, and which only when the wait is long: price, memory, burst clusters (F14, F15, A5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.calendars.board import Board
from scheduler.choices.pool_choice import Bursts, Choice, Choosing, choice, served
from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Promise, Request, Snapshot, Window
from schemas.documents.elastic import Burst
from schemas.documents.gpr import RequestSpec
from tests.support.profile import law

HOUR = 3600


def pool(cluster: str, name: str, memory: int = 80, price: float = 1.0, gpus: int = 8) -> Pool:
    nodes = tuple(f"{name}-{i}" for i in range(4))
    return Pool((cluster, name), "X", gpus, memory, nodes, price_per_gpu_hour=price)


CHEAP = pool("east", "cheap", memory=80, price=1)
DEAR = pool("east", "dear", memory=40, price=3)
MIDDLE = pool("west", "middle", memory=141, price=2)
CLOUD = pool("cloud", "spot", memory=80, price=5)
POOLS = {found.key: found for found in (DEAR, CHEAP, MIDDLE, CLOUD)}
ALL = (DEAR.key, CHEAP.key, MIDDLE.key)
BURST: Bursts = {"cloud": Burst(after=timedelta(hours=4), max_duration=timedelta(hours=8))}


def asks(
    since: int = 0, promise: Promise | None = None, hours: int = 1, left: int | None = None, **given: Any
) -> Choosing:
    spec = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=hours)).model_copy(update=given)
    return Choosing(spec, since, promise, None if left is None else timedelta(hours=left))


def names(chosen: Choice) -> tuple[list[str], dict[str, int]]:
    return [name for _, name in chosen.pools], {key[1]: at for key, at in chosen.fallback.items()}


@pytest.mark.parametrize(
    ("asked", "usable", "want"),
    [
        pytest.param(asks(), ALL, (["dear", "cheap", "middle"], {}), id="the earliest start: all alike"),
        pytest.param(asks(prefer="price"), ALL, (["cheap"], {}), id="only the cheapest"),
        pytest.param(asks(prefer="memory"), ALL, (["dear"], {}), id="only the least memory that is enough"),
        pytest.param(
            asks(100, prefer="price", max_wait=timedelta(hours=1)),
            ALL,
            (["cheap", "middle", "dear"], {"middle": 3700, "dear": 3700}),
            id="the others when the wait is longer than was said, the next cheapest first",
        ),
        pytest.param(
            asks(prefer="price", promise=Promise(DEAR.key, 500)),
            ALL,
            (["cheap", "dear"], {"dear": 500}),
            id="what it is promised stays open to it",
        ),
        pytest.param(
            asks(50),
            (*ALL, CLOUD.key),
            (["dear", "cheap", "middle", "spot"], {"spot": 50 + 4 * HOUR}),
            id="a burst cluster comes last, and after its wait",
        ),
        pytest.param(
            asks(hours=9),
            (*ALL, CLOUD.key),
            (["dear", "cheap", "middle"], {}),
            id="too long for the burst cluster",
        ),
        pytest.param(
            asks(hours=9, left=8),
            (*ALL, CLOUD.key),
            (["dear", "cheap", "middle", "spot"], {"spot": 4 * HOUR}),
            id="what is left of it is short enough",
        ),
        pytest.param(asks(), (CLOUD.key,), (["spot"], {}), id="nothing else: nothing to wait for"),
        pytest.param(
            asks(prefer="price"),
            (*ALL, CLOUD.key),
            (["cheap", "spot"], {"spot": 4 * HOUR}),
            id="the cheapest, and the burst cluster after its wait",
        ),
        pytest.param(asks(hours=9), (CLOUD.key,), ([], {}), id="too long for the only cluster"),
    ],
)
def test_choice(asked: Choosing, usable: tuple[PoolKey, ...], want: tuple[list[str], dict[str, int]]) -> None:
    assert names(choice(asked, usable, POOLS, BURST)) == want


def test_a_preferred_pool_whose_nodes_are_out_for_good_makes_nobody_wait() -> None:
    out = {node: (Window(0, FOREVER),) for node in CHEAP.nodes}
    pools = {**POOLS, CHEAP.key: replace(CHEAP, windows=out)}
    assert names(choice(asks(prefer="price"), ALL, pools, {})) == (["middle"], {})


def test_maintenance_far_out_of_sight_is_no_loss() -> None:
    far = {node: (Window(10**9, FOREVER),) for node in CHEAP.nodes}
    pools = {**POOLS, CHEAP.key: replace(CHEAP, windows=far)}
    assert names(choice(asks(prefer="price"), ALL, pools, {})) == (["cheap"], {})


def test_price_is_of_whole_nodes() -> None:
    """Quota and cost count all GPUs of a node."""
    small = pool("west", "small", price=1.5, gpus=4)
    pools = {CHEAP.key: CHEAP, small.key: small}
    assert names(choice(asks(prefer="price"), tuple(pools), pools, {})) == (["small"], {})


@st.composite
def cases(draw: st.DrawFn) -> tuple[Snapshot, Request, Choice]:
    """Busy pools, some of them of a burst cluster, and a request with a choice among them."""
    pools = {key: replace(found, nodes=("n",)) for key, found in POOLS.items()}
    leases = {}
    for i, key in enumerate(pools):
        end = draw(st.integers(0, 10))
        if end:
            leases[f"l{i}"] = Lease(f"l{i}", f"s{i}", key, ("n",), 0, 0, end * HOUR, end * HOUR)
    wish = asks(
        prefer=draw(st.sampled_from(("earliest", "price", "memory"))),
        max_wait=draw(st.none() | st.integers(1, 6).map(lambda hours: timedelta(hours=hours))),
        hours=draw(st.integers(1, 9)),
    )
    usable = tuple(key for key in pools if draw(st.booleans()))
    chosen = choice(wish, usable, pools, BURST)
    request = Request(
        "a/x", "a", 1, int(wish.spec.duration.total_seconds()), chosen.pools, fallback=chosen.fallback
    )
    return Snapshot(0, pools, leases, {"a/x": request}), request, chosen


@law(100)
@given(cases())
def test_a_burst_cluster_serves_only_who_would_wait_too_long_elsewhere(
    case: tuple[Snapshot, Request, Choice],
) -> None:
    """F14; and what `served` says of starts is what planning does."""
    snapshot, request, chosen = case
    place = plan(snapshot).placements.get("a/x")
    board = Board(snapshot)
    alone = {key: board.earliest(replace(request, pools=(key,), fallback={})) for key in chosen.pools}
    starts = {key: spot.start for key, spot in alone.items() if spot is not None}
    assert (place.pool if place else None) == served(chosen, starts)
    elsewhere = [start for key, start in starts.items() if key[0] != "cloud" and key not in chosen.fallback]
    if place is not None and place.pool[0] == "cloud" and any(key[0] != "cloud" for key in chosen.pools):
        assert min(elsewhere, default=FOREVER) > 4 * HOUR
