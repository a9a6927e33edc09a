"""Episodes of a node's life: which GPUs are taken out, how soon, why, and what to do (H14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.episodes import Episode, Outcome, episodes, fault_at, play, wanted

CASES = Path(__file__).parents[1] / "cases" / "agent"
ALL = list(episodes(CASES))


@pytest.mark.parametrize("episode", ALL, ids=[e.name for e in ALL])
def test_who_is_taken_out_when_and_why(episode: Episode):
    found: Outcome = play(episode)
    want = wanted(episode)
    assert sorted(found.out_at) == sorted(want), found.reasons
    for gpu, what in want.items():
        assert 0 <= found.out_at[gpu] - fault_at(episode) <= what["within"]
        assert what["reason"] in found.reasons[gpu]
        assert found.actions[gpu] == what["action"]
    for gpu, reasons in episode.watch.items():
        assert found.watched[gpu] >= set(reasons)


def test_a_driver_that_never_comes_back_is_a_fault_of_the_node():
    """A reload takes minutes; what takes longer needs a person."""
    short = Episode("", "", [{"at": 300, "away": True}, {"at": 800, "away": False}])
    assert play(short).node == set()
    assert play(Episode("", "", [{"at": 300, "away": True}])).node == {"DriverAway"}
