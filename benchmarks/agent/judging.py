"""How right the agent's judge is, by kind of episode: `tests/cases/agent`, judged by what an operator labelled.

An episode is right if exactly the labelled GPUs are taken out, in time, for the labelled reason and with the right
action.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.episodes import episodes, fault_at, play, wanted

CASES = Path(__file__).parents[2] / "tests" / "cases" / "agent"


def main() -> None:
    """Print a table by kind."""
    count: Counter[str] = Counter()
    right: Counter[str] = Counter()
    isolate = keep = missed = wrong = 0
    slowest: dict[str, float] = {}
    for episode in episodes(CASES):
        found, want = play(episode), wanted(episode)
        out = set(found.out_at)
        missed += len(want.keys() - out)
        wrong += len(out - want.keys())
        isolate += len(want)
        keep += episode.gpus - len(want)
        delays = {gpu: found.out_at[gpu] - fault_at(episode) for gpu in out & want.keys()}
        slowest[episode.kind] = max([slowest.get(episode.kind, 0), *delays.values()])
        count[episode.kind] += 1
        right[episode.kind] += out == want.keys() and all(
            delays[gpu] <= what["within"]
            and what["reason"] in found.reasons[gpu]
            and what["action"] == found.actions[gpu]
            for gpu, what in want.items()
        )
    print(f"{'kind':<16} episodes right slowest, s")
    for kind in sorted(count):
        print(f"{kind:<16} {count[kind]:>8} {right[kind]:>5} {slowest[kind]:>10.0f}")
    print(f"{'all':<16} {count.total():>8} {right.total():>5}")
    print(f"GPUs to isolate {isolate}, missed {missed}; to keep {keep}, isolated wrongly {wrong}")


if __name__ == "__main__":
    main()
