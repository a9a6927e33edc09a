"""A fleet in which an admin has something to do: two running requests, a queue, an approval, a bad node, a workspace
that somebody asks for, and a document with a problem. Time stands still once it is made.
"""

from __future__ import annotations

from pathlib import Path

from reconciler.clusters.simulated.scripted_faults import GpuFails
from reconciler.status.yaml_rows import document
from schemas.reading.yaml_text import dump
from schemas.status.gpu_faults import GpuAction
from schemas.status.node_status import AgentReport, GpuReport, NodeMetadata
from tests.support import repos
from tests.support.portal import HEAD, Site, template
from tests.support.world import cluster, slice_

BAD, SERIAL = "h100-6", "1650924000123"
"""A node of east whose card 3 fails again and again."""


def busy(folder: Path) -> Site:
    """The fleet, one hour after it began."""
    quota = {
        "quota": {"gpus": 32},
        "owners": [{"email": "olga@example.com"}],
        "description": "models that see",
    }
    files = {
        "clusters/east.yaml": cluster("east", nodes=6, pricePerGpuHour=2.5),
        "slices/vision/slice.yaml": slice_("vision", ("east", "west"), **quota),
        "templates/broken.yaml": template("broken", nodes=0),
        "requests/robots.yaml": dump(
            {
                **HEAD,
                "kind": "WorkspaceRequest",
                "metadata": {"name": "robots"},
                "spec": {
                    "requester": {"email": "dee@example.com"},
                    "members": [{"email": "bo@example.com"}],
                    "clusters": ["east"],
                    "namespaces": ["robots"],
                    "quota": {"gpus": 8},
                    "reason": "arms that learn to grasp",
                },
            }
        ),
    }
    made = Site(folder, files)
    made.settle()
    made.file("vision/train", nodes=2, duration="8h", clusters=["east"], model={"name": "llama-70b"})
    made.file("nlp/tune", nodes=1, duration="3h", clusters=["east"])
    made.settle()
    made.pass_time(5)
    made.running.submit("east", "vision", "finetune", 8, made.now)
    made.running.submit("east", "nlp", "tokens", 8, made.now)
    made.pass_time(5)
    for number, fault in enumerate(("Xid79", "Xid48", "Xid79")):
        report(made, healthy=False, reason=fault)
        made.pass_time(5)
        if number < 2:
            report(made, healthy=True)
            made.pass_time(5)
    nodes = made.view.facts.requests["vision/train"].assignment
    assert nodes is not None
    hot = GpuFails(node=nodes.nodes[0], gpu=3, at=made.now, temp_c=91)
    made.running.cluster("east").inject(hot)
    made.file("vision/next", nodes=4, duration="3h", clusters=["east"])
    made.file("nlp/eval", nodes=4, duration="2h")
    made.file("nlp/sweep", nodes=3, duration="1h", priority=150)
    made.file("vision/big", nodes=5, duration="12h", displayName="The big one")
    made.settle()
    made.pass_time(20)
    return made


def report(site: Site, *, healthy: bool, reason: str = "", node: str = BAD, serial: str = SERIAL) -> None:
    """The agent of a node of east says how its eight cards are; the fourth is the bad one."""
    found = site.running.latest([("east", node)], site.now).samples
    uuids = {sample.index: sample.gpu.uuid for sample in found}
    gpus = tuple(
        GpuReport(
            uuid=uuids.get(index, f"GPU-{node}-{index}"),
            index=index,
            product="NVIDIA H100 80GB HBM3",
            memory_mib=81_559,
            healthy=healthy or index != 3,
            reasons=() if healthy or index != 3 else (reason,),
            action=None if healthy or index != 3 else GpuAction.RESET,
            serial=f"{serial[:-1]}{index}" if index != 3 else serial,
            board_part="692-2G520-0200-000",
            vbios="96.00.89.00.01",
            driver="570.133.20",
            links=18,
            links_up=18,
        )
        for index in range(8)
    )
    told = AgentReport(
        metadata=NodeMetadata(name=node),
        cluster="east",
        node=node,
        at=site.now,
        healthy=healthy,
        reason=None if healthy else reason,
        action=None if healthy else GpuAction.RESET,
        message=None if healthy else f"GPU 3 has {reason}",
        gpus=gpus,
    )
    repos.commit(site.repo, {"report.yaml": document(told).decode()}, f"egs/agents/east/{node}")
