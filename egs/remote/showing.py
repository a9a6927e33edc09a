"""`egs get …` and `egs describe …` on a server. What a row holds is documented in docs/commands.md."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from egs.remote import asking, output
from egs.remote.errors import wrong_use
from egs.remote.options import Cluster, Request, Slice
from egs.remote.output import Column, Form, Output, Row, at, field, key, place

_ALL = (
    "List GPRs, slices, requests for slices, clusters, nodes, the queue, events, problems or workloads."
    "\n\n\b\nExample:\n  egs get queue"
)


class Kind(StrEnum):
    """Of events."""

    NORMAL = "Normal"
    WARNING = "Warning"


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    get = typer.Typer(help=_ALL, short_help="List things of one kind.", no_args_is_help=True)
    get.command("gprs", short_help="Requests, in every phase.")(gprs)
    get.command("slices", short_help="Slices, with what they hold and used.")(slices)
    get.command("clusters", short_help="Clusters, their freshness and pools.")(clusters)
    get.command("nodes", short_help="Nodes, with state, lease and schedule.")(nodes)
    get.command("requests", short_help="Slices that people asked for.")(requests)
    get.command("queue", short_help="Who waits, in order, and how long.")(queue)
    get.command("events", short_help="What happened, newest first.")(events)
    get.command("problems", short_help="What is wrong with the documents.")(problems)
    get.command("workloads", short_help="What runs on requests' nodes, on a server.")(workloads)
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


_GPRS: tuple[Column, ...] = (
    ("REQUEST", key),
    ("PHASE", field("phase")),
    ("PRIORITY", field("priority")),
    ("NODES", lambda row: f"{row['nodes']} x {row['gpusPerNode']}"),
    ("SHAPE", lambda row: row["gpuShapes"] or "any"),
    ("DURATION", field("duration")),
    ("START", lambda row: output.time(row["startTime"] or row["estimatedStartTime"])),
    ("END", lambda row: output.time(row["endTime"] or row["estimatedEndTime"])),
    ("WHERE", place),
    ("REASON", field("reason")),
    ("COST", field("cost")),
)


def gprs(
    slice_: Slice = None,
    phase: Annotated[
        str | None,
        typer.Option(metavar="PHASE", help="Only in this phase, for example Queued.", show_default=False),
    ] = None,
    output: Output = Form.TABLE,
) -> None:
    """List requests, in every phase.

    \b
    Example:
      egs get gprs --slice vision --phase Provisioned
    """
    found = asking.pages("tables/gprs", {"sliceName": slice_, "phase": phase})
    _rows(found, output, _GPRS, "no request")


_SLICES: tuple[Column, ...] = (
    ("SLICE", field("name")),
    ("CLUSTERS", field("clusters")),
    ("QUOTA", lambda row: "none" if row["quotaGpus"] is None else row["quotaGpus"]),
    ("WAITING", field("waiting")),
    ("HOLDING", field("holding")),
    ("GPUS HELD", field("gpusHeld")),
    ("GPU HOURS", field("gpuHours")),
    ("COST", lambda row: f"{row['cost']:g} {row['currency']}"),
)


def slices(output: Output = Form.TABLE) -> None:
    """List slices, with what they wait for, hold, used and spent.

    \b
    Example:
      egs get slices
    """
    _rows(asking.pages("tables/slices"), output, _SLICES, "no slice")


_POOLS: tuple[Column, ...] = (
    ("CLUSTER", field("name")),
    ("MODE", field("mode")),
    ("ANSWERS", lambda row: "unknown" if row["reachable"] is None else row["reachable"]),
    ("SINCE", at("since")),
    ("STATUS OF", at("statusTime")),
    ("POOL", lambda row: row["pool"]["name"]),
    ("SHAPE", lambda row: f"{row['pool']['gpusPerNode']} x {row['pool']['gpuShape']}"),
    ("NODES", lambda row: row["pool"]["nodes"]),
    ("LEASED", lambda row: row["pool"]["leased"]),
    ("FREE", lambda row: row["pool"]["free"]),
    ("OUT", lambda row: row["pool"]["out"]),
)


def clusters(output: Output = Form.TABLE) -> None:
    """List clusters and their pools: whether they answer, since when, and how fresh the status is.

    \b
    Example:
      egs get clusters
    """
    found = asking.pages("tables/clusters")
    if output is Form.TABLE:
        found = [{**row, "pool": pool} for row in found for pool in row["pools"]]
    _rows(found, output, _POOLS, "no cluster")


_NODES: tuple[Column, ...] = (
    ("NODE", lambda row: f"{row['cluster']}/{row['name']}"),
    ("POOL", field("pool")),
    ("STATE", field("state")),
    ("REASON", lambda row: row["reason"] or (row["message"] if row["pool"] is None else None)),
    ("LEASE", field("lease")),
    ("UNTIL", lambda row: _until(row)),
    ("NEXT", lambda row: _next(row)),
)


def _until(row: Row) -> Any:
    ends = [entry["end"] for entry in row["schedule"] if entry["request"] == row["lease"] is not None]
    return output.time(ends[0]) if ends else None


def _next(row: Row) -> str | None:
    later = [e for e in row["schedule"] if e["request"] is None or e["request"] != row["lease"]]
    if not later:
        return None
    likely = " (likely)" if later[0]["tentative"] else ""
    begin = output.shown(output.time(later[0]["begin"]))
    return f"{later[0]['request'] or 'maintenance'}{likely} at {begin}"


def nodes(
    cluster: Cluster = None,
    pool: Annotated[str | None, typer.Option(metavar="P", help="Only this pool.", show_default=False)] = None,
    output: Output = Form.TABLE,
) -> None:
    """List nodes: state, who has them until when, and who is likely to be next.

    \b
    Example:
      egs get nodes --cluster east -o json
    """
    _rows(asking.pages("tables/nodes", {"cluster": cluster, "pool": pool}), output, _NODES, "no node")


_REQUESTS: tuple[Column, ...] = (
    ("SLICE", field("name")),
    ("PHASE", field("phase")),
    ("SINCE", at("since")),
    ("REQUESTER", field("requester")),
    ("CLUSTERS", field("clusters")),
    ("NAMESPACES", field("namespaces")),
    ("QUOTA", lambda row: "none" if row["quotaGpus"] is None else row["quotaGpus"]),
    ("REASON", field("reason")),
)


def requests(output: Output = Form.TABLE) -> None:
    """List slices that people asked for, and what became of each.

    \b
    Example:
      egs get requests
    """
    _rows(asking.pages("tables/requests"), output, _REQUESTS, "nobody asks for a slice")


_QUEUE: tuple[Column, ...] = (
    ("RANK", field("rank")),
    ("POSITION", field("position")),
    ("REQUEST", key),
    ("PHASE", field("phase")),
    ("PRIORITY", field("priority")),
    ("NODES", field("nodes")),
    ("START", at("estimatedStartTime")),
    ("WAIT", lambda row: output.seconds(row["estimatedWaitSeconds"])),
    ("WHERE", place),
    ("MOVED", lambda row: row["delayedCount"] or None),
    ("REASON", field("reason")),
)


def queue(slice_: Slice = None, output: Output = Form.TABLE) -> None:
    """List who waits, in rank order: position in the pool, promised start, time until then.

    \b
    Example:
      egs get queue --slice vision
    """
    found = [without_id(row) for row in asking.pages("queue", {"sliceName": slice_})]
    _rows(found, output, _QUEUE, "nobody waits")


def without_id(row: Row) -> dict[str, Any]:
    """The row as a repository has it, where requests are named and have no id."""
    return {name: value for name, value in row.items() if name != "gprId"}


_EVENTS: tuple[Column, ...] = (
    ("AT", at("at")),
    ("REASON", field("reason")),
    ("TYPE", field("type")),
    (
        "ABOUT",
        lambda row: row["request"] or (f"{row['cluster']}/{row['node']}" if row["node"] else row["cluster"]),
    ),
    ("MESSAGE", field("message")),
)


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
    cluster: Cluster = None,
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
    output: Output = Form.TABLE,
) -> None:
    """List what happened, newest first.

    \b
    Examples:
      egs get events --gpr vision/train --reason GPRDelayed
      egs get events --since 2h --grep h100-7
    """
    about = {"slice": slice_, "gpr": gpr, "node": node, "cluster": cluster, "reason": reason}
    when = {"type": kind, "q": grep, "since": since, "until": until}
    _rows(asking.pages("events", {**about, **when}, limit), output, _EVENTS, "no such event")


_PROBLEMS: tuple[Column, ...] = (
    ("WHERE", lambda row: f"{row['file']}:{row['line']}:{row['column']}"),
    ("SEVERITY", field("severity")),
    ("RULE", field("rule")),
    ("PROBLEM", field("message")),
    ("WHAT TO DO", field("fix")),
)


def problems(output: Output = Form.TABLE) -> None:
    """List what is wrong with the documents. For admins.

    \b
    Example:
      egs get problems
    """
    _rows(asking.pages("problems"), output, _PROBLEMS, "nothing is wrong")


_WORKLOADS: tuple[Column, ...] = (
    ("REQUEST", field("name")),
    ("PHASE", field("phase")),
    ("MODEL", lambda row: row["model"]["name"]),
    ("WHERE", lambda row: f"{row['clusterName']}/{row['pool']}"),
    ("NODES", lambda row: [node["name"] for node in row["nodes"]]),
    ("GPUS", lambda row: f"{row['numGPUs']} x {row['gpuShape']}" if row["gpuShape"] else row["numGPUs"]),
    ("HEALTHY", lambda row: row["failedChecks"] or row["healthy"]),
    ("IDLE", lambda row: output.seconds(row["idleSeconds"]) if row["idleSince"] else None),
    ("START", at("startTime")),
    ("END", at("endTime")),
    ("COST", field("cost")),
)


def workloads(slice_: Slice = None, output: Output = Form.TABLE) -> None:
    """List what runs on requests' nodes: model, GPUs, health, idleness, cost. On a server.

    \b
    Example:
      egs get workloads --slice vision
    """
    _rows(asking.pages("workloads", {"sliceName": slice_}), output, _WORKLOADS, "nothing runs")


def describe_gpr(request: Request, output: Output = Form.TABLE) -> None:
    """Show a request: why it stands where it does, its checks with their logs, its slips, its cost.

    \b
    Example:
      egs describe gpr vision/train
    """
    _page(asking.get("tables/gpr", {"name": named(request)}), output)


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
_rows, _page = output.rows, output.page
