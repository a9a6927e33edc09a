"""`egs gpr …`: file, change and end requests."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from egs.commands import options, output
from egs.commands.backend import Backend, Filed
from egs.commands.declare import CHANGES, CHANGES_AT, PUSHES, PUSHES_AT, declare, group
from egs.commands.options import DryRun, Fields, Output, Request
from egs.commands.output import Form, Row, place


def register(app: typer.Typer) -> None:
    gpr = group(
        app,
        "gpr",
        "File, change and end requests.",
        "File, change and end requests for GPU nodes.\n\n\b\nExample:\n"
        "  egs gpr create vision/train --nodes 2 --gpus-per-node 8 --duration 6h",
    )
    declare(gpr, "create", "File a request.", create, CHANGES_AT)
    declare(gpr, "edit", "Change fields of a request.", edit, CHANGES)
    declare(gpr, "priority", "Change the priority of a waiting request.", priority, CHANGES)
    declare(gpr, "rename", "Change the name people see.", rename, CHANGES)
    declare(gpr, "extend", "Ask for grace beyond the duration.", extend, CHANGES)
    declare(gpr, "stop", "Give the nodes back and keep the time.", stop, PUSHES)
    declare(gpr, "start", "Queue a stopped request again.", start, CHANGES)
    declare(gpr, "release", "End a request now.", release, PUSHES)
    declare(gpr, "cancel", "Cancel a waiting request.", cancel, PUSHES_AT)
    declare(gpr, "restore", "Restore a request's file.", restore, CHANGES)


def create(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    request: Request,
    nodes: options.Nodes = None,
    gpus_per_node: options.GpusPerNode = None,
    shape: options.Shapes = None,
    memory: options.Memory = None,
    instance_type: options.InstanceType = None,
    duration: options.Duration = None,
    priority: options.Priority = None,
    template: options.Template = None,
    display_name: options.DisplayName = None,
    cluster: options.Clusters = None,
    not_before: options.NotBefore = None,
    start: options.Start = None,
    prefer: options.Prefer = None,
    max_wait: options.MaxWait = None,
    rdma: options.Rdma = False,
    model: options.ModelName = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """File a request, and say when it is expected to start.

    \b
    Examples:
      egs gpr create vision/train --nodes 2 --gpus-per-node 8 --shape H100-80GB --duration 6h
      egs gpr create vision/train --template finetune-small --dry-run

    In a folder it writes the file; otherwise it commits to main or opens a pull request. A server does that in your
    name, as the project says. Exit 1 if --dry-run finds no start.
    """
    terms: dict[str, Any] = {
        "displayName": display_name,
        "nodes": nodes,
        "gpusPerNode": gpus_per_node,
        "gpuShape": shape or None,
        "memoryPerGpu": memory,
        "instanceType": instance_type,
        "clusters": cluster or None,
        "duration": duration,
        "priority": priority,
        "notBefore": not_before,
        "start": start,
        "network.rdma": rdma or None,
        "prefer": prefer,
        "maxWait": max_wait,
        "model.name": model,
        "template": template,
    }
    filed = backend.create(request, terms, is_trial=dry_run)
    if output is Form.TABLE:
        _show(request, filed)
    else:
        _data(filed.data, output)
    for sentence in filed.notes:
        _note(sentence)
    raise typer.Exit(1 if dry_run and filed.data["estimate"] is None else 0)


def _show(key: str, filed: Filed) -> None:
    estimate, is_trial = filed.data["estimate"], filed.data["dryRun"]
    if is_trial:
        output.note(
            f"not filed; {filed.data['path']} would be:" if filed.text else "not filed; as things are:"
        )
    if is_trial and filed.text:
        output.text(filed.text)
    if estimate is None:
        unknown = (
            "no start, as things are" if is_trial else f"no start is known yet; `egs why {key}` says why"
        )
        output.text(f"{key}: {unknown}")
        return
    output.text(f"{key}: starts at {_start(estimate)}{_condition(filed.data)}")


def _start(estimate: Row) -> str:
    when = output.shown(output.time(estimate["estimatedStartTime"]))
    return f"{when} ({output.shown(output.seconds(estimate['estimatedWaitSeconds']))}) in {place(estimate)}"


def _condition(data: Row) -> str:
    needs = [
        *(["it is merged"] if data["branch"] else []),
        *(["an admin has approved it"] if data["estimate"]["needsApproval"] else []),
    ]
    return f", once {' and '.join(needs)}" if needs else ""


def edit(backend: Backend, request: Request, fields: Fields) -> None:
    """Change fields of a request's file, and nothing else in it: comments and order stay.

    \b
    Examples:
      egs gpr edit vision/train nodes=4 duration=8h
      egs gpr edit vision/train network.rdma=true "clusters=[east, west]" notBefore=

    A request that asks for more, or for something else, loses its place among equals.
    """
    backend.edit(request, fields)


def priority(
    backend: Backend,
    request: Request,
    value: Annotated[
        int,
        typer.Argument(
            metavar="N", min=1, max=300, help="1 to 300: low up to 100, medium up to 200, high up to 300."
        ),
    ],
) -> None:
    """Change the priority of a waiting request.

    \b
    Example:
      egs gpr priority vision/train 180
    """
    backend.change(request, {"priority": value}, f"Set priority of {request} to {value}")


def rename(
    backend: Backend,
    request: Request,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that people see; any text.")],
) -> None:
    """Change the name that people see (displayName); the request keeps its place and its file.

    \b
    Example:
      egs gpr rename vision/train "Third try, larger batches"
    """
    backend.change(request, {"displayName": name or None}, f"Rename {request}")


def extend(
    backend: Backend,
    request: Request,
    duration: Annotated[str, typer.Argument(metavar="D", help="Total grace beyond the duration.")],
) -> None:
    """Ask for grace beyond the duration, in total; granted within the project's bound if it delays no other request.

    \b
    Example:
      egs gpr extend vision/train 0d0h30m
    """
    backend.change(request, {"extend": duration}, f"Extend {request} by {duration}")


def stop(backend: Backend, request: Request) -> None:
    """Give a request's nodes back now and keep the time that is left; a waiting request gives up its start.

    \b
    Example:
      egs gpr stop vision/train

    Idle GPUs cost money: this goes straight to main without review, even if the project wants pull requests.
    """
    backend.change(request, {"stopped": True}, f"Stop {request}")


def start(backend: Backend, request: Request) -> None:
    """Queue a stopped request again, as if it were filed now, for the time that is left of it.

    \b
    Example:
      egs gpr start vision/train
    """
    backend.change(request, {"stopped": None}, f"Start {request} again")


def release(backend: Backend, request: Request) -> None:
    """End a request now: it gives its nodes back, and waiting requests move up. A waiting request is cancelled.

    \b
    Example:
      egs gpr release vision/train

    Idle GPUs cost money: this goes straight to main without review, even if the project wants pull requests.
    """
    backend.release(request)


def cancel(backend: Backend, request: Request) -> None:
    """Take a waiting request out of the queue; one that holds nodes is refused.

    \b
    Example:
      egs gpr cancel vision/train

    It writes earlyRelease into the file, so a request that got its nodes a moment ago ends, too. It goes straight to
    main. `egs prune` removes the file later.
    """
    backend.cancel(request)


def restore(backend: Backend, request: Request) -> None:
    """Restore a request's file with the terms in force, if main has none, a broken one, or one with other terms.

    \b
    Example:
      egs gpr restore vision/train
    """
    backend.restore(request)


# Inside a command, `output` is its option and not the module.
_data, _note = output.data, output.note
