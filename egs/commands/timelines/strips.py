"""The calendar as text: a strip for each node, a mark for each slot of time. Pure.

Held by tests/egs/test_strips.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from egs.commands import output
from egs.commands.output import Row

TICK = 18
"""Slots between two times of the ruler: a date with its time has 12 letters."""
FREE = "."
FILLS = {"lease": "=", "promise": "-", "planned": "~", "maintenance": "#", "out": "x", "unreserved": "/"}
LEGEND = (
    "= has the node, - is promised it, ~ is planned, # maintenance, x out of service, / not reserved, . free"
)
_WORDS = {"maintenance": "maintenance", "out": "out of service", "unreserved": "not reserved"}
_OTHERS = "others"
"""In place of a request that the reader may not see."""
_SHORTEST = 3
"""Letters of a name that still say something."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time that a strip shows, in seconds since 1970, and its slots."""

    begin: int
    end: int
    slots: int

    def slot(self, at: int) -> int:
        """The slot of an instant; outside of [0, slots) it is not shown."""
        return (at - self.begin) * self.slots // (self.end - self.begin)

    def at(self, slot: int) -> datetime:
        """When a slot begins, in local time."""
        seconds = self.begin + slot * (self.end - self.begin) // self.slots
        return datetime.fromtimestamp(seconds, UTC).astimezone()

    @property
    def length(self) -> timedelta:
        """Of one slot."""
        return timedelta(seconds=(self.end - self.begin) // self.slots)


def lines(found: Row, span: Span) -> Iterator[str]:
    """The calendar's pools, each with a ruler and a strip for each node; then what the marks mean."""
    for pool in found["pools"]:
        rows = found["rows"][pool["first"] : pool["first"] + pool["rows"]]
        names = [_name(row) for row in rows]
        width = max(map(len, names))
        yield _heading(pool)
        yield f"{'':{width}}  {_ruler(span)}".rstrip()
        yield from (
            f"{name:{width}}  {strip(row['bars'], span)}" for name, row in zip(names, rows, strict=True)
        )
        yield ""
    yield f"{LEGEND}; a slot is {output.spoken(span.length)}"


def _heading(pool: Row) -> str:
    silent = "" if pool["reachable"] else "; the cluster does not answer, so this may be old"
    free = f"{pool['free']} of {output.counted(pool['rows'], 'node')} free"
    return f"{pool['cluster']}/{pool['pool']}: {pool['gpusPerNode']} x {pool['gpuShape']}, {free}{silent}"


def _name(row: Row) -> str:
    return str(row["node"]) if row["state"] == "Ready" else f"{row['node']} ({row['state']})"


def _ruler(span: Span) -> str:
    return "".join(f"{span.at(slot):%d %b %H:%M}".ljust(TICK) for slot in range(0, span.slots, TICK))


def strip(bars: Sequence[Row], span: Span) -> str:
    """One node's time. A bar has at least one slot; of two in one slot the later one is shown."""
    slots = [FREE] * span.slots
    # A node that is out may still have a lease, which says more.
    for bar in sorted(bars, key=lambda bar: (bar["kind"] not in _WORDS, bar["begin"])):
        first, after = _slots_of(bar, span)
        if first < after:
            slots[first:after] = _mark(bar, after - first, has_begun=bar["begin"] < span.begin)
    return "".join(slots)


def _slots_of(bar: Row, span: Span) -> tuple[int, int]:
    begin, until = bar["begin"], bar.get("until", span.end)
    if until <= span.begin or begin >= span.end:
        return 0, 0
    first = max(0, span.slot(begin))
    return first, min(
        span.slots, max(first + 1, -((span.begin - until) * span.slots // (span.end - span.begin)))
    )


def _mark(bar: Row, length: int, *, has_begun: bool) -> str:
    """`|vision/train==`, `<vision/train==` if it began earlier; with less room without the slice, or cut off."""
    fill = FILLS[bar["kind"]]
    if length == 1:
        return fill
    name, room = _WORDS.get(bar["kind"]) or bar.get("request", _OTHERS), length - 2
    name = name if len(name) <= room else name.rpartition("/")[2]
    shown = name[:room] if room >= min(_SHORTEST, len(name)) else ""
    return f"{'<' if has_begun else '|'}{shown}".ljust(length, fill)
