"""Commands that show what is: get and describe. Only their words; the work is imported late."""

from __future__ import annotations

from typing import Annotated

import typer

from egs import listing
from egs.listing import GetForm, ListOptions, Names, Watch
from reconciler.cli.command_options import Now, Output, Repo, Request
from reconciler.cli.output import Form


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    listing.register(
        app,
        {
            "gprs": gprs,
            "slices": slices,
            "clusters": clusters,
            "nodes": nodes,
            "requests": requests,
            "queue": queue,
            "events": events,
            "problems": problems,
            "workloads": workloads,
        },
        {
            "gpr": describe_gpr,
            "slice": describe_slice,
            "request": describe_request,
            "cluster": describe_cluster,
            "node": describe_node,
        },
    )


def gprs(  # noqa: PLR0913 - each is an option of the command
    names: Names = None,
    slice_: listing.Slice = None,
    phase: listing.PhaseName = None,
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
    from reconciler.cli.get import get_gprs

    get_gprs(repo, now, slice_, phase, ListOptions(output, names, watch))


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
    from reconciler.cli.get import get_slices

    get_slices(repo, now, ListOptions(output, names, watch))


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
    from reconciler.cli.get import get_clusters

    get_clusters(repo, now, ListOptions(output, names, watch))


def nodes(  # noqa: PLR0913 - each is an option of the command
    names: Names = None,
    cluster: listing.Cluster = None,
    pool: listing.Pool = None,
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
    from reconciler.cli.get import get_nodes

    get_nodes(repo, now, cluster, pool, ListOptions(output, names, watch))


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
    from reconciler.queries.workspace_requests import get_requests

    get_requests(repo, now, ListOptions(output, names, watch))


def queue(
    names: Names = None,
    slice_: listing.Slice = None,
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
    from reconciler.cli.get import get_queue

    get_queue(repo, now, slice_, ListOptions(output, names, watch))


def events(  # noqa: PLR0913 - each is an option of the command
    slice_: listing.Slice = None,
    gpr: listing.OfRequest = None,
    node: listing.OfNode = None,
    reason: listing.Reason = None,
    cluster: listing.Cluster = None,
    kind: listing.OfType = None,
    since: listing.Since = None,
    until: listing.Until = None,
    grep: listing.Grep = None,
    limit: listing.Limit = 50,
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
    from reconciler.cli.get import get_events
    from reconciler.queries.event_search import Filter

    wanted = Filter(slice_, gpr, node, cluster, reason, type=None if kind is None else str(kind), text=grep)
    get_events(repo, wanted, (since, until), limit, ListOptions(output, is_watched=watch))


def problems(repo: Repo = None, watch: Watch = False, output: listing.Output = GetForm.TABLE) -> None:
    """List what is wrong with the documents; `egs validate` says the same and exits 1.

    \b
    Example:
      egs get problems
    """
    from reconciler.cli.get import get_problems

    get_problems(repo, ListOptions(output, is_watched=watch))


def workloads(
    names: Names = None,
    slice_: listing.Slice = None,
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
    from reconciler.cli.get import get_workloads

    get_workloads(repo, now, slice_, ListOptions(output, names, watch))


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
    from reconciler.queries.details import describe_gpr as run

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
    from reconciler.queries.details import describe_slice as run

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
    from reconciler.queries.workspace_requests import describe_request as run

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
    from reconciler.queries.details import describe_cluster as run

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
    from reconciler.queries.details import describe_node as run

    run(repo, now, name, output)
