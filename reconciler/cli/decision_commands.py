"""Commands that change the repository: approve, reject, init, prune. Only their words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from reconciler.cli.command_options import AsPull, Author, Now, Output, Repo, Request
from reconciler.cli.output import Form

Rule = Literal["request", "extension"]
NotAfter = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="The word counts until then (RFC 3339).", show_default="30 days from now"
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", help="Which admin says so. Default: by git's address.", show_default=False
    ),
]
SigningKey = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="SSH key to sign with. Default: the one that git signs with.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    app.command("approve", short_help="Approve a request that waits (admins).")(approve)
    app.command("reject", short_help="Reject a request (admins).")(reject)
    app.command("resubmit", short_help="Stand behind a held file as it reads.")(resubmit)
    app.command("init", short_help="Begin a repository.")(init)
    app.command("prune", short_help="Remove files of requests that are over.")(prune)


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
    not_after: NotAfter = None,
    rule: Annotated[
        Rule, typer.Option(help="What it lifts: what keeps it waiting, or the bound of its grace.")
    ] = "request",
    limit_extend: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            help="Most grace beyond its duration; of --rule extension.",
            show_default="what it asks for",
        ),
    ] = None,
    as_: As = None,
    key: SigningKey = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For the requester.", show_default=False)] = "",
    repo: Repo = None,
    author: Author = None,
    now: Now = None,
) -> None:
    """Approve a request exactly as it reads now; an edit that asks for more needs a new word.

    \b
    Examples:
      egs approve vision/train --not-after 2026-12-01T00:00:00Z --reason "for the paper"
      egs approve vision/train --key ~/.ssh/id_ed25519
      egs approve vision/train --rule extension --limit-extend 3h

    It is signed with --key, or with the SSH key that git signs with; that needs no network.
    """
    from reconciler.changes.approve import DecisionOptions, decide

    limits = (limit_gpus, limit_nodes)
    options = DecisionOptions("approve", reason, *limits, not_after, as_, rule, limit_extend, key)
    decide(repo, request, options, author, now)


def reject(  # noqa: PLR0913 - each is an option of the command
    request: Request,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Shown to the requester.", show_default=False)],
    not_after: NotAfter = None,
    as_: As = None,
    key: SigningKey = None,
    repo: Repo = None,
    author: Author = None,
    now: Now = None,
) -> None:
    """Reject a request as it reads now; it ends as Rejected and says why.

    \b
    Example:
      egs reject vision/train --reason "wait for the new nodes"
    """
    from reconciler.changes.approve import DecisionOptions, decide

    options = DecisionOptions("reject", reason, not_after=not_after, handle=as_, key=key)
    decide(repo, request, options, author, now)


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
    from reconciler.changes.publish import Means
    from reconciler.changes.resubmit import resubmit as run

    run(Means(repo, author, pull_request), what)


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
    from reconciler.changes.init_and_prune import init as run

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
    from reconciler.changes.init_and_prune import prune as run

    run(repo, author, output, is_applied=apply)
