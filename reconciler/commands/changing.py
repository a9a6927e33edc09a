"""Commands that change the repository: gpr, approve, reject, init, prune. Only their words."""

from __future__ import annotations

from typing import Annotated

import typer

from reconciler.commands.options import Author, Now, Output, Repo, Request
from reconciler.commands.output import Form


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    gpr = typer.Typer(
        help="File, change and end requests for GPU nodes.\n\n\b\nExample:\n"
        "  egs gpr create vision/train --nodes 2 --gpus-per-node 8 --duration 6h",
        short_help="File, change and end requests.",
        no_args_is_help=True,
    )
    gpr.command("create", short_help="File a request.")(create)
    gpr.command("edit", short_help="Change fields of a request.")(edit)
    gpr.command("priority", short_help="Change the priority of a waiting request.")(priority)
    gpr.command("rename", short_help="Change the name people see.")(rename)
    gpr.command("extend", short_help="Ask for grace beyond the duration.")(extend)
    gpr.command("release", short_help="End a request now.")(release)
    gpr.command("cancel", short_help="Take a waiting request back.")(cancel)
    app.add_typer(gpr, name="gpr")
    app.command("approve", short_help="Approve a request that waits for an admin.")(approve)
    app.command("reject", short_help="Reject a request.")(reject)
    app.command("init", short_help="Begin a repository.")(init)
    app.command("prune", short_help="Remove files of requests that are over.")(prune)


def create(  # noqa: PLR0913 - each is an option of the command
    request: Request,
    nodes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Whole GPU nodes.", show_default=False)
    ] = None,
    gpus_per_node: Annotated[
        int | None,
        typer.Option(
            "--gpus-per-node", min=1, metavar="G", help="GPUs each node has at least.", show_default="1"
        ),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X", help="GPU shape; may be repeated, in order of preference.", show_default="any"
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(min=1, metavar="GB", help="Memory each GPU has at least.", show_default=False),
    ] = None,
    instance_type: Annotated[
        str | None,
        typer.Option("--instance-type", metavar="T", help="Only this machine type.", show_default=False),
    ] = None,
    duration: Annotated[
        str | None, typer.Option(metavar="D", help="How long: 6h, 90m, 0d6h0m.", show_default=False)
    ] = None,
    priority: Annotated[
        int | None, typer.Option(min=1, max=300, metavar="P", help="1 to 300.", show_default="101")
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="T", help="Template for what is not given here.", show_default=False)
    ] = None,
    display_name: Annotated[
        str | None, typer.Option("--display-name", metavar="TEXT", help="For people.", show_default=False)
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="C", help="Cluster; may be repeated. Default: the slice's.", show_default=False),
    ] = None,
    not_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Earliest wanted start (RFC 3339).", show_default=False)
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="MODE", help="asap, ready or promised.", show_default="asap")
    ] = None,
    rdma: Annotated[bool, typer.Option("--rdma", help="Only nodes with RDMA.")] = False,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model that will run, for people.", show_default=False)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen and write nothing.")
    ] = False,
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

    In a folder it writes the file; in a bare repository or URL it commits it to main.
    """
    from reconciler.commands.quoting import shape_field
    from reconciler.commands.requests import create as run

    spec = {
        "displayName": display_name,
        "nodes": nodes,
        "gpusPerNode": gpus_per_node,
        "gpuShape": shape_field(shape or ()),
        "memoryPerGpu": memory,
        "instanceType": instance_type,
        "clusters": cluster or None,
        "duration": duration,
        "priority": priority,
        "notBefore": not_before,
        "start": start,
        "network": {"rdma": True} if rdma else None,
        "model": None if model is None else {"name": model},
        "template": template,
    }
    run(repo, request, spec, author, now, output, dry_run=dry_run)


def edit(
    request: Request,
    fields: Annotated[
        list[str],
        typer.Argument(metavar="FIELD=VALUE...", help="Fields of spec; nothing behind = takes one out."),
    ],
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
    from reconciler.commands.requests import assignments, change

    edits = assignments(fields)
    names = ", ".join(".".join(field) for field, _ in edits)
    change(repo, request, edits, f"Edit {request}: {names}", author)


def priority(
    request: Request,
    value: Annotated[
        int, typer.Argument(metavar="N", min=1, max=300, help="Low 1-100, medium -200, high -300.")
    ],
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Change the priority of a waiting request.

    \b
    Example:
      egs gpr priority vision/train 180
    """
    from reconciler.commands.requests import change

    change(repo, request, [(("priority",), value)], f"Set priority of {request} to {value}", author)


