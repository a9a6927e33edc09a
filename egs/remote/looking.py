"""Commands that ask and change nothing, on a server: plan, wait, why, insights."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from egs.commands import options, output
from egs.commands.options import Output, Request
from egs.commands.output import Column, Form, Row, at, field, place
from egs.remote import asking
from egs.remote.server import named, without_id


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    app.command("plan", short_help="Show the schedule.")(plan)
    app.command("wait", short_help="Quote a start before filing.")(wait)
    app.command("why", short_help="Say what a request waits for.")(why)
    app.command("insights", short_help="Show demand, waits, use and how good estimates were.")(insights)


_PLAN: tuple[Column, ...] = (
    ("RANK", field("rank")),
    ("REQUEST", output.key),
    ("PHASE", field("phase")),
    ("START", at("estimatedStartTime")),
    ("WAIT", lambda row: output.seconds(row["estimatedWaitSeconds"])),
    ("END", at("estimatedEndTime")),
    ("WHERE", place),
    ("NODES", field("nodes")),
    ("REASON", field("reason")),
)


def plan(output: Output = Form.TABLE) -> None:
    """Show the schedule: who holds which nodes, who starts when, who is refused and why.

    \b
    Example:
      egs plan

    On a server: main as it is there, without the requests of slices that you may not see.
    """
    found = asking.get("plan")
    content = {
        **found,
        **{part: [without_id(row) for row in found[part]] for part in ("requests", "refused")},
    }
    if output is not Form.TABLE:
        _data(content, output)
        return
    _rows(content["requests"], output, _PLAN, "no request waits or runs")
    for row in content["refused"]:
        fits = f"; would fit: {row['wouldFit']}" if row.get("wouldFit") else ""
        _note(f"{row['slice']}/{row['name']} is not planned ({row['reason']}): {row['message']}{fits}")


_WAIT: tuple[Column, ...] = (
    ("CLUSTER", field("cluster")),
    ("POOL", field("pool")),
    ("SHAPE", field("gpuShape")),
    ("GPUS", field("gpusPerNode")),
    ("FREE NODES", field("freeNodes")),
    ("START", at("estimatedStartTime")),
    ("WAIT", lambda row: output.seconds(row["estimatedWaitSeconds"])),
    ("APPROVAL", lambda row: "needed" if row["needsApproval"] else None),
    ("PRICE/GPU/H", field("pricePerGpuHour")),
    ("REASON", field("reason")),
)


def wait(  # noqa: PLR0913 - each is an option of the command
    slice_: Annotated[str, typer.Option("--slice", metavar="S", help="The slice that asks.")],
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="Whole GPU nodes.")],
    duration: Annotated[str, typer.Option(metavar="D", help="How long: 6h, 90m, 0d6h0m.")],
    gpus_per_node: Annotated[
        int, typer.Option("--gpus-per-node", min=1, metavar="G", help="GPUs each node has at least.")
    ] = 1,
    shape: options.Shapes = None,
    memory: options.Memory = None,
    cluster: options.Clusters = None,
    priority: Annotated[int, typer.Option(min=1, max=300, metavar="P", help="1 to 300.")] = 101,
    rdma: options.Rdma = False,
    not_before: options.NotBefore = None,
    prefer: options.Prefer = None,
    output: Output = Form.TABLE,
) -> None:
    """Quote when a request would start, in each pool it could use, without filing it.

    \b
    Example:
      egs wait --slice vision --nodes 2 --gpus-per-node 8 --duration 6h
      egs gpr create vision/train --nodes 2 --gpus-per-node 8 --duration 6h --shape H100-80GB

    Exit 1 when there is no start anywhere; the sentence on stderr says why.
    """
    size = {"numberOfGPUNodes": nodes, "numberOfGPUs": gpus_per_node, "memoryPerGPU": memory}
    kind = {"gpuShape": shape or None, "preferredClusters": cluster or None, "enableRDMA": rdma or None}
    term = {"exitDuration": duration, "priority": priority, "notBefore": not_before, "prefer": prefer}
    items, notes = quoted({"sliceName": slice_, **size, **kind, **term})
    if items or output is not Form.TABLE:
        _rows([quote_row(item) for item in items], output, _WAIT, "")
    for sentence in notes:
        _note(sentence)
    raise typer.Exit(0 if any(item["estimatedStartTime"] for item in items) else 1)


def quoted(wish: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The server's answers, one for each pool, the earliest first; and in sentences why there is no start."""
    told = asking.told("POST", "gpr/waittime", wish)
    items: list[dict[str, Any]] = told.data["items"]
    refused = [item for item in items if not item["estimatedStartTime"]]
    # What holds for the whole wish is told once and not for each pool again.
    alone = [item for item in refused if item["message"] not in told.message]
    by_pool = [f"{item['clusterName']}/{item['pool']}: {item['message']}" for item in alone]
    return items, [*([told.message] if told.message else []), *by_pool]


