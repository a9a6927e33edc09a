"""Calendars of nodes: maintenance of cluster, pool and node, once and again, and reservations (E10, F13, F14, G3)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reconciler.model.pools import SIGHT_S, calendars, merged, occurrences
from scheduler.snapshot import FOREVER, Window
from schemas.documents.cluster import Cluster, ClusterSpec
from schemas.documents.maintenance import Maintenance
from schemas.reading.units import seconds
from tests.support.world import START, at, cluster, parsed

NOW = seconds(START)
MINUTE, DAY = 60, 86_400


def fleet(*windows: dict[str, object], **h100: object) -> ClusterSpec:
    """A cluster of three nodes with these windows, and further fields of the pool h100."""
    pools: list[dict[str, object]] = [
        {"name": name, "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": nodes}
        for name, nodes in (("h100", 2), ("spare", 1))
    ]
    pools[0] |= h100
    document = parsed("clusters/east.yaml", cluster(pools=pools, maintenance=list(windows)))
    assert isinstance(document, Cluster)
    return document.spec


def window(begin: int, end: int, **more: object) -> dict[str, object]:
    return {"begin": at(begin).isoformat(), "end": at(end).isoformat(), **more}


def found(spec: ClusterSpec, names: tuple[str, ...], now: int) -> dict[str, tuple[Window, ...]]:
    """The calendars of the pool h100."""
    return calendars(spec, spec.pools[0], names, now)


def minutes(begin: int, end: int) -> Window:
    return Window(NOW + begin * MINUTE, NOW + end * MINUTE)


@pytest.mark.parametrize(
    ("windows", "want"),
    [
        pytest.param([], {}, id="none"),
        pytest.param(
            [window(10, 20)],
            {name: (minutes(10, 20),) for name in ("h100-1", "h100-2")},
            id="of the whole cluster",
        ),
        pytest.param([window(10, 20, pools=["spare"])], {}, id="of another pool"),
        pytest.param([window(10, 20, nodes=["h100-2"])], {"h100-2": (minutes(10, 20),)}, id="of one node"),
        pytest.param([window(-20, -10)], {}, id="over"),
        pytest.param(
            [window(10, 20, pools=["h100"]), window(15, 30, nodes=["h100-1"])],
            {"h100-1": (minutes(10, 30),), "h100-2": (minutes(10, 20),)},
            id="two that overlap are one",
        ),
        pytest.param(
            [window(10, 20, every="1d", until=at(3000).isoformat(), nodes=["h100-1"])],
            {"h100-1": (minutes(10, 20), minutes(1450, 1460), minutes(2890, 2900))},
            id="again until an instant",
        ),
    ],
)
def test_who_is_out_when(windows: list[dict[str, object]], want: dict[str, tuple[Window, ...]]) -> None:
    assert found(fleet(*windows), ("h100-1", "h100-2"), NOW) == want


def test_nodes_that_go_down_together_share_one_calendar() -> None:
    """Planning counts them together; so it need not even compare."""
    both = found(fleet(window(10, 20, every="1d")), ("h100-1", "h100-2"), NOW)
    assert both["h100-1"] is both["h100-2"]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"until": at(3000)}, id="until without every"),
        pytest.param({"every": timedelta(hours=23)}, id="more often than daily"),
        pytest.param({"every": timedelta(days=1), "end": at(2000)}, id="longer than from one to the next"),
    ],
)
def test_a_calendar_without_sense_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Maintenance(**{"begin": at(0), "end": at(60), **more})  # type: ignore[arg-type]


recurring = st.builds(
    lambda begin, length, every: Maintenance(
        begin=at(begin), end=at(begin + length), every=timedelta(days=every)
    ),
    st.integers(-10_000, 10_000),
    st.integers(1, 1440),
    st.integers(1, 40),
)


@given(recurring, st.integers(0, 3 * 365 * DAY), st.integers(0, 400 * DAY))
def test_as_time_passes_no_free_time_is_lost(item: Maintenance, waited: int, later: int) -> None:
    """What comes into sight was closed before: a promise never slips because the calendar goes on."""
    early = merged(occurrences(item, NOW + waited))
    late = merged(occurrences(item, NOW + waited + later))
    assert all(any(w.begin <= n.begin and n.end <= w.end for w in early) for n in late)


@given(recurring, st.integers(-30 * DAY, 3 * 365 * DAY))
def test_a_year_of_windows_is_in_sight(item: Maintenance, waited: int) -> None:
    now = NOW + waited
    found = list(occurrences(item, now))
    step = timedelta(days=0) if item.every is None else item.every
    begins = [w.begin for w in found[:-1]]
    assert found[-1].end == FOREVER
    assert found[-1].begin >= now + SIGHT_S
    assert all(w.end > now for w in found)
    assert all((b - seconds(item.begin)) % int(step.total_seconds()) == 0 for b in begins)
    first = seconds(item.begin)
    while first < now + SIGHT_S:
        length = seconds(item.end) - seconds(item.begin)
        assert first + length <= now or first in begins
        first += int(step.total_seconds())


BOTH = ("h100-1", "h100-2")
GROWS = {"nodes": None, "elastic": {"max": 2, "scaleUp": "10m"}}


@pytest.mark.parametrize(
    ("reserved", "more", "want"),
    [
        pytest.param(
            [window(60, 120)],
            {},
            dict.fromkeys(BOTH, (Window(0, NOW + 60 * MINUTE), Window(NOW + 120 * MINUTE, FOREVER))),
            id="all of the pool, once",
        ),
        pytest.param(
            [window(-60, 10), window(60, 120, nodes=1)],
            {},
            {
                "h100-1": (minutes(10, 60), Window(NOW + 120 * MINUTE, FOREVER)),
                "h100-2": (Window(NOW + 10 * MINUTE, FOREVER),),
            },
            id="now all, later one",
        ),
        pytest.param([window(-60, -10)], {}, dict.fromkeys(BOTH, (Window(NOW - 600, FOREVER),)), id="over"),
        pytest.param(
            [window(60, 120)],
            GROWS,
            dict.fromkeys(BOTH, (Window(0, NOW + 72 * MINUTE), Window(NOW + 120 * MINUTE, FOREVER))),
            id="an elastic pool asks for them at the begin",
        ),
    ],
)
def test_nodes_are_there_as_reserved(
    reserved: list[dict[str, object]], more: dict[str, object], want: dict[str, tuple[Window, ...]]
) -> None:
    """F13, F14: a provider's capacity for a time."""
    assert found(fleet(reserved=reserved, **more), BOTH, NOW) == want


