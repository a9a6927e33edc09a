"""`egs key …` on a server: API keys, made, listed and revoked."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from egs.remote import asking, output
from egs.remote.output import Column, Form, Output, field
from egs.remote.requesting import report

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the group to the app."""
    group = typer.Typer(
        help="Make, list and revoke API keys.\n\n\b\nExample:\n  egs key list",
        short_help="Make, list and revoke API keys.",
        no_args_is_help=True,
    )
    group.command("create", short_help="Make a key; its text is shown once.")(create)
    group.command("list", short_help="List keys, without their texts.")(list_)
    group.command("revoke", short_help="Let a key open nothing any more.")(revoke)
    app.add_typer(group, name="key")


def create(  # noqa: PLR0913 - each is an option of the command
    name: Name,
    role: Annotated[
        Literal["Owner", "Editor", "Viewer"],
        typer.Option(help="Owner: whatever its person may; Editor: file and end requests; Viewer: read."),
    ] = "Viewer",
    slice_: Annotated[
        str | None, typer.Option("--slice", metavar="S", help="Good for this slice only.", show_default=False)
    ] = None,
    email: Annotated[
        str | None,
        typer.Option(metavar="MAIL", help="Whose name it acts in. Default: yours.", show_default=False),
    ] = None,
    not_after: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Last day on which it is good.", show_default="tomorrow"),
    ] = None,
    description: Annotated[str, typer.Option(metavar="TEXT", help="For people.", show_default=False)] = "",
    output: Output = Form.TABLE,
) -> None:
    """Make an API key. Its text is printed once and kept nowhere.

    \b
    Example:
      egs key create nightly --role Editor --slice vision --not-after 2026-12-31
    """
    body = {"name": name, "role": role, "workspaceName": slice_, "username": email, "validity": not_after}
    done = asking.send("POST", "api-key", {**body, "description": description})
    report(f"Create API key {name}", done["change"])
    _note(f"it is good until {done['expiresAt']}; nobody can ever read it again")
    if output is Form.TABLE:
        _text(done["apiKey"])
    else:
        _data({name: value for name, value in done.items() if name != "change"}, output)


_KEYS: tuple[Column, ...] = (
    ("NAME", field("name")),
    ("ROLE", field("role")),
    ("EMAIL", field("email")),
    ("SLICES", lambda row: row["workspaces"] or "all"),
    ("GOOD UNTIL", lambda row: row["expiresAt"] or "for ever"),
    ("STATE", field("state")),
    ("DESCRIPTION", field("description")),
)


def list_(
    slice_: Annotated[
        str | None, typer.Option("--slice", metavar="S", help="Only those of this slice.", show_default=False)
    ] = None,
    output: Output = Form.TABLE,
) -> None:
    """List API keys, without their texts: yours, an admin everybody's.

    \b
    Example:
      egs key list
    """
    _rows(asking.get("api-key/list", {"workspaceName": slice_})["apiKeys"], output, _KEYS, "no key")


def revoke(name: Name) -> None:
    """Let a key open nothing any more.

    \b
    Example:
      egs key revoke nightly
    """
    done = asking.send("DELETE", "api-key", {"name": name})
    report(f"Revoke API key {name}", done["change"])


# The commands call their option `output`, as those on a repository do; the module of that name is meant here.
_rows, _data, _note, _text = output.rows, output.data, output.note, output.text
