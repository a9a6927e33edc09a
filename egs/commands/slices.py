"""`egs slice …`: ask for, make and delete slices, and say who works there. `egs slice edit` is a repository's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from egs.commands import output
from egs.commands.backend import Backend
from egs.commands.declare import ASKS, CHANGES, declare, group
from egs.commands.options import Output, of_repository
from egs.commands.output import Column, Form, field

Name = Annotated[str, typer.Argument(metavar="SLICE", help="The slice's name.", show_default=False)]
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
    typer.Option("--member", metavar="MAIL", help="A member; may be repeated.", show_default=False),
]
Gpus = Annotated[
    int | None,
    typer.Option(
        "--quota", min=0, metavar="GPUS", help="GPUs of one request without approval.", show_default=False
    ),
]
Longest = Annotated[
    str | None, of_repository("--max-duration", metavar="D", help="Longest duration of a request.")
]
Highest = Annotated[
    int | None,
    of_repository(
        "--max-priority", min=1, max=300, metavar="P", help="Highest priority.", show_default="300"
    ),
]
Most = Annotated[
    int | None, of_repository("--max-nodes", min=1, metavar="N", help="Most nodes of a request.")
]
Keys = Annotated[
    list[Path] | None,
    of_repository(
        "--key",
        metavar="FILE",
        help="A key the owner signs with: a .pub file; may be repeated. Default: yours, as git signs.",
    ),
]
Account = Annotated[
    str | None,
    of_repository("--forge", metavar="LOGIN:ID", help="The owner's account on the forge, with its number."),
]
Trial = Annotated[bool, of_repository("--dry-run", help="Show what would happen and write nothing.")]


def register(app: typer.Typer) -> None:
    """Add the group to the app."""
    slices = group(
        app,
        "slice",
        "Ask for, create and change slices.",
        "Ask for a slice, create one, and change its members.\n\n\b\nExample:\n"
        '  egs slice request nlp --quota 16 --reason "translation"',
    )
    declare(slices, "request", "Ask for a slice; an admin's merge makes it.", request, ASKS)
    declare(slices, "create", "Create a slice (admins).", create, CHANGES)
    declare(slices, "delete", "Delete a slice (admins).", delete, CHANGES)
    members = group(
        slices,
        "members",
        "Add and remove people.",
        "Add people to a slice, and remove them.\n\n\b\nExample:\n  egs slice members add nlp dee@example.com",
    )
    declare(members, "add", "Add a person, or their keys.", add, CHANGES)
    declare(members, "remove", "Remove a person.", remove, CHANGES)


def request(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    name: Name,
    email: Annotated[
        str | None, typer.Option(metavar="MAIL", help="The owner. Default: you.", show_default=False)
    ] = None,
    cluster: Clusters = None,
    namespace: Namespaces = None,
    member: Members = None,
    quota: Gpus = None,
    max_duration: Longest = None,
    max_priority: Highest = None,
    max_nodes: Most = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="What it is for; read by admins.", show_default=False)
    ] = "",
    key: Keys = None,
    forge: Account = None,
    dry_run: Trial = False,
) -> None:
    """Ask for a slice of your own. An admin's merge makes it, and you own it.

    \b
    Examples:
      egs slice request nlp --quota 16 --reason "translation models"
      egs slice request nlp --cluster east --cluster west --namespace nlp-train --member dee@example.com

    This opens a pull request (a branch, on plain Git) also where other changes go straight to main. On a server an
    admin's request is made at once. `egs get requests` shows what became of it.
    """
    limits = {"maxDuration": max_duration, "maxPriority": max_priority, "maxNodes": max_nodes}
    owners = [] if email is None else [email]
    about = _about((cluster, namespace, member, owners), quota, limits, (key, forge))
    backend.request_slice(name, about | {"text": reason}, is_trial=dry_run)


def create(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    name: Name,
    cluster: Clusters = None,
    namespace: Namespaces = None,
    member: Members = None,
    owner: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MAIL", help="An owner, who may change the members; may be repeated.", show_default=False
        ),
    ] = None,
    quota: Gpus = None,
    max_duration: Longest = None,
    max_priority: Highest = None,
    max_nodes: Most = None,
    description: Annotated[str, typer.Option(metavar="TEXT", help="For people.", show_default=False)] = "",
    key: Keys = None,
    forge: Account = None,
    dry_run: Trial = False,
) -> None:
    """Make a slice: its own file, which also takes the place of a request for it. For admins.

    \b
    Example:
      egs slice create vision --member bo@example.com --owner ida@example.com --quota 32
    """
    limits = {"maxDuration": max_duration, "maxPriority": max_priority, "maxNodes": max_nodes}
    about = _about((cluster, namespace, member, owner), quota, limits, (key, forge))
    backend.create_slice(name, about | {"text": description}, is_trial=dry_run)


def _about(
    lists: tuple[list[str] | None, ...],
    quota: int | None,
    limits: Mapping[str, Any],
    shown_by: tuple[list[Path] | None, str | None],
) -> dict[str, Any]:
    """What is said of a slice that is to be, as `Backend.create_slice` takes it."""
    names = ("clusters", "namespaces", "members", "owners")
    given = {name: tuple(values or ()) for name, values in zip(names, lists, strict=True)}
    keys, forge = shown_by
    return {**given, "quota": quota, "limits": limits, "keys": tuple(keys or ()), "forge": forge}


SLICE_FILES: tuple[Column, ...] = (
    ("SLICE", field("slice")),
    ("FILES", field("files")),
    ("NAMESPACES", field("namespaces")),
    ("CLUSTERS", field("clusters")),
)


def delete(
    backend: Backend,
    name: Name,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete it. Default: only show what would be deleted.")
    ] = False,
    output: Output = Form.TABLE,
) -> None:
    """Take a slice away, with its files. Refused while a request of it waits or holds nodes.

    \b
    Example:
      egs slice delete vision --yes

    Namespaces that were made for it go with all that is in them, unless they bear egs.dev/keep.
    """
    row = backend.slice_parts(name)
    if output is Form.TABLE:
        _rows([row], output, SLICE_FILES, "")
    else:
        _data(row, output)
    if yes:
        backend.delete_slice(name)
    else:
        _note(
            "nothing is removed yet; with --yes the files go, and then the namespaces that were made for the slice, "
            "with all that is in them"
        )


def add(
    backend: Backend,
    name: Name,
    mail: Mail,
    owner: Annotated[bool, typer.Option("--owner", help="Also as an owner (admins).")] = False,
    key: Annotated[
        list[Path] | None,
        of_repository(metavar="FILE", help="A key they sign with: a .pub file; may be repeated."),
    ] = None,
    forge: Annotated[
        str | None,
        of_repository(metavar="LOGIN:ID", help="Their account on the forge, with its number."),
    ] = None,
) -> None:
    """Add a person to a slice; to one who is there already, add keys or account.

    \b
    Examples:
      egs slice members add vision dee@example.com
      egs slice members add vision dee@example.com --key dee.pub --forge dee:4711
    """
    backend.add_member(name, mail, is_owner=owner, keys=tuple(key or ()), forge=forge)


def remove(backend: Backend, name: Name, mail: Mail) -> None:
    """Take a person out of a slice. Their rights in its namespaces end, and the kubeconfigs they have.

    \b
    Example:
      egs slice members remove vision dee@example.com
    """
    backend.remove_member(name, mail)


# A command calls its option `output`, as people type it; the module of that name is meant here.
_rows, _data, _note = output.rows, output.data, output.note
