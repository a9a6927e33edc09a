"""How much of their time requests use, by slice, shape and length, learnt from those that ran. Pure.

A kind of requests is described by its own members if there are enough: with n members that used more than the request
has used by now, the kind itself has the weight n / (n + ENOUGH), and the next wider kind has the rest
(shrinkage: Efron and Morris, JASA 1975). Running requests count too, as using more than they have by now; otherwise the
short ones, which end first, would dominate (the estimator of Kaplan and Meier, JASA 1958).

In one future a kind is represented by a run of its members in order of filing: people file similar requests together,
and starts are hard to predict because whole bursts end early (a block
bootstrap: Künsch, Annals of Statistics 1989).

What always holds:
  * a drawn share is never below what was used by now, nor above all of the time;
  * no running request is expected to have ended already.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

Kind = tuple[str, str, int]
"""Slice, shape, and the duration in seconds."""
Drawing = Callable[[Kind, float, float], float]
"""Draws the share of time used by a request of a kind, above a share that it has used; by luck, uniform in 0 to 1."""

ENOUGH = 10
"""Number of members that weigh as much as all wider kinds together."""
STRETCH, STRETCH_SHARE = 40, 0.1
"""Least number of members in a run, absolute and as a share of all."""


@dataclass(frozen=True, slots=True)
class Released:
    """A past lease: its duration and the seconds it used; `is_open`: it still runs, having used at least that."""

    slice: str
    shape: str
    duration: int
    used: int
    filed_at: int = 0
    is_open: bool = False


class Uses:
    """All known leases. O(length) once; each drawing costs the runs that it looks at."""

    def __init__(self, released: Iterable[Released]) -> None:
        self._members: dict[tuple[object, ...], list[tuple[float, bool]]] = {}
        for one in sorted(released, key=lambda one: one.filed_at):
            share = min(1.0, one.used / max(1, one.duration))
            for kind in _kinds((one.slice, one.shape, one.duration)):
                self._members.setdefault(kind, []).append((share, one.is_open))

    def drawn(self, seed: float) -> Drawing:
        """A drawing for one future."""
        curves: dict[tuple[object, ...], _Curve | None] = {}

        def curve(kind: tuple[object, ...]) -> _Curve | None:
            if kind not in curves:
                members = self._members.get(kind)
                curves[kind] = None if members is None else _Curve(_stretch(members, f"{seed} {kind}"))
            return curves[kind]

        def draw(kind: Kind, after: float, luck: float) -> float:
            for wider in _kinds(kind):
                found = curve(wider)
                many = 0 if found is None else found.beyond(after)
                weight = many / (many + ENOUGH) if wider else float(many > 0)
                if found is not None and luck < weight:
                    return found.at(after, luck / weight)
                luck = (luck - weight) / (1 - weight) if weight < 1 else luck
            return after + (1.0 - after) * luck if self._members else 1.0

        return draw


class _Curve:
    """Sorted shares, and how much of the kind uses more than each."""

    def __init__(self, members: Sequence[tuple[float, bool]]) -> None:
        ordered = sorted(members)
        self._shares = [share for share, _ in ordered]
        self._staying: list[float] = []  # negative, so that it rises
        staying = 1.0
        for place, (_, is_open) in enumerate(ordered):
            staying *= 1.0 if is_open else 1 - 1 / (len(ordered) - place)
            self._staying.append(-staying)

    def beyond(self, after: float) -> int:
        """Number of members that used more."""
        return len(self._shares) - bisect_right(self._shares, after)

    def at(self, after: float, luck: float) -> float:
        """The `luck`-quantile of the shares used beyond `after`; all of the time if no member ended so late."""
        first = bisect_right(self._shares, after)
        staying = -self._staying[first - 1] if first else 1.0
        place = bisect_left(self._staying, -staying * (1 - luck) - 1e-12, first)
        return self._shares[place] if place < len(self._shares) else 1.0


def _stretch(members: Sequence[tuple[float, bool]], seed: str) -> Sequence[tuple[float, bool]]:
    length = max(STRETCH, int(STRETCH_SHARE * len(members)))
    if len(members) <= length:
        return members
    begin = random.Random(seed).randrange(len(members) - length + 1)  # noqa: S311 - the same for the same seed
    return members[begin : begin + length]


def _kinds(kind: Kind) -> Iterator[tuple[object, ...]]:
    """From narrowest to widest. Durations within a factor of two are alike."""
    slice_, shape, duration = kind
    length = (max(0, duration) // 60).bit_length()
    yield (slice_, shape, length)
    yield (shape, length)
    yield (length,)
    yield ()
