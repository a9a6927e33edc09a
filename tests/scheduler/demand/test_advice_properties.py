"""Laws of advice (J3), on random loads."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.advice import synthetic
from scheduler.demand.advice import HOUR_S, Hour, advised, gaps
from scheduler.demand.choice_of_rule import Choice, Outcome, accounts, chosen
from scheduler.demand.forecasts import FORECASTS
from scheduler.demand.learnt_rules import LEARNT, Learnt, wanted
from scheduler.demand.load import Load, Terms
from scheduler.demand.replay_load import replayed
from scheduler.demand.thresholds import THRESHOLDS, thresholds

NOW = 1_763_971_200
FEW = settings(max_examples=15, deadline=None)
LEADS = st.sampled_from([600, 3600, 3 * 3600, 30 * 3600])


@st.composite
def loads(draw: st.DrawFn, days: int = 4) -> Load:
    """Hours of a few days: a curve, steps and spikes, also nothing at all."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    hours = np.arange(24 * days)
    size = draw(st.sampled_from([0.0, 1.0, 8.0, 300.0]))
    base = size * (1 + draw(st.floats(0, 1)) * np.sin(hours / 24 * 2 * np.pi))
    spikes = np.where(numbers.random(len(hours)) < draw(st.floats(0, 0.2)), numbers.uniform(1, 9), 1.0)
    return Load(HOUR_S, base * spikes * np.exp(numbers.normal(0, draw(st.floats(0, 0.5)), len(hours))))


@FEW
@given(loads(), LEADS, st.lists(st.integers(0, 50), min_size=1, max_size=6))
def test_never_fewer_nodes_than_are_known_to_be_needed(load: Load, lead_s: int, known: list[int]) -> None:
    found = advised(load, Terms(lead_s, 3600), known, NOW)
    assert [hour.known for hour in found.hours] == known
    assert all(hour.nodes >= hour.known for hour in found.hours)
    assert all((hour.file_by is None) == (hour.known > 0 or not hour.nodes) for hour in found.hours)
    assert all(
        hour.file_by is None or NOW <= hour.file_by <= max(NOW, hour.begin - lead_s) for hour in found.hours
    )


@FEW
@given(loads(), LEADS, st.sampled_from(LEARNT))
def test_dearer_waiting_never_means_fewer_nodes(load: Load, lead_s: int, rule: Learnt) -> None:
    patiences = (24 * 3600, 3600, 600, 10)
    targets = [wanted(load, Terms(lead_s, patience), rule) for patience in patiences]
    for patient, hasty in pairwise(targets):
        assert (hasty >= patient - 1e-9).all()


@FEW
@given(loads(), LEADS)
def test_the_same_history_gives_the_same_advice(load: Load, lead_s: int) -> None:
    twin = Load(load.step_s, load.nodes.copy())
    terms = Terms(lead_s, 600)
    assert advised(load, terms, [1] * 4, NOW) == advised(twin, terms, [1] * 4, NOW)


@FEW
@given(loads(), LEADS, st.integers(1, 95), st.randoms(use_true_random=False))
def test_what_comes_later_changes_nothing(load: Load, lead_s: int, cut: int, draw: Random) -> None:
    """No look-ahead: whatever the future is, what was forecast, wanted, paid and chosen before stays the same."""
    later = load.nodes[cut:].copy()
    draw.shuffle(later)
    other = Load(load.step_s, np.concatenate((load.nodes[:cut], later * 3 + 1)))
    terms = Terms(lead_s, 600)
    for forecast in FORECASTS.values():
        ahead = terms.lead(load)
        assert (forecast(load, ahead)[: cut + 1] == forecast(other, ahead)[: cut + 1]).all()
    for rule in LEARNT[::5]:
        assert (wanted(load, terms, rule)[: cut + 1] == wanted(other, terms, rule)[: cut + 1]).all()
    before, after = accounts(load, terms), accounts(other, terms)
    assert (before.plain.nodes[:cut] == after.plain.nodes[:cut]).all()
    assert (before.clever.nodes[:cut] == after.clever.nodes[:cut]).all()
    assert chosen(before, cut) == chosen(after, cut)


