"""Random traces for the simulator's tests, and a watcher that keeps what it is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from scheduler.instance import parse
from scheduler.replay.observer import Moment
from scheduler.replay.trace import Trace, from_rows
from scheduler.snapshot import Lease, Request

SIZES = {"a": 4, "b": 3}
HEAD = "id,pool,submit,nodes,duration,priority,slice,running,notBefore,actual"


def trace(*rows: str, sizes: dict[str, int] | None = None) -> Trace:
    """Rows as in a file, without the header."""
    return from_rows(parse("\n".join([HEAD, *rows])), sizes or SIZES)


@st.composite
def traces(draw: st.DrawFn, *, priorities: tuple[int, ...] = (50, 150, 250), strict: bool = False) -> Trace:
    """Up to twelve requests on two small pools; most have to wait."""
    rows = []
    for i in range(draw(st.integers(0, 12))):
        duration = draw(st.integers(1, 12))
        rows.append(
            ",".join(
                str(cell)
                for cell in (
                    f"r{i}",
                    draw(st.sampled_from(["a", "b", "a|b", "b|a"])),
                    draw(st.integers(0, 15)),
                    draw(st.integers(1, 4)),
                    duration,
                    draw(st.sampled_from(priorities)),
                    draw(st.sampled_from(["", "", "s", "t"])),
                    "",
                    draw(st.sampled_from(["", "", "9"])),
                    "" if strict else draw(st.one_of(st.just(""), st.integers(0, duration))),
                )
            )
        )
    return trace(*rows)


@dataclass
class Told:
    """What a watcher was told, in order."""

    moments: dict[str, Moment] = field(default_factory=dict)
    estimates: dict[str, int] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    ends: list[Lease] = field(default_factory=list)

    def estimated(self, moment: Moment, request: Request, start: int) -> None:
        assert moment.plan.placements[request.key].start == start
        self.moments[request.key], self.estimates[request.key] = moment, start

    def started(self, now: int, request: Request, lease: Lease) -> None:
        assert now <= lease.start
        assert request.key == lease.key
        self.leases.append(lease)

    def ended(self, now: int, request: Request, lease: Lease) -> None:
        assert lease.end <= now
        self.ends.append(lease)