def test_a_reserved_pool_has_its_maintenance_too() -> None:
    spec = fleet(window(70, 80, nodes=["h100-1"]), window(110, 130), reserved=[window(60, 120)])
    ends = Window(NOW + 110 * MINUTE, FOREVER)
    assert found(spec, BOTH, NOW) == {
        "h100-1": (Window(0, NOW + 60 * MINUTE), minutes(70, 80), ends),
        "h100-2": (Window(0, NOW + 60 * MINUTE), ends),
    }


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 100), st.sampled_from([None, 1, 2])), max_size=5),
    st.integers(0, 600),
)
def test_a_node_is_open_exactly_while_it_is_due(drawn: list[tuple[int, int, int | None]], after: int) -> None:
    """And nothing in its calendar moves as time passes."""
    at_, items = 0, []
    for gap, length, nodes in drawn:
        at_ += gap
        items.append(window(at_, at_ + length, **({} if nodes is None else {"nodes": nodes})))
        at_ += length
    spec = fleet(reserved=items)
    first, later = (found(spec, BOTH, NOW + minute * MINUTE) for minute in (0, after))
    for rank, name in enumerate(BOTH):
        due = spec.pools[0].is_due(rank, at(after))
        moment = NOW + after * MINUTE
        for calendar in (first, later):
            assert due is not any(w.begin <= moment < w.end for w in calendar.get(name, ()))
        assert set(later.get(name, ())) <= set(first.get(name, ()))