def rename(
    request: Request,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Any words.")],
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Change the name that people see (displayName); the request keeps its place and its file.

    \b
    Example:
      egs gpr rename vision/train "Third try, larger batches"
    """
    from reconciler.commands.requests import change

    change(repo, request, [(("displayName",), name or None)], f"Rename {request}", author)


def extend(
    request: Request,
    duration: Annotated[str, typer.Argument(metavar="D", help="Total grace beyond the duration.")],
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Ask for grace beyond the duration, in total; granted within the project's bound if it delays nobody.

    \b
    Example:
      egs gpr extend vision/train 0d0h30m
    """
    from reconciler.commands.requests import change, extension

    edits = extension(duration)
    change(repo, request, edits, f"Extend {request} by {duration}", author)


def release(request: Request, repo: Repo = None, author: Author = None) -> None:
    """End a request now: its nodes leave it, and whoever waits moves up. Cancels one that waits.

    \b
    Example:
      egs gpr release vision/train
    """
    from reconciler.commands.requests import change

    change(repo, request, [(("earlyRelease",), True)], f"Release {request}", author)


def cancel(request: Request, repo: Repo = None, author: Author = None, now: Now = None) -> None:
    """Take a waiting request out of the queue by deleting its file; one that holds nodes is refused.

    \b
    Example:
      egs gpr cancel vision/train
    """
    from reconciler.commands.requests import cancel as run

    run(repo, request, author, now)


def approve(  # noqa: PLR0913 - each is an option of the command
    request: Request,
    limit_gpus: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Most GPUs it may hold.", show_default="what it asks for"),
    ] = None,
    limit_nodes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Most nodes it may hold.", show_default="what it asks for"),
    ] = None,
    not_after: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The word counts until then (RFC 3339).", show_default=False),
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="NAME", help="Which admin says so. Default: by git's address.", show_default=False
        ),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For the requester.", show_default=False)] = "",
    repo: Repo = None,
    author: Author = None,
    now: Now = None,
) -> None:
    """Approve a request exactly as it reads now; an edit that asks for more needs a new word.

    \b
    Example:
      egs approve vision/train --not-after 2026-12-01T00:00:00Z --reason "for the paper"
    """
    from reconciler.commands.deciding import Word, decide

    word = Word("approve", reason, limit_gpus, limit_nodes, not_after, as_)
    decide(repo, request, word, author, now)


def reject(
    request: Request,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Shown to the requester.", show_default=False)],
    as_: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="NAME", help="Which admin says so. Default: by git's address.", show_default=False
        ),
    ] = None,
    repo: Repo = None,
    author: Author = None,
    now: Now = None,
) -> None:
    """Reject a request as it reads now; it ends as Rejected and says why.

    \b
    Example:
      egs reject vision/train --reason "wait for the new nodes"
    """
    from reconciler.commands.deciding import Word, decide

    decide(repo, request, Word("reject", reason, handle=as_), author, now)


def init(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A folder; made if it is not there.")],
    admin: Annotated[
        str | None,
        typer.Option(
            metavar="MAIL", help="The first admin. Default: as git is configured.", show_default=False
        ),
    ] = None,
) -> None:
    """Begin a repository: project.yaml for project default, README and folders, ready to commit.

    \b
    Example:
      egs init gpus --admin ada@example.com
    """
    from reconciler.commands.beginning import init as run

    run(path, admin)


def prune(
    apply: Annotated[
        bool, typer.Option("--apply", help="Remove them; without it they are only listed.")
    ] = False,
    repo: Repo = None,
    author: Author = None,
    output: Output = Form.TABLE,
) -> None:
    """List files of requests that never run again, with their approvals; --apply removes them in one change.

    \b
    Example:
      egs prune --apply
    """
    from reconciler.commands.beginning import prune as run

    run(repo, author, output, is_applied=apply)
