"""`egs key …`: make, list and revoke keys of the HTTP API."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from egs.commands import output
from egs.commands.backend import Backend
from egs.commands.declare import CHANGES, PUSHES, READS, declare, group
from egs.commands.options import Output, argument, of_repository, option
from egs.commands.output import Column, Form, at, field

Name = Annotated[str, argument(metavar="NAME", help="The key's name.")]


class KeyRole(StrEnum):
    OWNER = "Owner"
    EDITOR = "Editor"
    VIEWER = "Viewer"


def register(app: typer.Typer) -> None:
    keys = group(
        app,
        "key",
        "Create, list and revoke API keys.",
        "Create, list and revoke keys of the HTTP API. The repository stores only their SHA-256.\n\n\b\nExample:\n"
        "  egs key create nightly --role Editor --slice vision",
    )
    declare(keys, "create", "Create a key; it is shown once.", create, CHANGES)
    declare(keys, "list", "Keys without their secrets.", list_keys, READS)
    declare(keys, "revoke", "Revoke a key.", revoke, PUSHES)


def create(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    name: Name,
    role: Annotated[
        KeyRole,
        option(
            help="Owner: everything the person may do; Editor: file, change and end requests; Viewer: read."
        ),
    ],
    slice_: Annotated[
        list[str] | None,
        option(
            "--slice",
            metavar="S",
            help="Slice that the key is for; may be repeated on a repository. Default: the whole project.",
        ),
    ] = None,
    for_: Annotated[
        str | None,
        option(
            "--for",
            metavar="MAIL",
            help="The person that the key acts for; another person needs an admin. Default: you.",
        ),
    ] = None,
    expires: Annotated[
        str, typer.Option(metavar="D", help="How long the key is valid; on a repository also never.")
    ] = "90d",
    description: Annotated[str, option(metavar="TEXT", help="What it is for.")] = "",
    dry_run: Annotated[
        bool, of_repository("--dry-run", help="Show what would happen and write nothing.")
    ] = False,
) -> None:
    """Create a key of the HTTP API. It is printed once and stored nowhere: keep it in a vault.

    \b
    Examples:
      egs key create nightly --role Editor --slice vision
      egs key create dashboard --role Viewer --for robot@example.com --expires 365d

    It never allows more than the manifests allow the person, and stops working when they leave.
    """
    about = {"role": role.value, "slices": tuple(slice_ or ()), "email": for_, "expires": expires}
    output.text(backend.create_key(name, {**about, "description": description}, is_trial=dry_run))


KEYS: tuple[Column, ...] = (
    ("NAME", field("name")),
    ("STATE", field("state")),
    ("EMAIL", field("email")),
    ("ROLE", field("role")),
    ("SLICES", lambda row: row["slices"] or "all"),
    ("UNTIL", at("notAfter")),
    ("DESCRIPTION", field("description")),
)


def list_keys(backend: Backend, output: Output = Form.TABLE) -> None:
    """List keys with person, role, slices, end and state. A server shows your own; admins see all.

    \b
    Example:
      egs key list
    """
    _rows(backend.keys(), output, KEYS, "there are no keys; create one with `egs key create`")


def revoke(backend: Backend, name: Name) -> None:
    """Revoke a key. Its manifest stays, marked as revoked.

    \b
    Example:
      egs key revoke nightly
    """
    backend.revoke_key(name)


# Inside a command, `output` is its option and not the module.
_rows = output.rows
