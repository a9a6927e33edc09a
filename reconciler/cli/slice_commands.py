"""`egs slice …`: ask for, make and change slices. Only their words; the work is imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.command_options import AsksFirst, AsPull, Author, DryRun, Fields, Output, Repo
from reconciler.cli.output import Form

Name = Annotated[str, typer.Argument(metavar="SLICE", help="Its name.", show_default=False)]
Mail = Annotated[str, typer.Argument(metavar="MAIL", help="The person's address.", show_default=False)]
Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        metavar="C",
        help="Cluster; may be repeated, in order of preference. Default: the only one.",
        show_default=False,
    ),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace", metavar="N", help="Namespace; may be repeated. Default: its name.", show_default=False
    ),
]
Members = Annotated[
    list[str] | None,
    typer.Option(
        "--member", metavar="MAIL", help="Who is to work there; may be repeated.", show_default=False
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(
        "--quota", min=0, metavar="GPUS", help="GPUs of one request without approval.", show_default=False
    ),
]
Longest = Annotated[
    str | None,
    typer.Option("--max-duration", metavar="D", help="Longest duration of a request.", show_default=False),
]
Highest = Annotated[
    int | None,
    typer.Option("--max-priority", min=1, max=300, metavar="P", help="Highest priority.", show_default="300"),
]
Most = Annotated[
    int | None,
    typer.Option("--max-nodes", min=1, metavar="N", help="Most nodes of a request.", show_default=False),
]


Keys = Annotated[
    list[Path] | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="A key the owner signs with: a .pub file; may be repeated. Default: yours, as git signs.",
        show_default=False,
    ),
]
Account = Annotated[
    str | None,
    typer.Option(
        "--forge",
        metavar="LOGIN:ID",
        help="The owner's account on the forge, with its number.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the group to the app."""
    group = typer.Typer(
        help="Ask for a slice, make one, and say who works there.\n\n\b\nExample:\n"
        '  egs slice request nlp --quota 16 --reason "translation"',
        short_help="Ask for, make and change slices.",
        no_args_is_help=True,
    )
    group.command("request", short_help="Ask for a slice; an admin's merge makes it.")(request)
    group.command("create", short_help="Make a slice (admins).")(create)
    group.command("edit", short_help="Change fields of a slice.")(edit)
    group.command("delete", short_help="Take a slice away (admins).")(delete)
    members = typer.Typer(
        help="Say who works in a slice.\n\n\b\nExample:\n  egs slice members add nlp dee@example.com",
        short_help="Say who works there.",
        no_args_is_help=True,
    )
    members.command("add", short_help="Add somebody, or their keys.")(add)
    members.command("remove", short_help="Take somebody out.")(remove)
    group.add_typer(members, name="members")
    app.add_typer(group, name="slice")


def request(  # noqa: PLR0913 - each is an option of the command
    name: Name,
    email: Annotated[
        str | None,
        typer.Option(metavar="MAIL", help="Who will own it. Default: you, as git is configured."),
    ] = None,
    cluster: Clusters = None,
    namespace: Namespaces = None,
    member: Members = None,
    quota: Gpus = None,
    max_duration: Longest = None,
    max_priority: Highest = None,
    max_nodes: Most = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="What it is for; admins read it.", show_default=False)
    ] = "",
    key: Keys = None,
    forge: Account = None,
    pull_request: AsksFirst = None,
    dry_run: DryRun = False,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Ask for a slice of your own. An admin's merge makes it, and you own it.

    \b
    Examples:
      egs slice request nlp --quota 16 --reason "translation models"
      egs slice request nlp --cluster east --cluster west --namespace nlp-train --member dee@example.com

    This opens a pull request (a branch, on plain Git) also where other changes go straight to main.
    `egs get requests` shows what became of it.
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.slices import NewSlice
    from reconciler.changes.slices import request as run

    limits = {"maxDuration": max_duration, "maxPriority": max_priority, "maxNodes": max_nodes}
    places = tuple(cluster or ()), tuple(namespace or ())
    asked = NewSlice(name, *places, tuple(member or ()), quota, limits, tuple(key or ()), forge)
    means = Means(repo, author, pull_request, by_default="pull-request")
    run(means, asked, (email, reason), is_trial=dry_run)


def create(  # noqa: PLR0913 - each is an option of the command
    name: Name,
    cluster: Clusters = None,
    namespace: Namespaces = None,
    member: Members = None,
    owner: Annotated[
        list[str] | None,
        typer.Option(metavar="MAIL", help="Who may change its members; may be repeated.", show_default=False),
    ] = None,
    quota: Gpus = None,
    max_duration: Longest = None,
    max_priority: Highest = None,
    max_nodes: Most = None,
    description: Annotated[str, typer.Option(metavar="TEXT", help="For people.", show_default=False)] = "",
    key: Keys = None,
    forge: Account = None,
    pull_request: AsPull = None,
    dry_run: DryRun = False,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Make a slice: its own file, which also takes the place of a request for it. For admins.

    \b
    Example:
      egs slice create vision --member bo@example.com --owner ida@example.com --quota 32 --max-nodes 8
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.slices import NewSlice
    from reconciler.changes.slices import create as run

    limits = {"maxDuration": max_duration, "maxPriority": max_priority, "maxNodes": max_nodes}
    places = tuple(cluster or ()), tuple(namespace or ())
    asked = NewSlice(name, *places, tuple(member or ()), quota, limits, tuple(key or ()), forge)
    run(Means(repo, author, pull_request), asked, (tuple(owner or ()), description), is_trial=dry_run)


def edit(
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
    from reconciler.changes.publish import Means
    from reconciler.changes.slices import edit as run

    run(Means(repo, author, pull_request), name, fields)


def add(  # noqa: PLR0913 - each is an option of the command
    name: Name,
    mail: Mail,
    owner: Annotated[bool, typer.Option("--owner", help="Also as an owner (admins).")] = False,
    key: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="A key they sign with: a .pub file; may be repeated.", show_default=False
        ),
    ] = None,
    forge: Annotated[
        str | None,
        typer.Option(
            metavar="LOGIN:ID", help="Their account on the forge, with its number.", show_default=False
        ),
    ] = None,
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
) -> None:
    """Add somebody to a slice; of who is there already, add keys or account.

    \b
    Examples:
      egs slice members add vision dee@example.com
      egs slice members add vision dee@example.com --key dee.pub --forge dee:4711
    """
    from reconciler.changes.members import add as run
    from reconciler.changes.people import Newcomer
    from reconciler.changes.publish import Means

    run(Means(repo, author, pull_request), name, Newcomer(mail, owner, tuple(key or ()), forge))


def remove(
    name: Name, mail: Mail, pull_request: AsPull = None, repo: Repo = None, author: Author = None
) -> None:
    """Take somebody out of a slice. Their rights in its namespaces end, and the kubeconfigs they have.

    \b
    Example:
      egs slice members remove vision dee@example.com
    """
    from reconciler.changes.members import remove as run
    from reconciler.changes.publish import Means

    run(Means(repo, author, pull_request), name, mail)


def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it you are told what would go.")] = False,
    pull_request: AsPull = None,
    repo: Repo = None,
    author: Author = None,
    output: Output = Form.TABLE,
) -> None:
    """Take a slice away, with its files. Refused while a request of it waits or holds nodes.

    \b
    Example:
      egs slice delete vision --yes

    Namespaces that were made for it go with all that is in them, unless they bear egs.dev/keep.
    """
    from reconciler.changes.publish import Means
    from reconciler.changes.slices import delete as run

    run(Means(repo, author, pull_request), name, output, is_sure=yes)
