"""Commands that change nothing: validate, check-pr. Declarations only; `egs --help` must be fast."""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands.options import Now, Repo
from reconciler.cli.command_options import CheckForm, ValidationForm


def register(app: typer.Typer) -> None:
    app.command("validate", short_help="Find every problem of a repository.")(validate)
    app.command("check-pr", short_help="Say what a pull request would do.")(check_pr)


def validate(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH", help="Folder, bare repository or URL; default as --repo.", show_default=False
        ),
    ] = None,
    repo: Repo = None,
    ref: Annotated[
        str | None, typer.Option(metavar="REF", help="Check this branch or commit.", show_default=False)
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REF", help="Also refuse edits of requests that hold nodes.", show_default=False
        ),
    ] = None,
    output: Annotated[
        ValidationForm, typer.Option("--output", "-o", help="github: annotations for a workflow.")
    ] = ValidationForm.TABLE,
) -> None:
    """Find every problem of a repository in one run: where it is, what is wrong, what to do.

    \b
    Examples:
      egs validate
      egs validate path/to/repo -o json
      egs validate --against origin/main -o github

    Exit 1 when anything is an error. Needing approval is a notice.
    """
    from reconciler.cli.answers.validation_answer import show_validation

    raise typer.Exit(show_validation(repo, path, (ref, against), output))


def check_pr(
    base: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Main. Default: as CI says, else origin/main.", show_default=False),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(metavar="REF", help="The branch. Default: as CI says, else HEAD.", show_default=False),
    ] = None,
    author: Annotated[
        str | None,
        typer.Option(
            metavar="'NAME <MAIL>'",
            help="Judge it as a change of this person. Default: the account that CI names.",
            show_default=False,
        ),
    ] = None,
    repo: Repo = None,
    now: Now = None,
    output: Annotated[
        CheckForm, typer.Option("--output", "-o", help="github: annotations; markdown: the comment.")
    ] = CheckForm.TEXT,
) -> None:
    """Say what a pull request would do: is it valid, who approves, who starts when, who waits longer.

    \b
    Examples:
      egs check-pr
      egs check-pr --base origin/main --head more-nodes --author 'Bo <bo@example.com>'
      egs check-pr -o markdown

    Reads a clone as it stands; `git fetch origin` first. Exit 1 when it cannot be merged as it is.
    """
    from reconciler.cli.answers.check_pr import Refs, show_check

    raise typer.Exit(show_check(repo, now, Refs(base, head), author, output))