@FEW
@given(loads(), LEADS)
def test_no_work_is_lost_in_a_replay(load: Load, lead_s: int) -> None:
    """What waits grows by no more than what came, and nodes are paid for from the step in which they are asked for."""
    account = replayed(load, Terms(lead_s, 600), thresholds(load), len(THRESHOLDS))
    came = np.cumsum(load.nodes)[:, None]
    assert (account.waiting <= came + 1e-6).all()
    assert (account.nodes >= 0).all()
    assert (account.late <= load.nodes[:, None] + 1e-9).all()


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=12),
    st.sampled_from([60, 1800, 7200, 86_400]),
)
def test_requests_follow_one_another_and_are_never_too_small(
    needs: list[tuple[int, int]], lead_s: int
) -> None:
    """A slice runs one request at a time: none overlaps another, or an hour that has one."""
    hours = [
        Hour(NOW + k * HOUR_S, 0.0, max(nodes, known), known, NOW if nodes and not known else None, False)
        for k, (nodes, known) in enumerate(needs)
    ]
    found = gaps(hours, lead_s)
    for one, other in pairwise(found):
        assert one.end <= other.begin
    for hour in hours:
        held = [gap.nodes for gap in found if gap.begin <= hour.begin < gap.end]
        assert len(held) == (0 if hour.file_by is None else 1)
        assert not held or held[0] >= hour.nodes


@pytest.mark.parametrize(
    ("lead_s", "want"),
    [
        pytest.param(60, [(1, 3), (3, 1), (1, 2)], id="nodes come at once: a request for each level"),
        pytest.param(
            7200, [(3, 4), (1, 2)], id="joined where idle nodes cost less than a lead of the next ones"
        ),
        pytest.param(86_400, [(3, 6)], id="nodes come late: one for all"),
    ],
)
def test_levels_are_joined_as_far_as_it_pays(lead_s: int, want: list[tuple[int, int]]) -> None:
    nodes = [1, 1, 1, 3, 1, 1]
    found = gaps([Hour(NOW + k * HOUR_S, 0.0, n, 0, NOW, False) for k, n in enumerate(nodes)], lead_s)
    assert [(gap.nodes, (gap.end - gap.begin) // HOUR_S) for gap in found] == want


def test_a_lead_is_no_longer_than_the_history() -> None:
    load = Load(HOUR_S, np.ones(48))
    assert Terms(2 * HOUR_S, 600).lead(load) == 2
    assert Terms(10**12, 600).lead(load) == 48
    assert Terms(0, 600).lead(Load(HOUR_S, np.ones(0))) == 1


def test_a_short_history_advises_known_needs_alone() -> None:
    found = advised(Load(HOUR_S, np.full(71, 5.0)), Terms(3600, 3600), [2, 0], NOW)
    assert found.choice is None
    assert [hour.nodes for hour in found.hours] == [2, 0]


def _choice(load: Load, terms: Terms) -> Choice:
    return chosen(accounts(load, terms), len(load.nodes))


@pytest.mark.slow
def test_it_switches_itself_off_where_a_threshold_does_as_well() -> None:
    """A load that jumps between levels without a pattern that a day would show."""
    load = synthetic("steps", 7, 12.0, 1)
    load = Load(300, load.nodes[::5])
    terms = Terms(3600, 10)
    choice = _choice(load, terms)
    assert choice.learnt_outcome.cost > choice.threshold_outcome.cost
    assert not choice.is_learnt
    (hour,) = advised(load, terms, [0], NOW).hours
    assert hour.nodes >= load.nodes[-1] / choice.threshold.target


@pytest.mark.parametrize(
    ("learnt", "on"),
    [
        pytest.param(Outcome(1.19, 0.5), True, id="cheaper"),
        pytest.param(Outcome(1.22, 0.01), True, id="as cheap, and less work is late"),
        pytest.param(Outcome(1.22, 0.02), False, id="as cheap, and as much work is late"),
        pytest.param(Outcome(1.3, 0.0), False, id="dearer"),
    ],
)
def test_what_counts_as_a_gain(learnt: Outcome, on: bool) -> None:
    assert Choice(LEARNT[0], THRESHOLDS[0], learnt, Outcome(1.2, 0.02)).is_learnt is on


@pytest.mark.slow
def test_it_is_on_where_the_day_has_a_shape_and_nodes_come_late() -> None:
    hours = np.arange(14 * 144)
    noise = np.random.default_rng(3).normal(0, 0.05, len(hours))
    load = Load(600, 20 * (1.2 + np.sin(hours / 144 * 2 * np.pi)) * np.exp(noise))
    choice = _choice(load, Terms(3 * 3600, 60))
    assert choice.is_learnt
    assert choice.learnt.forecast == "ridge"
    found = advised(load, Terms(3 * 3600, 60), [0] * 24, NOW)
    nodes = [hour.nodes for hour in found.hours]
    assert max(nodes) > 1.5 * min(nodes), "the shape of the day is in the advice"
    assert all(hour.nodes >= hour.expected for hour in found.hours)
