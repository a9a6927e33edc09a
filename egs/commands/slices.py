"""`egs slice …`: ask for, make and delete slices, and change their members."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from egs.commands import output
from egs.commands.backend import Backend
from egs.commands.declare import ASKS, CHANGES, declare, group
from egs.commands.options import Output, argument, of_repository, option
from egs.commands.output import Column, Form, field

Name = Annotated[str, argument(metavar="SLICE", help="The slice's name.")]
Mail = Annotated[str, argument(metavar="MAIL", help="The person's address.")]
Clusters = Annotated[
    list[str] | None,
    option(
        "--cluster",
        metavar="C",
        help="Cluster; may be repeated, in order of preference. Default: the only one.",
    ),
]
Namespaces = Annotated[
    list[str] | None,
    option("--namespace", metavar="N", help="Namespace; may be repeated. Default: its name."),
]
Members = Annotated[list[str] | None, option("--member", metavar="MAIL", help="A member; may be repeated.")]
Gpus = Annotated[
    int | None, option("--quota", min=0, metavar="GPUS", help="GPUs of one request without approval.")
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
    email: Annotated[str | None, option(metavar="MAIL", help="The owner. Default: you.")] = None,
    cluster: Clusters = None,
    namespace: Namespaces = None,
    member: Members = None,
    quota: Gpus = None,
    max_duration: Longest = None,
    max_priority: Highest = None,
    max_nodes: Most = None,
    reason: Annotated[str, option(metavar="TEXT", help="What it is for; read by admins.")] = "",
    key: Keys = None,
    forge: Account = None,
    dry_run: Trial = False,
) -> None:
    """Ask for a slice of your own. It exists when an admin has merged the request, and you own it.

    \b
    Examples:
      egs slice request nlp --quota 16 --reason "translation models"
      egs slice request nlp --cluster east --cluster west --namespace nlp-train --member dee@example.com

    This opens a pull request (on plain Git a branch) even if other changes go straight to main. On a server, an admin's
    slice exists at once. `egs get requests` shows the state of the request.
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
        option(metavar="MAIL", help="An owner, who may change the members; may be repeated."),
    ] = None,
    quota: Gpus = None,
    max_duration: Longest = None,
    max_priority: Highest = None,
    max_nodes: Most = None,
    description: Annotated[str, option(metavar="TEXT", help="For people.")] = "",
    key: Keys = None,
    forge: Account = None,
    dry_run: Trial = False,
) -> None:
    """Create a slice. Its file also replaces a request for it. For admins.

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
    """The fields of a new slice, as `Backend.create_slice` takes them."""
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
    """Delete a slice and its files. Refused while one of its requests waits or holds nodes.

    \b
    Example:
      egs slice delete vision --yes

    Namespaces that were made for it are deleted with their content, unless they have the annotation egs.dev/keep.
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
            "nothing is deleted yet; --yes deletes the files, and then the namespaces that were made for the slice, "
            "with their content"
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
        str | None, of_repository(metavar="LOGIN:ID", help="Their account on the forge, with its number.")
    ] = None,
) -> None:
    """Add a person to a slice, or add keys or an account to a member.

    \b
    Examples:
      egs slice members add vision dee@example.com
      egs slice members add vision dee@example.com --key dee.pub --forge dee:4711
    """
    backend.add_member(name, mail, is_owner=owner, keys=tuple(key or ()), forge=forge)


def remove(backend: Backend, name: Name, mail: Mail) -> None:
    """Remove a person from a slice. Their rights in its namespaces end, and their kubeconfigs stop working.

    \b
    Example:
      egs slice members remove vision dee@example.com
    """
    backend.remove_member(name, mail)


# Inside a command, `output` is its option and not the module.
_rows, _data, _note = output.rows, output.data, output.note
