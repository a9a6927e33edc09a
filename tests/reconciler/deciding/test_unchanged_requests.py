"""Leaving out turns that would change nothing changes nothing: a fold with a memory is a fold without one (D17)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler import loop
from reconciler.deciding.fold import Folded, fold
from reconciler.model.request_files import raw
from reconciler.model.statuses import UnreadRecord
from tests.support.memory_remote import Fate
from tests.support.profile import law
from tests.support.world import World, gpr, gpr_path, project, slice_

KEYS = ("a/p", "a/q", "b/p", "b/q")
EDITS = st.one_of(
    st.builds(
        lambda key, nodes, hours, release: {
            gpr_path(key): gpr(*key.split("/"), nodes=nodes, duration=f"{hours}h", earlyRelease=release)
        },
        st.sampled_from(KEYS),
        st.integers(1, 3),
        st.integers(1, 3),
        st.booleans(),
    ),
    st.builds(lambda key: {gpr_path(key): None}, st.sampled_from(KEYS)),
    st.builds(lambda key: {gpr_path(key): "kind: GPR"}, st.sampled_from(KEYS)),
    st.builds(lambda most: {"project.yaml": project(limits={"nodesPerRequest": most})}, st.integers(1, 3)),
    st.builds(
        lambda name, gpus: {f"slices/{name}/slice.yaml": slice_(name, quota={"gpus": gpus})},
        st.sampled_from("ab"),
        st.integers(8, 24),
    ),
)

STEPS = st.lists(st.tuples(st.none() | EDITS, st.integers(0, 90)), min_size=1, max_size=8)


def as_without_a_memory(*known: Any) -> Folded:
    """The fold, and a look whether one without a memory gives the same."""
    *given_, settled = known
    found, plain = fold(*given_, settled), fold(*given_)
    assert dict(found.facts.requests) == dict(plain.facts.requests)
    assert found.facts == plain.facts
    assert (found.events, found.causes, found.anew) == (plain.events, plain.causes, plain.anew)
    return found


@law(25)
@given(STEPS)
def test_a_fold_with_a_memory_is_one_without(steps: list[tuple[dict[str, str | None] | None, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "fold", as_without_a_memory)
        world = World()
        for files, minutes in steps:
            if files is None:
                world.controller = (
                    world.start()
                )  # a process without this memory, and with what the last one kept
            else:
                world.commit(files)
            world.run(world.now + timedelta(minutes=minutes))


def test_what_is_over_is_left_unread_by_the_next_controller() -> None:
    """A restart costs what is under way."""
    world = World()
    for name in ("p", "q"):
        world.file(f"a/{name}", duration="1h")
    world.run(world.now + timedelta(hours=4))
    world.run(world.now + timedelta(minutes=5))
    world.controller = world.start()
    cycle = world.run(world.now)[-1]
    assert cycle.facts is not None
    assert cycle.wanted is not None
    over = getattr(cycle.facts.requests, "over", {})
    assert over.keys() == {"a/p", "a/q"}
    assert all(isinstance(status, UnreadRecord) and status._status is None for status in over.values())
    files = raw(cycle.wanted.filed)
    assert all(not hasattr(files[key], "spec") for key in over)
    assert cycle.facts.requests["a/p"].phase == "Completed"


def test_who_is_let_in_by_a_commit_that_does_not_land_is_let_in_by_the_next() -> None:
    """C4: a limit is raised, the push is refused once, and nothing else happens."""
    world = World({"slices/a/slice.yaml": slice_("a", limits={"gpuHoursPerMonth": 5})})
    world.file("a/p", duration="1h")
    assert world.run(world.now)[-1].facts.requests["a/p"].reason == "LimitExceeded"
    world.commit({"slices/a/slice.yaml": slice_("a", limits={"gpuHoursPerMonth": 50})})
    world.remote.hook = lambda operation: Fate.REFUSE if operation.kind == "push" else Fate.PASS
    world.controller.cycle(world.now)
    world.remote.hook = lambda _: Fate.PASS
    facts = world.run(world.now + timedelta(minutes=5))[-1].facts
    assert facts.requests["a/p"].phase == "Provisioned"
