"""`egs get …` and `egs describe …`: a command for each kind, made from a table. Columns: `egs.commands.kinds`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import typer

from egs.commands import kinds, listing, output
from egs.commands.backend import Backend
from egs.commands.declare import LOOKS, READS, READS_NOW, READS_THEN, Place, add, group, parameter
from egs.commands.kinds import SINGULAR, Kind
from egs.commands.listing import GetForm, ListOptions
from egs.commands.options import Output, argument, option
from egs.commands.output import Form
from egs.commands.running import gpu_kinds
from egs.commands.timelines import calendar


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


GetOutput = Annotated[GetForm, typer.Option("--output", "-o", help="Output format; wide: more columns.")]
Watch = Annotated[
    bool, typer.Option("--watch", "-w", help="Then print each row again when it changes, until Ctrl-C.")
]
Checks = Annotated[
    bool, typer.Option("--checks", help="Only the checks of its nodes, each with its value and log.")
]
Slice = Annotated[str | None, option("--slice", metavar="S", help="Only this slice.")]
Cluster = Annotated[str | None, option(metavar="C", help="Only this cluster.")]
Pool = Annotated[str | None, option(metavar="P", help="Only this pool.")]
PhaseName = Annotated[
    str | None, option("--phase", metavar="PHASE", help="Only in this phase, for example Queued.")
]
OfRequest = Annotated[str | None, option("--gpr", metavar="[SLICE/]GPR", help="Only this request.")]
OfNode = Annotated[str | None, option("--node", metavar="[CLUSTER/]NODE", help="Only this node.")]
Reason = Annotated[
    str | None,
    option("--reason", metavar="REASON", help="Only events with this reason, for example GPRDelayed."),
]
OfType = Annotated[EventType | None, option("--type", help="Only warnings, or only normal events.")]
Since = Annotated[str | None, option("--since", metavar="TIME", help="From this time on; 2h: two hours ago.")]
Until = Annotated[str | None, option("--until", metavar="TIME", help="Before this time, or this long ago.")]
Grep = Annotated[
    str | None, option("--grep", metavar="TEXT", help="Only rows with this text; case is ignored.")
]
OneShape = Annotated[str | None, option("--shape", metavar="X", help="Only this GPU shape.")]
Hours = Annotated[int, typer.Option("--hours", min=1, max=336, metavar="N", help="Hours to look ahead.")]
Hot = Annotated[bool, typer.Option("--hot", help="Only hot spots: at a limit, or slowed down by heat.")]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Most rows to print.")]
Names = Annotated[list[str] | None, argument(metavar="NAME", help="Only these. Default: all.")]


@dataclass(frozen=True, slots=True)
class Listed:
    """One command of `egs get`: short help, help, examples, and its filters by name."""

    kind: Kind
    short: str
    about: str
    examples: tuple[str, ...]
    filters: Mapping[str, Any] = field(default_factory=dict)
    place: Place = READS_THEN
    has_names: bool = True


LISTS: Mapping[str, Listed] = {
    "gprs": Listed(
        kinds.GPRS,
        "Requests, in every phase.",
        "List requests, in every phase.",
        ("gprs --slice vision --phase Provisioned",),
        {"slice": Slice, "phase": PhaseName},
    ),
    "slices": Listed(
        kinds.SLICES,
        "Slices, with what they hold and used.",
        "List slices, with what they wait for, hold, used and spent.",
        ("slices",),
    ),
    "clusters": Listed(
        kinds.CLUSTERS,
        "Clusters, their freshness and pools.",
        "List clusters and their pools: whether they answer, since when, and how fresh the status is.",
        ("clusters",),
    ),
    "nodes": Listed(
        kinds.NODES,
        "Nodes, with state, lease and schedule.",
        "List nodes: state, current lease and its end, and the likely next request.",
        ("nodes --cluster east -o json",),
        {"cluster": Cluster, "pool": Pool},
    ),
    "capacity": Listed(
        gpu_kinds.CAPACITY,
        "Free nodes by shape and hour.",
        "List how many nodes of each shape are free in each coming hour: by the plan, and if requests end when they "
        "likely do.",
        ("capacity --shape H100-80GB --hours 12",),
        {"shape": OneShape, "cluster": Cluster, "hours": Hours},
        has_names=False,
    ),
    "requests": Listed(
        kinds.REQUESTS,
        "Slices that people asked for.",
        "List slices that people asked for, and the state of each.",
        ("requests",),
        place=READS,
    ),
    "jobs": Listed(
        kinds.JOBS,
        "Workloads that slices filed, with their objects.",
        "List workloads: what was filed to run on requests' nodes, and the state of each object. For everything that "
        "runs there, filed or not: `egs get workloads`.",
        ("jobs --slice vision",),
        {"slice": Slice},
    ),
    "endpoints": Listed(
        kinds.ENDPOINTS,
        "Served models, with their versions.",
        "List endpoints: where each is served, and how its traffic is shared between its versions.",
        ("endpoints --slice vision",),
        {"slice": Slice},
    ),
    "queue": Listed(
        kinds.QUEUE,
        "Waiting requests, in order, with their starts.",
        "List waiting requests in rank order: position in the pool, promised start, time until then.",
        ("queue --slice vision",),
        {"slice": Slice},
    ),
    "events": Listed(
        kinds.EVENTS,
        "What happened, newest first.",
        "List what happened, newest first.",
        ("events --gpr vision/train --reason GPRDelayed", "events --since 2h --grep h100-7"),
        {
            "slice": Slice,
            "gpr": OfRequest,
            "node": OfNode,
            "reason": Reason,
            "cluster": Cluster,
            "type": OfType,
            "since": Since,
            "until": Until,
            "grep": Grep,
            "limit": Limit,
        },
        READS_NOW,
        has_names=False,
    ),
    "problems": Listed(
        kinds.PROBLEMS,
        "Problems of the documents.",
        "List problems of the documents; `egs validate` reports the same and exits 1. On a server for admins.",
        ("problems",),
        place=READS_NOW,
        has_names=False,
    ),
    "workloads": Listed(
        kinds.WORKLOADS,
        "What runs on requests' nodes.",
        "List what runs on requests' nodes: Jobs and services, models, use, hottest GPU, health, cost so far.",
        ("workloads --slice vision",),
        {"slice": Slice},
        LOOKS,
    ),
    "gpus": Listed(
        gpu_kinds.GPUS,
        "GPUs, the hottest first.",
        "List GPUs by closeness to their own limits: who has them, use, temperature, power, memory, faults.",
        ("gpus --hot", "gpus --node east/h100-1 -o wide", "gpus --grep llama"),
        {"slice": Slice, "cluster": Cluster, "node": OfNode, "grep": Grep, "hot": Hot},
        LOOKS,
    ),
    "alerts": Listed(
        gpu_kinds.ALERTS,
        "What is wrong with GPUs now.",
        "List what is wrong with GPUs now, the most severe first; -o wide says what to do.",
        ("alerts --slice vision",),
        {"slice": Slice, "cluster": Cluster},
        LOOKS,
        has_names=False,
    ),
}
_DEFAULTS: Mapping[str, Any] = {"limit": 50, "hot": False, "hours": 24}


@dataclass(frozen=True, slots=True)
class Described:
    """One command of `egs describe`: short help, help, examples, and its argument."""

    short: str
    about: str
    examples: tuple[str, ...]
    metavar: str
    what: str = "The slice's name."
    place: Place = READS_THEN


WHOLES: Mapping[str, Described] = {
    "gpr": Described(
        "A request: checks, slips, cost.",
        "Show a request: why it stands where it does, its checks with their logs, its slips, its cost.",
        ("gpr vision/train", "gpr vision/train --checks"),
        "SLICE/GPR",
        "The request.",
    ),
    "slice": Described(
        "A slice: bounds, requests, usage.",
        "Show a slice: its people and bounds, its requests, what it used in each month.",
        ("slice vision",),
        "SLICE",
    ),
    "request": Described(
        "A slice that a person asked for.",
        "Show a slice that a person asked for: what for, how it stands, and what to do next.",
        ("request nlp",),
        "SLICE",
        place=READS,
    ),
    "job": Described(
        "A workload: its objects and their states.",
        "Show a workload: where it runs, the state of each of its objects and why, and what happened.",
        ("job vision/finetune",),
        "SLICE/NAME",
        "The workload.",
    ),
    "endpoint": Described(
        "A served model: versions, weights, objects.",
        "Show an endpoint: where it is served, its versions with weights and ready replicas, its objects, and what "
        "happened.",
        ("endpoint vision/captions",),
        "SLICE/NAME",
        "The endpoint.",
    ),
    "cluster": Described(
        "A cluster: pools and schedule.",
        "Show a cluster: its pools, how fresh its status is, and which requests have its nodes when.",
        ("cluster east",),
        "CLUSTER",
    ),
    "node": Described(
        "A node: state, GPUs, calendar.",
        "Show a node: its state and why, its GPUs as last reported, and which requests have it when.",
        ("node east/h100-1",),
        "CLUSTER/NODE",
        "Its cluster and name.",
    ),
}


def register(app: typer.Typer) -> None:
    get = group(
        app,
        "get",
        "List things of one kind.",
        "List GPRs, slices, requests for slices, clusters, nodes, GPUs, the queue, events, alerts, problems, "
        "workloads, jobs, endpoints.\n\n\b\nExample:\n  egs get queue",
    )
    for name, listed in LISTS.items():
        _add_list(get, name, listed)
    calendar.register(get)
    describe = group(
        app,
        "describe",
        "Show everything about one thing.",
        "Show everything about one thing.\n\n\b\nExample:\n  egs describe gpr vision/train",
    )
    for name, described in WHOLES.items():
        _add_whole(describe, name, described)


def _add_list(app: typer.Typer, name: str, listed: Listed) -> None:
    def get(
        backend: Backend, watch: bool, output: GetForm, names: list[str] | None = None, **filters: Any
    ) -> None:
        spread = kinds.by_pool if listed.kind is kinds.CLUSTERS else list
        listing.answer(
            listed.kind, lambda: backend.rows(name, filters), ListOptions(output, names, watch), spread
        )

    typed = [
        *([parameter("names", Names)] if listed.has_names else []),
        *(parameter(one, hint, _DEFAULTS.get(one)) for one, hint in listed.filters.items()),
        parameter("watch", Watch, False),
        parameter("output", GetOutput, GetForm.TABLE),
    ]
    words = (name, listed.short, _help("get", listed.about, listed.examples))
    add(app, words, get, typed, listed.place, *_other(name))


def _add_whole(app: typer.Typer, name: str, described: Described) -> None:
    def describe(backend: Backend, thing: str, form: Form, checks: bool = False) -> None:
        found = backend.whole(name, thing)
        if checks:
            listing.checks(found, form)
        else:
            output.page(found, form)

    thing = argument(metavar=described.metavar, help=described.what)
    typed = [
        parameter("thing", Annotated[str, thing], inspect.Parameter.empty),
        *([parameter("checks", Checks, False)] if name == "gpr" else []),
        parameter("form", Output, Form.TABLE),
    ]
    words = (name, described.short, _help("describe", described.about, described.examples))
    add(app, words, describe, typed, described.place, *_other(name))


def _help(group_name: str, about: str, examples: tuple[str, ...]) -> str:
    head = "Example:" if len(examples) == 1 else "Examples:"
    return "\n".join((about, "", "\b", head, *(f"  egs {group_name} {one}" for one in examples)))


def _other(name: str) -> tuple[str, ...]:
    """The plural of a singular, or the reverse: people type either."""
    other = {**SINGULAR, **{singular: plural for plural, singular in SINGULAR.items()}}
    return (other[name],) if name in other else ()
