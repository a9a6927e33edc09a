"""Calendars of nodes: maintenance of cluster, pool and node, once and again (E10, G3)."""

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


def fleet(*windows: dict[str, object]) -> ClusterSpec:
    """A cluster of three nodes with these windows; minutes from now."""
    pools = [
        {"name": name, "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": nodes}
        for name, nodes in (("h100", 2), ("spare", 1))
    ]
    document = parsed("clusters/east.yaml", cluster(pools=pools, maintenance=list(windows)))
    assert isinstance(document, Cluster)
    return document.spec


def window(begin: int, end: int, **more: object) -> dict[str, object]:
    return {"begin": at(begin).isoformat(), "end": at(end).isoformat(), **more}


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
    assert calendars(fleet(*windows), "h100", ("h100-1", "h100-2"), NOW) == want


def test_nodes_that_go_down_together_share_one_calendar() -> None:
    """Planning counts them together; so it need not even compare."""
    found = calendars(fleet(window(10, 20, every="1d")), "h100", ("h100-1", "h100-2"), NOW)
    assert found["h100-1"] is found["h100-2"]


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
