"""`egs gpr …`: file, change, move and end requests. Only their words; the work is imported late."""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands import options as node_options
from egs.commands.options import AsPull, Author, DryRun, Fields, Now, Output, Repo, Request, StraightOn
from egs.commands.output import Form


def register(app: typer.Typer) -> None:
    """Add the group to the app."""
    gpr = typer.Typer(
        help="File, change and end requests for GPU nodes.\n\n\b\nExample:\n"
        "  egs gpr create vision/train --nodes 2 --gpus-per-node 8 --duration 6h",
        short_help="File, change and end requests.",
        no_args_is_help=True,
    )
    gpr.command("create", short_help="File a request.")(create)
    gpr.command("edit", short_help="Change fields of a request.")(edit)
    gpr.command("priority", short_help="Change the priority of a waiting request.")(priority)
    gpr.command("move", short_help="Put a request before others (admins).")(move)
    gpr.command("rename", short_help="Change the name people see.")(rename)
    gpr.command("extend", short_help="Ask for grace beyond the duration.")(extend)
    gpr.command("stop", short_help="Give the nodes back and keep the time.")(stop)
    gpr.command("start", short_help="Queue a stopped request again.")(start)
    gpr.command("release", short_help="End a request now.")(release)
    gpr.command("cancel", short_help="Take a waiting request back.")(cancel)
    gpr.command("restore", short_help="Write a request's file back as it counts.")(restore)
    app.add_typer(gpr, name="gpr")