def quote_row(item: Row) -> dict[str, Any]:
    """A row of `egs wait -o json`."""
    row = {
        "cluster": item["clusterName"],
        "pool": item["pool"],
        "gpuShape": item["gpuShape"],
        "gpusPerNode": item["gpusPerNode"],
        "memoryPerGpu": item["memoryPerGPU"],
        "freeNodes": item["freeNodes"],
        "estimatedStartTime": item["estimatedStartTime"] or None,
        "estimatedWaitSeconds": item["estimatedWaitSeconds"],
        "needsApproval": item["needsApproval"],
        "pricePerGpuHour": item["pricePerGpuHour"],
        "reason": item["reason"] or None,
    }
    return row | ({"forecast": item["forecast"]} if item.get("forecast") else {})


def why(request: Request, output: Output = Form.TABLE) -> None:
    """Say in sentences what a request waits for, and why its start moved.

    \b
    Example:
      egs why vision/llama-finetune
    """
    found = without_id(asking.get("gpr/why", {"gprId": named(request)}))
    if output is not Form.TABLE:
        _data(found, output)
        return
    for sentence in found["reasons"]:
        _text(sentence)
    for one in found["alternatives"]:
        _text(f"It would start at {_shown(one['estimatedStartTime'])} with {one['field']}: {one['value']}.")


def _shown(value: str) -> str:
    return output.shown(output.time(value))


_INSIGHTS: tuple[Column, ...] = (
    ("WHAT", field("what")),
    ("REQUESTS", field("requests")),
    ("RAN", field("ran")),
    ("GPU-H ASKED", field("askedGpuHours")),
    ("GPU-H USED", field("usedGpuHours")),
    ("MEAN WAIT", lambda row: _spoken(row["meanWaitSeconds"])),
    ("P50", lambda row: _spoken(row["p50WaitAtMostSeconds"])),
    ("P90", lambda row: _spoken(row["p90WaitAtMostSeconds"])),
    ("SLIPPED", field("slipped")),
)


def _spoken(wait_s: float | None) -> str | None:
    return None if wait_s is None else output.shown(output.seconds(int(wait_s)))


def insights(
    days: Annotated[
        int, typer.Option(metavar="N", min=1, max=92, help="Days that are shown one by one.")
    ] = 14,
    output: Output = Form.TABLE,
) -> None:
    """Show what requests that are over have shown: demand, waits, utilisation, how good estimates were, and why
    promises moved; by shape, slice, hour and day.

    \b
    Examples:
      egs insights
      egs insights --days 30 -o json
    """
    found = asking.get("insights", {"days": days})
    if output is not Form.TABLE:
        _data(found, output)
        return
    parts = ("byShape", "bySlice", "byHour", "byDay")
    rows = [{"what": name, **tally} for part in parts for name, tally in found.get(part, {}).items()]
    _rows([*rows, {"what": "all", **found["total"]}], output, _INSIGHTS, "")


# The commands call their option `output`, as those on a repository do; the module of that name is meant here.
_rows, _data, _note, _text = output.rows, output.data, output.note, output.text
