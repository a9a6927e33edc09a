"""Options of `egs gpr create`: what a request may say about the nodes it wants, each documented once."""

from __future__ import annotations

from typing import Annotated

import typer

Nodes = Annotated[int | None, typer.Option(min=1, metavar="N", help="Whole GPU nodes.", show_default=False)]
GpusPerNode = Annotated[
    int | None,
    typer.Option(
        "--gpus-per-node", min=1, metavar="G", help="GPUs each node has at least.", show_default="1"
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape", metavar="X", help="GPU shape; may be repeated, in order of preference.", show_default="any"
    ),
]
Memory = Annotated[
    int | None, typer.Option(min=1, metavar="GB", help="Memory each GPU has at least.", show_default=False)
]
InstanceType = Annotated[
    str | None,
    typer.Option("--instance-type", metavar="T", help="Only this machine type.", show_default=False),
]
Duration = Annotated[
    str | None, typer.Option(metavar="D", help="How long: 6h, 90m, 0d6h0m.", show_default=False)
]
Priority = Annotated[
    int | None, typer.Option(min=1, max=300, metavar="P", help="1 to 300.", show_default="101")
]
Template = Annotated[
    str | None, typer.Option(metavar="T", help="Template for what is not given here.", show_default=False)
]
DisplayName = Annotated[
    str | None, typer.Option("--display-name", metavar="TEXT", help="For people.", show_default=False)
]
Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster", metavar="C", help="Cluster; may be repeated. Default: the slice's.", show_default=False
    ),
]
NotBefore = Annotated[
    str | None, typer.Option(metavar="TIME", help="Earliest wanted start (RFC 3339).", show_default=False)
]
Start = Annotated[
    str | None, typer.Option(metavar="MODE", help="asap, ready or promised.", show_default="asap")
]
Prefer = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT", help="Of the pools that fit: earliest, price or memory.", show_default="earliest"
    ),
]
MaxWait = Annotated[
    str | None,
    typer.Option(
        "--max-wait", metavar="D", help="Longest wait for the pools it prefers, then any.", show_default=False
    ),
]
Rdma = Annotated[bool, typer.Option("--rdma", help="Only nodes with RDMA.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Model that will run, for people.", show_default=False),
]
