"""Options and arguments, each declared once, so that it means the same in every command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from egs.commands.output import Form

ON_A_REPOSITORY = "On a repository"
"""The panel of options that only a repository understands (`egs.commands.limits`)."""


def option(*names: str, **about: Any) -> Any:
    """An option whose help text says what holds without it."""
    return typer.Option(*names, **{"show_default": False, **about})


def of_repository(*names: str, **about: Any) -> Any:
    """An option that only a repository understands."""
    return option(*names, rich_help_panel=ON_A_REPOSITORY, **about)


def argument(**about: Any) -> Any:
    """An argument that has no default worth showing."""
    return typer.Argument(show_default=False, **about)


Repo = Annotated[
    str | None,
    of_repository(
        "--repo",
        metavar="PATH|URL",
        help="Folder, bare repository or URL. Default: EGS_REPO, else the folder you stand in.",
    ),
]
Now = Annotated[
    str | None, of_repository("--now", metavar="TIME", help="Pretend that it is this time (RFC 3339).")
]
At = Annotated[
    str | None,
    option(
        "--at",
        metavar="TIME|COMMIT",
        help="Show the state of then: a time, how long ago (2h), or a commit of the status branch.",
    ),
]
Author = Annotated[
    str | None,
    of_repository("--author", metavar="'NAME <MAIL>'", help="Who changes it. Default: as git is configured."),
]
_PULL_OR_PUSH = "--pull-request/--push"
AsPull = Annotated[
    bool | None,
    of_repository(_PULL_OR_PUSH, help="Open a pull request, or push to main. Default: as the project says."),
]
AsksFirst = Annotated[
    bool | None, of_repository(_PULL_OR_PUSH, help="Open a pull request (the default here), or push to main.")
]
StraightOn = Annotated[
    bool | None, of_repository(_PULL_OR_PUSH, help="Open a pull request, or push to main (the default here).")
]
Fields = Annotated[
    list[str],
    typer.Argument(metavar="FIELD=VALUE...", help="Fields of spec; an empty value removes the field."),
]
Pools = Annotated[
    list[str] | None,
    of_repository("--pool", metavar="NAME=NODES", help="A pool of the CSV; may be repeated."),
]
Kubeconfigs = Annotated[
    str | None,
    of_repository(
        "--kubeconfigs",
        metavar="DIR",
        envvar="EGS_KUBECONFIGS",
        help="Folder with the kubeconfigs that Cluster manifests name.",
    ),
]
ClusterState = Annotated[
    str | None,
    of_repository("--state", metavar="DIR", help="Folder of a controller with simulated clusters."),
]
MetricsFiles = Annotated[
    str | None,
    of_repository(
        "--metrics-files",
        metavar="DIR",
        envvar="EGS_METRICS_FILES",
        help="Folder with credentials for the Prometheus of Cluster manifests.",
    ),
]
OwnKubeconfig = Annotated[
    str | None,
    of_repository(
        "--kubeconfig",
        metavar="FILE",
        help="Your own kubeconfig of the cluster. Default: KUBECONFIG, else ~/.kube/config.",
    ),
]
OwnContext = Annotated[
    str | None,
    of_repository("--context", metavar="NAME", help="Context of that kubeconfig. Default: its current one."),
]
Request = Annotated[str, argument(metavar="SLICE/GPR", help="The request.")]
Output = Annotated[Form, typer.Option("--output", "-o", help="Output format.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen and write nothing.")]
Nodes = Annotated[int | None, option(min=1, metavar="N", help="Whole GPU nodes.")]
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
Memory = Annotated[int | None, option(min=1, metavar="GB", help="Memory each GPU has at least.")]
InstanceType = Annotated[str | None, option("--instance-type", metavar="T", help="Only this machine type.")]
Duration = Annotated[str | None, option(metavar="D", help="How long: 6h, 90m, 0d6h0m.")]
Priority = Annotated[
    int | None, typer.Option(min=1, max=300, metavar="P", help="1 to 300.", show_default="101")
]
Template = Annotated[str | None, option(metavar="T", help="Template for the fields that are not given.")]
DisplayName = Annotated[str | None, option("--display-name", metavar="TEXT", help="For people.")]
Clusters = Annotated[
    list[str] | None, option("--cluster", metavar="C", help="Cluster; may be repeated. Default: the slice's.")
]
NotBefore = Annotated[str | None, option(metavar="TIME", help="Earliest wanted start (RFC 3339).")]
Start = Annotated[
    str | None, typer.Option(metavar="MODE", help="asap, ready or promised.", show_default="asap")
]
Prefer = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="How to choose among pools that fit: earliest, price or memory.",
        show_default="earliest",
    ),
]
MaxWait = Annotated[
    str | None,
    option("--max-wait", metavar="D", help="Longest wait for the preferred pools; after it, any pool."),
]
Rdma = Annotated[bool, typer.Option("--rdma", help="Only nodes with RDMA.")]
ModelName = Annotated[str | None, option("--model", metavar="NAME", help="Model that will run, for people.")]
