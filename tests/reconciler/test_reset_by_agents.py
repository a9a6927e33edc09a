"""A GPU that fails, is reset and serves again: controller, simulated cluster and real agents (H14)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent.report import Identity, Reporter
from agent.simulated import SimulatedReader
from agent.watch import Manifest, Watch
from reconciler.clusters.simulated.scripted_faults import GpuFails
from reconciler.store.memory_store import MemoryStore
from tests.support import world as build
from tests.support.world import START, World

TICK, MINUTE = timedelta(seconds=10), timedelta(minutes=1)
NODE = "h100-1"


def agent_of(world: World) -> Watch:
    """The agent of the node, as the demo has it."""
    who, store = Identity("east", NODE, NODE, "agent"), MemoryStore(world.remote)
    reader = SimulatedReader(lambda now: world.drivers["east"].gpu_readings(NODE, now))
    return Watch(
        reader,
        Reporter(store, who),
        Manifest(store, "main", who, 5 * MINUTE),
        who,
        release=lambda now: world.drivers["east"].release_asked(NODE, now),
    )


@pytest.mark.parametrize(
    ("fault", "told", "state"),
    [
        pytest.param(
            {"xid": 95},
            ["NodeOut", "NodeResetBegan", "NodeRemediated", "NodeBack"],
            "Ready",
            id="a reset ends it",
        ),
        pytest.param(
            {"remap_failure": True},
            ["NodeOut"],
            "Unhealthy RemapFailure",
            id="a reset would not end it",
        ),
    ],
)
def test_a_gpu_that_fails_between_leases(fault, told, state):
    """H14: the agent lets go meanwhile, and finds the GPU well after it."""
    world = World({"clusters/east.yaml": build.cluster("east", remediation={"reset": True})})
    world.run(START)
    agent = agent_of(world)
    world.drivers["east"].inject(GpuFails(node=NODE, gpu=3, at=START + MINUTE, **fault))
    released = set()
    while world.now < START + 15 * MINUTE:
        agent.cycle(world.now)
        released.add(agent._released_at)
        world.run(world.now + TICK)
    events = [str(event.reason) for cycle in world.log for event in cycle.events if event.node == NODE]
    record = world.facts().nodes.get(("east", NODE))
    assert events == told
    assert (f"{record.state} {record.reason}" if record else "Ready") == state
    assert (len(released) > 1) is ("NodeResetBegan" in told)
