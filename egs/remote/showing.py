"""`egs get …` and `egs describe …` on a server. What a row holds is documented in docs/commands.md."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from egs import kinds, listing
from egs.listing import GetForm, ListOptions, Names, Watch
from egs.remote import asking, output
from egs.remote.errors import wrong_use
from egs.remote.options import Request
from egs.remote.output import Form, Output, Row


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


def gprs(
    names: Names = None,
    slice_: listing.Slice = None,
    phase: listing.PhaseName = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List requests, in every phase.

    \b
    Example:
      egs get gprs --slice vision --phase Provisioned
    """
    asked = ListOptions(output, names, watch)
    _answer(kinds.GPRS, lambda: asking.pages("tables/gprs", {"sliceName": slice_, "phase": phase}), asked)


def slices(names: Names = None, watch: Watch = False, output: listing.Output = GetForm.TABLE) -> None:
    """List slices, with what they wait for, hold, used and spent.

    \b
    Example:
      egs get slices
    """
    _answer(kinds.SLICES, lambda: asking.pages("tables/slices"), ListOptions(output, names, watch))


def clusters(names: Names = None, watch: Watch = False, output: listing.Output = GetForm.TABLE) -> None:
    """List clusters and their pools: whether they answer, since when, and how fresh the status is.

    \b
    Example:
      egs get clusters
    """
    asked = ListOptions(output, names, watch)
    _answer(kinds.CLUSTERS, lambda: asking.pages("tables/clusters"), asked, kinds.by_pool)


def nodes(
    names: Names = None,
    cluster: listing.Cluster = None,
    pool: listing.Pool = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List nodes: state, who has them until when, and who is likely to be next.

    \b
    Example:
      egs get nodes --cluster east -o json
    """
    asked = ListOptions(output, names, watch)
    _answer(kinds.NODES, lambda: asking.pages("tables/nodes", {"cluster": cluster, "pool": pool}), asked)


def requests(names: Names = None, watch: Watch = False, output: listing.Output = GetForm.TABLE) -> None:
    """List slices that people asked for, and what became of each.

    \b
    Example:
      egs get requests
    """
    _answer(kinds.REQUESTS, lambda: asking.pages("tables/requests"), ListOptions(output, names, watch))


def queue(
    names: Names = None,
    slice_: listing.Slice = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List who waits, in rank order: position in the pool, promised start, time until then.

    \b
    Example:
      egs get queue --slice vision
    """
    asked = ListOptions(output, names, watch)
    _answer(kinds.QUEUE, lambda: [without_id(r) for r in asking.pages("queue", {"sliceName": slice_})], asked)


def without_id(row: Row) -> dict[str, Any]:
    """The row as a repository has it, where requests are named and have no id."""
    return {name: value for name, value in row.items() if name != "gprId"}


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
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List what happened, newest first.

    \b
    Examples:
      egs get events --gpr vision/train --reason GPRDelayed
      egs get events --since 2h --grep h100-7
    """
    about = {"slice": slice_, "gpr": gpr, "node": node, "cluster": cluster, "reason": reason}
    when = {"type": kind, "q": grep, "since": since, "until": until}
    asked = ListOptions(output, is_watched=watch)
    _answer(kinds.EVENTS, lambda: asking.pages("events", {**about, **when}, limit), asked)


def problems(watch: Watch = False, output: listing.Output = GetForm.TABLE) -> None:
    """List what is wrong with the documents. For admins.

    \b
    Example:
      egs get problems
    """
    _answer(kinds.PROBLEMS, lambda: asking.pages("problems"), ListOptions(output, is_watched=watch))


def workloads(
    names: Names = None,
    slice_: listing.Slice = None,
    watch: Watch = False,
    output: listing.Output = GetForm.TABLE,
) -> None:
    """List what runs on requests' nodes: model, GPUs, health, idleness, cost so far.

    \b
    Example:
      egs get workloads --slice vision
    """
    asked = ListOptions(output, names, watch)
    _answer(kinds.WORKLOADS, lambda: asking.pages("workloads", {"sliceName": slice_}), asked)


def describe_gpr(request: Request, checks: listing.Checks = False, output: Output = Form.TABLE) -> None:
    """Show a request: why it stands where it does, its checks with their logs, its slips, its cost.

    \b
    Examples:
      egs describe gpr vision/train
      egs describe gpr vision/train --checks
    """
    found = asking.get("tables/gpr", {"name": named(request)})
    if checks:
        listing.checks(found, output)
    else:
        _page(found, output)


def describe_slice(
    name: Annotated[str, typer.Argument(metavar="SLICE", help="Its name.")], output: Output = Form.TABLE
) -> None:
    """Show a slice: its people and bounds, its requests, what it used in each month.

    \b
    Example:
      egs describe slice vision
    """
    _page(asking.get("tables/slice", {"name": name}), output)


def describe_request(
    name: Annotated[str, typer.Argument(metavar="SLICE", help="Its name.")], output: Output = Form.TABLE
) -> None:
    """Show a slice that somebody asked for: what for, how it stands, and what to do next.

    \b
    Example:
      egs describe request nlp
    """
    _page(asking.get("tables/request", {"name": name}), output)


def describe_cluster(
    name: Annotated[str, typer.Argument(metavar="CLUSTER", help="Its name.")], output: Output = Form.TABLE
) -> None:
    """Show a cluster: its pools, how fresh its view is, who has how many nodes when.

    \b
    Example:
      egs describe cluster east
    """
    _page(asking.get("tables/cluster", {"name": name}), output)


def describe_node(
    name: Annotated[str, typer.Argument(metavar="CLUSTER/NODE", help="Its cluster and name.")],
    output: Output = Form.TABLE,
) -> None:
    """Show a node: its state and why, its GPUs as last reported, who has it when.

    \b
    Example:
      egs describe node east/h100-1
    """
    _page(asking.get("tables/node", {"name": name}), output)


def named(request: str) -> str:
    """The request as the server names it. Raises Said where it is no SLICE/GPR."""
    if request.count("/") != 1 or not all(request.split("/")):
        raise wrong_use(f"{request} names no request; write SLICE/GPR, for example vision/train")
    return request


# The commands call their option `output`, as those on a repository do; the module of that name is meant here.
_answer, _page = listing.answer, output.page
