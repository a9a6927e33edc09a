"""`egs advise`: nodes by hour, by when to file for them, and the requests that do so."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from egs.commands import options, output
from egs.commands.backend import Backend
from egs.commands.declare import ASKS_OF_METRICS, declare
from egs.commands.errors import wrong_use
from egs.commands.options import option
from egs.commands.output import Column, Form, Row, at, field

MOST_PROPOSED = 10
"""Requests that one `--propose` files: more needs a look at each."""


def register(app: typer.Typer) -> None:
    about = "Say how many nodes a slice will need, and by when to file."
    declare(app, "advise", about, advise, ASKS_OF_METRICS)


HOURS: tuple[Column, ...] = (
    ("FROM", at("begin")),
    ("EXPECTED", field("expected")),
    ("NODES", field("nodes")),
    ("KNOWN", field("known")),
    ("MISSING", lambda row: row["missing"] or None),
    ("FILE BY", at("fileBy")),
    ("", lambda row: "provisional" if row["provisional"] else None),
)
PROPOSALS: tuple[Column, ...] = (
    ("REQUEST", field("name")),
    ("NODES", field("nodes")),
    ("FROM", at("notBefore")),
    ("FOR", field("duration")),
    ("FILE BY", at("fileBy")),
)


def advise(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    about: Annotated[
        str,
        options.argument(metavar="SLICE[/ENDPOINT]", help="The slice, or one of its endpoints."),
    ],
    hours: Annotated[int, option("--hours", min=1, max=168, metavar="N", help="Hours to look ahead.")] = 24,
    patience: Annotated[
        str,
        option(
            "--patience", metavar="D", help="Price of waiting: after so long it has cost as much as the work."
        ),
    ] = "1h",
    cold_start: Annotated[
        str, option("--cold-start", metavar="D", help="From a lease's start until its work runs: 10m.")
    ] = "10m",
    gpus_per_node: Annotated[
        int | None,
        option(
            "--gpus-per-node",
            min=1,
            metavar="G",
            help="GPUs each node has at least; default 1, for an endpoint those of its request.",
        ),
    ] = None,
    shape: options.Shapes = None,
    priority: Annotated[
        int, option("--priority", min=1, max=300, metavar="P", help="Of requests that --propose files.")
    ] = 101,
    propose: Annotated[
        bool, option("--propose", help="File requests for the missing nodes that must be filed by now.")
    ] = False,
    output: options.Output = Form.TABLE,
) -> None:
    """Say how many nodes a slice will need in the next hours, and by when to file for those that are missing.

    \b
    Examples:
      egs advise vision
      egs advise vision --hours 48 --patience 30m -o json
      egs advise vision --gpus-per-node 8 --propose
      egs advise vision/captions

    It learns from the slice's own use of the last two weeks, or from what an endpoint served in them, over the lead
    of a new request (the promised wait and --cold-start), and says when a plain threshold does as well. --propose
    files the requests that cannot be filed later, as `egs gpr create` does: as a pull request unless you say --push;
    a server does it as the project says.
    """
    terms = {
        "hours": hours,
        "patience": patience,
        "coldStart": cold_start,
        "gpusPerNode": gpus_per_node,
        "gpuShape": shape or None,
    }
    slice_, slash, endpoint = about.partition("/")
    if slash and not endpoint:
        raise wrong_use(f"{about}: write SLICE or SLICE/ENDPOINT")
    if endpoint:
        terms["endpoint"] = endpoint
    found = backend.advice(slice_, terms)
    if output is Form.TABLE:
        _show(found)
    else:
        _data(found, output)
    if propose:
        _file(backend, found, priority)


def _show(found: Row) -> None:
    output.text(found["sentence"])
    lead = output.spoken(timedelta(seconds=found["leadSeconds"]))
    wait = output.spoken(timedelta(seconds=found["promisedWaitSeconds"]))
    output.text(f"A node that is filed for now works in {lead}: the plan promises it in {wait}.")
    output.text("")
    output.rows(found["hours"], Form.TABLE, HOURS, "")
    if found["silentHours"]:
        hours = output.counted(found["silentHours"], "hour")
        output.note(f"no server told in {hours} of the history; they count as none served")
    if found["tooSmall"]:
        hours = output.counted(found["tooSmall"], "hour")
        output.note(
            f"a filed request has fewer nodes than advised in {hours}; a slice runs one request at a time, so change "
            "that request with `egs gpr edit`, or end it early"
        )
    if found["proposals"]:
        output.text("")
        output.rows(found["proposals"], Form.TABLE, PROPOSALS, "")
        if found["endpoint"]:
            output.note("name the request in the endpoint's `gpr`, so that it is served there")


def _file(backend: Backend, found: Row, priority: int) -> None:
    """Files what is due; later hours are advised anew when their time comes."""
    due = [one for one in found["proposals"] if one["fileBy"] <= found["at"]]
    if not due:
        _note("nothing must be filed for now")
    if len(due) > MOST_PROPOSED:
        raise wrong_use(
            f"{len(due)} requests would be filed, more than {MOST_PROPOSED} at once; use fewer --hours"
        )
    for one in due:
        terms = {
            "nodes": one["nodes"],
            "gpusPerNode": one["gpusPerNode"],
            "gpuShape": one["gpuShape"],
            "duration": one["duration"],
            "notBefore": one["notBefore"],
            "priority": priority,
        }
        key = f"{found['slice']}/{one['name']}"
        filed = backend.create(key, terms, is_trial=False)
        _note(f"filed {key}: {_counted(one['nodes'], 'node')} for {one['duration']}")
        for sentence in filed.notes:
            _note(sentence)


# Inside the command, `output` is its option and not the module.
_data, _note, _counted = output.data, output.note, output.counted
