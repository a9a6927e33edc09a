"""Commands that show what is: get and describe. Only their words; the work is imported late."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from reconciler.commands.options import Now, Output, Repo, Request
from reconciler.commands.output import Form

Slice = Annotated[
    str | None, typer.Option("--slice", metavar="S", help="Only this slice.", show_default=False)
]


class Kind(StrEnum):
    """Of events."""

    NORMAL = "Normal"
    WARNING = "Warning"


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    get = typer.Typer(
        help="List GPRs, slices, requests for slices, clusters, nodes, the queue, events or problems.\n\n\b\nExample:\n"
        "  egs get queue",
        short_help="List things of one kind.",
        no_args_is_help=True,
    )
    get.command("gprs", short_help="Requests, in every phase.")(gprs)
    get.command("slices", short_help="Slices, with what they hold and used.")(slices)
    get.command("clusters", short_help="Clusters, their freshness and pools.")(clusters)
    get.command("nodes", short_help="Nodes, with state, lease and schedule.")(nodes)
    get.command("requests", short_help="Slices that people asked for.")(requests)
    get.command("queue", short_help="Who waits, in order, and how long.")(queue)
    get.command("events", short_help="What happened, newest first.")(events)
    get.command("problems", short_help="What is wrong with the documents.")(problems)
    app.add_typer(get, name="get")
    describe = typer.Typer(
        help="Show everything about one thing.\n\n\b\nExample:\n  egs describe gpr vision/train",
        short_help="Show everything about one thing.",
        no_args_is_help=True,
    )
    describe.command("gpr", short_help="A request: checks, slips, cost.")(describe_gpr)
    describe.command("slice", short_help="A slice: bounds, requests, usage.")(describe_slice)
    describe.command("request", short_help="A slice that somebody asked for.")(describe_request)
    describe.command("cluster", short_help="A cluster: pools and schedule.")(describe_cluster)
    describe.command("node", short_help="A node: state, GPUs, calendar.")(describe_node)
    app.add_typer(describe, name="describe")


def gprs(
    slice_: Slice = None,
    phase: Annotated[
        str | None,
        typer.Option(metavar="PHASE", help="Only in this phase, for example Queued.", show_default=False),
    ] = None,
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """List requests, in every phase.

    \b
    Example:
      egs get gprs --slice vision --phase Provisioned
    """
    from reconciler.commands.gets import get_gprs

    get_gprs(repo, now, slice_, phase, output)


def slices(repo: Repo = None, now: Now = None, output: Output = Form.TABLE) -> None:
    """List slices, with what they wait for, hold, used and spent.

    \b
    Example:
      egs get slices
    """
    from reconciler.commands.gets import get_slices

    get_slices(repo, now, output)


def clusters(repo: Repo = None, now: Now = None, output: Output = Form.TABLE) -> None:
    """List clusters and their pools: whether they answer, since when, and how fresh the status is.

    \b
    Example:
      egs get clusters
    """
    from reconciler.commands.gets import get_clusters

    get_clusters(repo, now, output)


def nodes(
    cluster: Annotated[
        str | None, typer.Option(metavar="C", help="Only this cluster.", show_default=False)
    ] = None,
    pool: Annotated[str | None, typer.Option(metavar="P", help="Only this pool.", show_default=False)] = None,
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """List nodes: state, who has them until when, and who is likely to be next.

    \b
    Example:
      egs get nodes --cluster east -o json
    """
    from reconciler.commands.gets import get_nodes

    get_nodes(repo, now, cluster, pool, output)


def requests(repo: Repo = None, now: Now = None, output: Output = Form.TABLE) -> None:
    """List slices that people asked for, and what became of each.

    \b
    Example:
      egs get requests
    """
    from reconciler.commands.spaces import get_requests

    get_requests(repo, now, output)


def queue(slice_: Slice = None, repo: Repo = None, now: Now = None, output: Output = Form.TABLE) -> None:
    """List who waits, in rank order: position in the pool, promised start, time until then.

    \b
    Example:
      egs get queue --slice vision
    """
    from reconciler.commands.gets import get_queue

    get_queue(repo, now, slice_, output)


def events(  # noqa: PLR0913 - each is an option of the command
    slice_: Slice = None,
    gpr: Annotated[
        str | None, typer.Option(metavar="[SLICE/]GPR", help="Only this request.", show_default=False)
    ] = None,
    node: Annotated[
        str | None, typer.Option(metavar="[CLUSTER/]NODE", help="Only this node.", show_default=False)
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="Only these, for example GPRDelayed.", show_default=False),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="C", help="Only this cluster.", show_default=False)
    ] = None,
    kind: Annotated[
        Kind | None,
        typer.Option("--type", help="Only what is a warning, or what is none.", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="From this time on; 2h: two hours ago.", show_default=False),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Before this time, or so long ago.", show_default=False)
    ] = None,
    grep: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only with this text, in capitals or not.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 50,
    repo: Repo = None,
    output: Output = Form.TABLE,
) -> None:
    """List what happened, newest first.

    \b
    Examples:
      egs get events --gpr vision/train --reason GPRDelayed
      egs get events --since 2h --grep h100-7
    """
    from reconciler.commands.gets import get_events
    from reconciler.commands.happenings import Filter

    wanted = Filter(slice_, gpr, node, cluster, reason, type=None if kind is None else str(kind), text=grep)
    get_events(repo, wanted, (since, until), limit, output)


def problems(repo: Repo = None, output: Output = Form.TABLE) -> None:
    """List what is wrong with the documents; `egs validate` says the same and exits 1.

    \b
    Example:
      egs get problems
    """
    from reconciler.commands.gets import get_problems

    get_problems(repo, output)


def describe_gpr(request: Request, repo: Repo = None, now: Now = None, output: Output = Form.TABLE) -> None:
    """Show a request: why it stands where it does, its checks with their logs, its slips, its cost.

    \b
    Example:
      egs describe gpr vision/train
    """
    from reconciler.commands.describing import describe_gpr as run

    run(repo, now, request, output)


def describe_slice(
    name: Annotated[str, typer.Argument(metavar="SLICE", help="Its name.")],
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Show a slice: its people and bounds, its requests, what it used in each month.

    \b
    Example:
      egs describe slice vision
    """
    from reconciler.commands.describing import describe_slice as run

    run(repo, now, name, output)


def describe_request(
    name: Annotated[str, typer.Argument(metavar="SLICE", help="Its name.")],
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Show a slice that somebody asked for: what for, how it stands, and what to do next.

    \b
    Example:
      egs describe request nlp
    """
    from reconciler.commands.spaces import describe_request as run

    run(repo, now, name, output)


def describe_cluster(
    name: Annotated[str, typer.Argument(metavar="CLUSTER", help="Its name.")],
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Show a cluster: its pools, how fresh its view is, who has how many nodes when.

    \b
    Example:
      egs describe cluster east
    """
    from reconciler.commands.describing import describe_cluster as run

    run(repo, now, name, output)


def describe_node(
    name: Annotated[str, typer.Argument(metavar="CLUSTER/NODE", help="Its cluster and name.")],
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Show a node: its state and why, its GPUs as last reported, who has it when.

    \b
    Example:
      egs describe node east/h100-1
    """
    from reconciler.commands.describing import describe_node as run

    run(repo, now, name, output)
