"""What is granted while something is away delays no promise that it would delay once that is back (A14, E10)."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from reconciler.clusters.simulated.scripted_faults import ApiFails, NodeDies
from schemas.documents.gpr import RequestSpec
from tests.support.profile import law
from tests.support.world import World, at, cluster, project, slice_

NODES = 3
WAITING = ("b", "c", "d")
AWAY, BACK = 20, 23


@dataclass(frozen=True)
class Case:
    """Requests that wait behind `a/x` and `a/long`, what is away for three minutes, and when grace is asked for."""

    waiting: tuple[tuple[int, int], ...]  # nodes and minutes of each
    silent: int | None  # a node; None: the whole cluster
    asked_at: float

    def starts(self, *, with_grace: bool) -> tuple[World, dict[str, float]]:
        """The world after the trouble, and when each of those that wait is promised to start, in minutes."""
        world = World({
            "project.yaml": project(maxExtension="2h"),
            "clusters/east.yaml": cluster(nodes=NODES),
            **{f"slices/{name}/slice.yaml": slice_(name) for name in ("a", "e", *WAITING)},
        })  # fmt: skip
        world.file("a/x", duration="1h")
        world.file("e/long", duration="2h")
        for name, (nodes, minutes) in zip(WAITING, self.waiting, strict=True):
            world.file(f"{name}/r", nodes=nodes, duration=f"{minutes}m")
        world.run(at(1))
        fault = (
            ApiFails(at=at(AWAY), until=at(BACK))
            if self.silent is None
            else NodeDies(node=f"h100-{self.silent}", at=at(AWAY), until=at(BACK))
        )
        world.drivers["east"].inject(fault)
        world.run(at(self.asked_at))
        if with_grace:
            world.file("a/x", duration="1h", extend="30m")
        world.run(at(BACK + 2))
        return world, _starts(world)


cases = st.builds(
    Case,
    st.tuples(*[st.tuples(st.integers(1, NODES), st.sampled_from([20, 70])) for _ in WAITING]),
    st.none() | st.integers(1, NODES),
    st.sampled_from([AWAY, AWAY + 1, BACK - 0.5, BACK]),
)


@law(12)
@given(cases)
def test_grace_that_is_granted_in_trouble_delays_nobody_after_it(case: Case) -> None:
    _, without = case.starts(with_grace=False)
    world, starts = case.starts(with_grace=True)
    if world.status("a/x").extended_by != RequestSpec.model_fields["extend"].default:
        assert all(starts[key] <= start for key, start in without.items() if key in starts)


def _starts(world: World) -> dict[str, float]:
    found = {}
    for name in WAITING:
        status = world.status(f"{name}/r")
        start = status.start_time or status.estimated_start_time
        if start is not None:
            found[f"{name}/r"] = (start - at(0)).total_seconds() / 60
    return found
