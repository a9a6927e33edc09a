"""Commands that show what is: get and describe. Only their words; the work is imported late."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from egs import listing
from egs.listing import Asked, GetForm, Names, Watch
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
        help="List GPRs, slices, requests for slices, clusters, nodes, the queue, events, problems or workloads."
        "\n\n\b\nExample:\n  egs get queue",
        short_help="List things of one kind.",
        no_args_is_help=True,
    )
    listing.add(get, "gprs", gprs, "Requests, in every phase.")
    listing.add(get, "slices", slices, "Slices, with what they hold and used.")
    listing.add(get, "clusters", clusters, "Clusters, their freshness and pools.")
    listing.add(get, "nodes", nodes, "Nodes, with state, lease and schedule.")
    listing.add(get, "requests", requests, "Slices that people asked for.")
    listing.add(get, "queue", queue, "Who waits, in order, and how long.")
    listing.add(get, "events", events, "What happened, newest first.")
    listing.add(get, "problems", problems, "What is wrong with the documents.")
    listing.add(get, "workloads", workloads, "What runs on requests' nodes.")
    app.add_typer(get, name="get")
    describe = typer.Typer(
        help="Show everything about one thing.\n\n\b\nExample:\n  egs describe gpr vision/train",
        short_help="Show everything about one thing.",
        no_args_is_help=True,
    )
    listing.add(describe, "gpr", describe_gpr, "A request: checks, slips, cost.")
    listing.add(describe, "slice", describe_slice, "A slice: bounds, requests, usage.")
    listing.add(describe, "request", describe_request, "A slice that somebody asked for.")
    listing.add(describe, "cluster", describe_cluster, "A cluster: pools and schedule.")
    listing.add(describe, "node", describe_node, "A node: state, GPUs, calendar.")
    app.add_typer(describe, name="describe")


def gprs(  # noqa: PLR0913 - each is an option of the command
    names: Names = None,
    slice_: Slice = None,
    phase: Annotated[
        str | None,
        typer.Option(metavar="PHASE", help="Only in this phase, for example Queued.", show_default=False),
    ] = None,
    repo: Repo = None,
    now: Now = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List requests, in every phase.

    \b
    Example:
      egs get gprs --slice vision --phase Provisioned
    """
    from reconciler.commands.gets import get_gprs

    get_gprs(repo, now, slice_, phase, Asked(output, names, watch))


def slices(
    names: Names = None,
    repo: Repo = None,
    now: Now = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List slices, with what they wait for, hold, used and spent.

    \b
    Example:
      egs get slices
    """
    from reconciler.commands.gets import get_slices

    get_slices(repo, now, Asked(output, names, watch))


def clusters(
    names: Names = None,
    repo: Repo = None,
    now: Now = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List clusters and their pools: whether they answer, since when, and how fresh the status is.

    \b
    Example:
      egs get clusters
    """
    from reconciler.commands.gets import get_clusters

    get_clusters(repo, now, Asked(output, names, watch))


def nodes(  # noqa: PLR0913 - each is an option of the command
    names: Names = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="C", help="Only this cluster.", show_default=False)
    ] = None,
    pool: Annotated[str | None, typer.Option(metavar="P", help="Only this pool.", show_default=False)] = None,
    repo: Repo = None,
    now: Now = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List nodes: state, who has them until when, and who is likely to be next.

    \b
    Example:
      egs get nodes --cluster east -o json
    """
    from reconciler.commands.gets import get_nodes

    get_nodes(repo, now, cluster, pool, Asked(output, names, watch))


def requests(
    names: Names = None,
    repo: Repo = None,
    now: Now = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List slices that people asked for, and what became of each.

    \b
    Example:
      egs get requests
    """
    from reconciler.commands.spaces import get_requests

    get_requests(repo, now, Asked(output, names, watch))


def queue(
    names: Names = None,
    slice_: Slice = None,
    repo: Repo = None,
    now: Now = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List who waits, in rank order: position in the pool, promised start, time until then.

    \b
    Example:
      egs get queue --slice vision
    """
    from reconciler.commands.gets import get_queue

    get_queue(repo, now, slice_, Asked(output, names, watch))


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
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
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
    get_events(repo, wanted, (since, until), limit, Asked(output, is_watched=watch))


def problems(repo: Repo = None, watch: Watch = False, output: listing.Output = GetForm.TABLE) -> None:
    """List what is wrong with the documents; `egs validate` says the same and exits 1.

    \b
    Example:
      egs get problems
    """
    from reconciler.commands.gets import get_problems

    get_problems(repo, Asked(output, is_watched=watch))


def workloads(
    names: Names = None,
    slice_: Slice = None,
    repo: Repo = None,
    now: Now = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List what runs on requests' nodes: model, GPUs, health, idleness, cost so far.

    \b
    Example:
      egs get workloads --slice vision
    """
    from reconciler.commands.gets import get_workloads

    get_workloads(repo, now, slice_, Asked(output, names, watch))


def describe_gpr(
    request: Request,
    checks: listing.Checks = False,
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Show a request: why it stands where it does, its checks with their logs, its slips, its cost.

    \b
    Examples:
      egs describe gpr vision/train
      egs describe gpr vision/train --checks
    """
    from reconciler.commands.describing import describe_gpr as run

    run(repo, now, request, output, checks_alone=checks)


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
