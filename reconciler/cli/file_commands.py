"""Commands that change a repository and that no server has. Declarations only; the work is imported late."""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands.options import (
    AsPull,
    Author,
    DryRun,
    Fields,
    Now,
    Output,
    OwnContext,
    OwnKubeconfig,
    Repo,
    Request,
)
from egs.commands.output import Form
from egs.commands.slices import Name


def register(app: typer.Typer) -> None:
    _group_of(app, "gpr").command("move", short_help="Put a request before others (admins).")(move)
    _group_of(app, "slice").command("edit", short_help="Change fields of a slice.")(edit_slice)
    app.command("resubmit", short_help="Approve a held file as your own change.")(resubmit)
    app.command("init", short_help="Begin a repository.")(init)
    app.command("prune", short_help="Remove files of finished requests.")(prune)


def _group_of(app: typer.Typer, name: str) -> typer.Typer:
    found = next(group.typer_instance for group in app.registered_groups if group.name == name)
    assert found is not None
    return found


def move(  # noqa: PLR0913 - each is an option of the command
    request: Request,
    first: Annotated[bool, typer.Option("--first", help="Before all others of its priority.")] = False,
    last: Annotated[bool, typer.Option("--last", help="After all others of its priority.")] = False,
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
    from reconciler.changes.change import Means
    from reconciler.changes.move import Answering, Target
    from reconciler.changes.move import move as run

    target = Target.of(first=first, last=last, before=before)
    run(Means(repo, author, pull_request), request, target, Answering(now, output, dry_run))


def edit_slice(
    name: Name,
    fields: Fields,
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Change fields of a slice's file, and nothing else in it. Owners: description; admins: the rest.

    \b
    Examples:
      egs slice edit vision quota.gpus=64 limits.maxPriority=250
      egs slice edit vision "namespaces=[vision-train, vision-serve]" paused=true
    """
    from reconciler.changes.change import Means
    from reconciler.changes.slices import edit as run

    run(Means(repo, author, pull_request), name, fields)


def resubmit(
    what: Annotated[
        str,
        typer.Argument(metavar="PATH|SLICE/GPR", help="The held file, or the request.", show_default=False),
    ],
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Stand behind a file of main that is held, as it reads there: it counts if you may make that change.

    \b
    Examples:
      egs resubmit vision/train
      egs resubmit requests/nlp.yaml

    Read it first. Git knows no change without a difference, so a comment at its end says who brought it in again.
    A file that was deleted comes back as it counts.
    """
    from reconciler.changes.change import Means
    from reconciler.changes.resubmit import resubmit as run

    run(Means(repo, author, pull_request), what)


def init(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A folder; created if it does not exist.")],
    admin: Annotated[
        str | None,
        typer.Option(
            metavar="MAIL", help="The first admin. Default: as git is configured.", show_default=False
        ),
    ] = None,
    from_cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Also write clusters/NAME.yaml from the GPU nodes that a cluster shows.",
            show_default=False,
        ),
    ] = None,
    kubeconfig: OwnKubeconfig = None,
    context: OwnContext = None,
) -> None:
    """Begin a repository: project.yaml for project default, README and folders, ready to commit.

    \b
    Examples:
      egs init gpus --admin ada@example.com
      egs init gpus --from-cluster north --context north     with its first Cluster document, in mode: observe
    """
    if from_cluster is not None:
        from reconciler.cli.answers.first_cluster import init_from_cluster
        from reconciler.cli.answers.member_kubeconfig import Own

        init_from_cluster(path, admin, from_cluster, Own(kubeconfig, context))
        return
    from reconciler.changes.init_and_prune import init as run

    run(path, admin)


def prune(
    apply: Annotated[bool, typer.Option("--apply", help="Remove them. Default: only list them.")] = False,
    repo: Repo = None,
    author: Author = None,
    output: Output = Form.TABLE,
) -> None:
    """List files of requests that never run again, with their approvals; --apply removes them in one change.

    \b
    Example:
      egs prune --apply
    """
    from reconciler.changes.init_and_prune import prune as run

    run(repo, author, output, is_applied=apply)