def create(  # noqa: PLR0913 - each is an option of the command
    request: Request,
    nodes: node_options.Nodes = None,
    gpus_per_node: node_options.GpusPerNode = None,
    shape: node_options.Shapes = None,
    memory: node_options.Memory = None,
    instance_type: node_options.InstanceType = None,
    duration: node_options.Duration = None,
    priority: node_options.Priority = None,
    template: node_options.Template = None,
    display_name: node_options.DisplayName = None,
    cluster: node_options.Clusters = None,
    not_before: node_options.NotBefore = None,
    start: node_options.Start = None,
    prefer: node_options.Prefer = None,
    max_wait: node_options.MaxWait = None,
    rdma: node_options.Rdma = False,
    model: node_options.ModelName = None,
    pull_request: AsPull = None,
    dry_run: DryRun = False,
    repo: Repo = None,
    author: Author = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """File a request, and say when it is expected to start.

    \b
    Examples:
      egs gpr create vision/train --nodes 2 --gpus-per-node 8 --shape H100-80GB --duration 6h
      egs gpr create vision/train --template finetune-small --dry-run

    In a folder it writes the file; elsewhere it commits it to main, or opens a pull request.
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import Answering
    from reconciler.changes.requests import create as run
    from reconciler.queries.quotes import shape_field

    size = {"displayName": display_name, "nodes": nodes, "gpusPerNode": gpus_per_node}
    kind = {"gpuShape": shape_field(shape or ()), "memoryPerGpu": memory, "instanceType": instance_type}
    term = {"clusters": cluster or None, "duration": duration, "priority": priority, "notBefore": not_before}
    more = {"start": start, "network": {"rdma": True} if rdma else None}
    more |= {"prefer": prefer, "maxWait": max_wait}
    rest = {"model": None if model is None else {"name": model}, "template": template}
    means = Means(repo, author, pull_request)
    run(means, request, {**size, **kind, **term, **more, **rest}, Answering(now, output, dry_run))


def edit(
    request: Request,
    fields: Fields,
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Change fields of a request's file, and nothing else in it: comments and order stay.

    \b
    Examples:
      egs gpr edit vision/train nodes=4 duration=8h
      egs gpr edit vision/train network.rdma=true "clusters=[east, west]" notBefore=

    Asking for more, or for something else, gives up the place among equals.
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import assignments, change

    edits = assignments(fields)
    names = ", ".join(".".join(field) for field, _ in edits)
    change(Means(repo, author, pull_request), request, edits, f"Edit {request}: {names}")


def priority(
    request: Request,
    value: Annotated[
        int, typer.Argument(metavar="N", min=1, max=300, help="Low 1-100, medium -200, high -300.")
    ],
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Change the priority of a waiting request.

    \b
    Example:
      egs gpr priority vision/train 180
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import change

    means = Means(repo, author, pull_request)
    change(means, request, [(("priority",), value)], f"Set priority of {request} to {value}")


def move(  # noqa: PLR0913 - each is an option of the command
    request: Request,
    first: Annotated[bool, typer.Option("--first", help="Before all of its priority.")] = False,
    last: Annotated[bool, typer.Option("--last", help="Behind all of its priority.")] = False,
    before: Annotated[
        str | None, typer.Option(metavar="SLICE/GPR", help="Just before this one.", show_default=False)
    ] = None,
    pull_request: AsPull = None,
    dry_run: DryRun = False,
    repo: Repo = None,
    author: Author = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Put a waiting request elsewhere among those of its priority, and say whom that moves. For admins.

    \b
    Examples:
      egs gpr move vision/train --first --dry-run
      egs gpr move vision/train --before nlp/eval

    No move passes a higher priority; `egs gpr priority` changes that.
    """
    from reconciler.changes.move import Target
    from reconciler.changes.move import move as run
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import Answering

    target = Target.of(first=first, last=last, before=before)
    run(Means(repo, author, pull_request), request, target, Answering(now, output, dry_run))


def rename(
    request: Request,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Any words.")],
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Change the name that people see (displayName); the request keeps its place and its file.

    \b
    Example:
      egs gpr rename vision/train "Third try, larger batches"
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import change

    means = Means(repo, author, pull_request)
    change(means, request, [(("displayName",), name or None)], f"Rename {request}")


def extend(
    request: Request,
    duration: Annotated[str, typer.Argument(metavar="D", help="Total grace beyond the duration.")],
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Ask for grace beyond the duration, in total; granted within the project's bound if it delays nobody.

    \b
    Example:
      egs gpr extend vision/train 0d0h30m
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import change, extension

    edits = extension(duration)
    change(Means(repo, author, pull_request), request, edits, f"Extend {request} by {duration}")


def stop(request: Request, pull_request: StraightOn = None, repo: Repo = None, author: Author = None) -> None:
    """Give a request's nodes back now and keep the time that is left; one that waits gives up its start.

    \b
    Example:
      egs gpr stop vision/train

    Idle GPUs cost: this goes straight to main also where the project wants pull requests, and needs no review.
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import change

    means = Means(repo, author, pull_request, by_default="push")
    change(means, request, [(("stopped",), True)], f"Stop {request}")


def start(request: Request, pull_request: AsPull = None, repo: Repo = None, author: Author = None) -> None:
    """Queue a stopped request again, as if it were filed now, for the time that is left of it.

    \b
    Example:
      egs gpr start vision/train
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import change

    means = Means(repo, author, pull_request)
    change(means, request, [(("stopped",), None)], f"Start {request} again")


def release(
    request: Request, pull_request: StraightOn = None, repo: Repo = None, author: Author = None
) -> None:
    """End a request now: its nodes leave it, and whoever waits moves up. Cancels one that waits.

    \b
    Example:
      egs gpr release vision/train

    Idle GPUs cost: this goes straight to main also where the project wants pull requests, and needs no review.
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import release as run

    run(Means(repo, author, pull_request, by_default="push"), request)


def cancel(
    request: Request,
    pull_request: StraightOn = None,
    repo: Repo = None,
    author: Author = None,
    now: Now = None,
) -> None:
    """Take a waiting request out of the queue; one that holds nodes is refused.

    \b
    Example:
      egs gpr cancel vision/train

    It writes earlyRelease into the file, so a request that got its nodes a moment ago ends, too. It goes straight to
    main. `egs prune` removes the file later.
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import cancel as run

    run(Means(repo, author, pull_request, by_default="push"), request, now)


def restore(request: Request, pull_request: AsPull = None, repo: Repo = None, author: Author = None) -> None:
    """Write a request's file back as it counts: where main has none, or one that is broken or says other terms.

    \b
    Example:
      egs gpr restore vision/train
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.requests import restore as run

    run(Means(repo, author, pull_request), request)
