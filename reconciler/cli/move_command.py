"""The command `egs gpr move`. Only its words; the work is imported late."""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands.options import AsPull, Author, DryRun, Now, Output, Repo, Request
from egs.commands.output import Form
from reconciler.cli.command_groups import group_of


def register(app: typer.Typer) -> None:
    """Add it to its group."""
    group_of(app, "gpr").command("move", short_help="Put a request before others (admins).")(move)


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
    from reconciler.changes.move import Answering, Target
    from reconciler.changes.move import move as run
    from reconciler.changes.publish import Means

    target = Target.of(first=first, last=last, before=before)
    run(Means(repo, author, pull_request), request, target, Answering(now, output, dry_run))
