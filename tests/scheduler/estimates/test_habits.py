"""How much of their time requests use, learnt from those before them (E1, E9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.estimates.habits import STRETCH, Kind, Released, Uses
from tests.support.profile import law

HOUR = 3600
KIND: Kind = ("a", "H100", 4 * HOUR)
shares = st.lists(st.tuples(st.floats(0.01, 1), st.booleans()), max_size=60)


def ran(share: float, *, slice_: str = "a", length: int = 4 * HOUR, is_open: bool = False) -> Released:
    return Released(slice_, "H100", length, round(share * length), is_open=is_open)


def mean(uses: Uses, kind: Kind = KIND, after: float = 0.0) -> float:
    """Over many futures and all luck."""
    found = [
        uses.drawn(seed / 9)(kind, after, (part + 0.5) / 400) for seed in range(9) for part in range(400)
    ]
    return sum(found) / len(found)


@pytest.mark.parametrize(
    ("known", "want"),
    [
        pytest.param([], 1.0, id="nothing is known: all of it"),
        pytest.param([ran(0.5)] * 40, 0.5, id="everybody left half-way"),
        pytest.param([ran(0.2)] * 10 + [ran(0.8, slice_="b")] * 10, 0.35, id="ten of one's own weigh as all others"),
        pytest.param([ran(0.2, slice_="b", length=HOUR)] * 40, 0.2, id="others are better than nothing"),
    ],
)  # fmt: skip
def test_what_is_expected(known: list[Released], want: float) -> None:
    assert mean(Uses(known)) == pytest.approx(want, abs=0.02)


def test_who_still_runs_counts_as_long() -> None:
    quick = [ran(0.1)] * 20
    assert mean(Uses([*quick, *[ran(0.3, is_open=True)] * 20])) > mean(Uses(quick)) + 0.3


def test_a_burst_that_ended_alike_makes_futures_differ() -> None:
    """Forty that left at once between many that stayed: some futures are quick, most are not."""
    uses = Uses(
        Released("a", "H100", 4 * HOUR, HOUR if i // STRETCH == 3 else 4 * HOUR, filed_at=i)
        for i in range(10 * STRETCH)
    )
    means = [
        sum(uses.drawn(seed / 99)(KIND, 0.0, (n + 0.5) / 20) for n in range(20)) / 20 for seed in range(99)
    ]
    assert min(means) < 0.6
    assert max(means) > 0.99


@given(shares, st.floats(0, 0.999), st.floats(0, 0.999), st.floats(0, 1))
@law(200)
def test_a_share_is_never_below_what_was_used_nor_above_all(
    known: list[tuple[float, bool]], after: float, luck: float, seed: float
) -> None:
    uses = Uses(ran(share, is_open=is_open) for share, is_open in known)
    assert after <= uses.drawn(seed)(KIND, after, luck) <= 1.0


@given(shares, st.lists(st.tuples(st.floats(0, 0.999), st.floats(0, 0.999)), max_size=5))
@law(100)
def test_a_future_draws_alike_whatever_was_drawn_before(
    known: list[tuple[float, bool]], before: list[tuple[float, float]]
) -> None:
    uses = Uses(ran(share, is_open=is_open) for share, is_open in known)
    draw = uses.drawn(0.5)
    for after, luck in before:
        draw(("other", "shape", 60), after, luck)
    assert draw(KIND, 0.0, 0.3) == uses.drawn(0.5)(KIND, 0.0, 0.3)
