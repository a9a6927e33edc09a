"""`egs key …`: make, list and revoke keys of the HTTP API. Only their words; the work is imported late."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from reconciler.cli.command_options import AsPull, Author, DryRun, Now, Output, Repo, StraightOn
from reconciler.cli.output import Form

Name = Annotated[str, typer.Argument(metavar="NAME", help="The key's name.", show_default=False)]


class KeyRole(StrEnum):
    """As `schemas.documents.apikey.Role` has them."""

    OWNER = "Owner"
    EDITOR = "Editor"
    VIEWER = "Viewer"


def register(app: typer.Typer) -> None:
    """Add the group to the app."""
    group = typer.Typer(
        help="Make, list and revoke keys of the HTTP API. The repository has their SHA-256 alone.\n\n\b\nExample:\n"
        "  egs key create nightly --role Editor --slice vision",
        short_help="Make, list and revoke API keys.",
        no_args_is_help=True,
    )
    group.command("create", short_help="Make a key; it is shown once.")(create)
    group.command("list", short_help="Keys without their secrets.")(list_keys)
    group.command("revoke", short_help="Make a key open nothing any more.")(revoke)
    app.add_typer(group, name="key")


def create(  # noqa: PLR0913 - each is an option of the command
    name: Name,
    role: Annotated[
        KeyRole,
        typer.Option(
            help="Owner: whatever the person may; Editor: file, change and end requests; Viewer: read.",
            show_default=False,
        ),
    ],
    slice_: Annotated[
        list[str] | None,
        typer.Option(
            "--slice",
            metavar="S",
            help="Slice it is good for; may be repeated. Default: the whole project.",
            show_default=False,
        ),
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="MAIL",
            help="In whose name it acts (another's: admins). Default: yours, as git is configured.",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[str, typer.Option(metavar="D", help="How long it is good for, or never.")] = "90d",
    description: Annotated[
        str, typer.Option(metavar="TEXT", help="What it is for.", show_default=False)
    ] = "",
    pull_request: AsPull = None,
    dry_run: DryRun = False,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Make a key of the HTTP API. It is printed once and is nowhere else: keep it in a vault.

    \b
    Examples:
      egs key create nightly --role Editor --slice vision
      egs key create dashboard --role Viewer --for robot@example.com --expires 365d

    It never carries more than the person may by the manifests, and ends when they leave.
    """
    from reconciler.changes.keys import NewKey
    from reconciler.changes.keys import create as run
    from reconciler.changes.publish import Means

    asked = NewKey(name, role.value, tuple(slice_ or ()), for_, expires, description)
    run(Means(repo, author, pull_request), asked, is_trial=dry_run)


def list_keys(repo: Repo = None, now: Now = None, output: Output = Form.TABLE) -> None:
    """Every key with its person, role, slices, end and state.

    \b
    Example:
      egs key list
    """
    from reconciler.changes.keys import show

    show(repo, now, output)


def revoke(name: Name, pull_request: StraightOn = None, repo: Repo = None, author: Author = None) -> None:
    """Make a key open nothing any more. Its manifest stays, and says so.

    \b
    Example:
      egs key revoke nightly
    """
    from reconciler.changes.keys import revoke as run
    from reconciler.changes.publish import Means

    run(Means(repo, author, pull_request, "push"), name)
