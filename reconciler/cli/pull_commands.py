"""`egs pr …` and `egs codeowners`: what pull requests would do, and the forge's rules for them. Declarations only."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from egs.commands.options import AsPull, Author, Now, Output, Repo
from egs.commands.output import Form

Forge = Annotated[
    Literal["github", "gitlab", "gitea"] | None,
    typer.Option(
        "--forge",
        help="Which forge. Default: by EGS_FORGE, else by the repository's address.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Look at pull requests.\n\n\b\nExample:\n  egs pr status",
        short_help="Look at pull requests.",
        no_args_is_help=True,
    )
    group.command("status", short_help="What open pull requests would do, and what they wait for.")(status)
    app.add_typer(group, name="pr")
    app.command("codeowners", short_help="Show or write the forge's CODEOWNERS.")(codeowners)


def status(
    pull: Annotated[
        str | None,
        typer.Argument(metavar="N", help="Only this one; on plain Git a branch.", show_default=False),
    ] = None,
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Check open pull requests as things are now: valid, who has to approve, who did, what is out of date.

    \b
    Examples:
      egs pr status
      egs pr status 12 -o json

    The forge is told by EGS_FORGE, EGS_FORGE_API and EGS_FORGE_REPOSITORY where its address does not tell, the
    token by EGS_FORGE_TOKEN_FILE. On plain Git, branches below requests/ are looked at.
    """
    from reconciler.cli.answers.pull_status import show_pulls

    show_pulls(repo, pull, now, output)


def codeowners(  # noqa: PLR0913 - each is an option of the command
    forge: Forge = None,
    write: Annotated[bool, typer.Option("--write", help="Bring the file up to date.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Report what is not in force; exit 1 if anything is not.")
    ] = False,
    rules: Annotated[
        bool, typer.Option("--rules", help="Show the calls that protect the branches instead, as JSON.")
    ] = False,
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Show CODEOWNERS as the manifests have it: admins for everything but requests, owners for their slices.

    \b
    Examples:
      egs codeowners --write
      egs codeowners --rules > rules.json
      egs codeowners --check

    A forge asks the right people early with it; what counts is judged by egs all the same.
    """
    from reconciler.changes.change import Means
    from reconciler.cli.answers import codeowners as run
    from reconciler.sources.command_errors import WrongUse

    if write + check + rules > 1:
        raise WrongUse("give one of --write, --check and --rules")
    means = Means(repo, author, pull_request)
    if check:
        raise typer.Exit(run.check(means, forge, now, output))
    if rules:
        run.show_rules(means, forge)
    elif write:
        run.write(means, forge)
    else:
        run.show(means, forge, now)
