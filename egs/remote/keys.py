"""`egs key …` on a server: keys of the HTTP API, made, listed and revoked."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from egs import clock
from egs.remote import asking, output
from egs.remote.errors import wrong_use
from egs.remote.output import Column, Form, Output, Row, at, field
from egs.remote.requesting import report

Name = Annotated[str, typer.Argument(metavar="NAME", help="The key's name.", show_default=False)]
_LASTING = re.compile(r"([0-9]{1,6})([wdhm])")
_UNITS = {"w": timedelta(weeks=1), "d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}


class KeyRole(StrEnum):
    """What a key carries."""

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


Role = Annotated[
    KeyRole,
    typer.Option(
        help="Owner: whatever the person may; Editor: file, change and end requests; Viewer: read.",
        show_default=False,
    ),
]
OneSlice = Annotated[
    list[str] | None,
    typer.Option(
        "--slice",
        metavar="S",
        help="Slice it is good for, one on a server. Default: the whole project.",
        show_default=False,
    ),
]
InName = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="MAIL",
        help="In whose name it acts (another's: admins). Default: yours.",
        show_default=False,
    ),
]
Expires = Annotated[str, typer.Option(metavar="D", help="How long it is good for, in whole days.")]
Description = Annotated[str, typer.Option(metavar="TEXT", help="What it is for.", show_default=False)]


def create(
    name: Name,
    role: Role,
    slice_: OneSlice = None,
    for_: InName = None,
    expires: Expires = "90d",
    description: Description = "",
) -> None:
    """Make a key of the HTTP API. It is printed once and is nowhere else: keep it in a vault.

    \b
    Examples:
      egs key create nightly --role Editor --slice vision
      egs key create dashboard --role Viewer --for robot@example.com --expires 365d
    """
    if slice_ is not None and len(slice_) > 1:
        raise wrong_use(
            "on a server a key is good for one slice or for the project; on a repository for several"
        )
    about = {
        "name": name,
        "role": str(role),
        "workspaceName": slice_[0] if slice_ else None,
        "username": for_,
    }
    done = asking.send(
        "POST", "api-key", {**about, "validity": last_day(expires), "description": description}
    )
    report(f"Create API key {name}", done["change"])
    output.note("it is shown here and never again, so keep it in a vault")
    output.text(done["apiKey"])


def last_day(expires: str) -> str:
    """The last day (UTC) of a key that is good for so long from now. Raises Said."""
    found = _LASTING.fullmatch(expires)
    if found is None:
        raise wrong_use(f"--expires {expires}: write how long, for example 90d; on a server every key ends")
    try:
        return f"{clock.now() + int(found[1]) * _UNITS[found[2]]:%Y-%m-%d}"
    except OverflowError as error:
        raise wrong_use(f"--expires {expires}: no key lives so long; write for example 90d") from error


_KEYS: tuple[Column, ...] = (
    ("NAME", field("name")),
    ("STATE", field("state")),
    ("EMAIL", field("email")),
    ("ROLE", field("role")),
    ("SLICES", lambda row: row["slices"] or "all"),
    ("UNTIL", at("notAfter")),
    ("DESCRIPTION", field("description")),
)


def list_keys(output: Output = Form.TABLE) -> None:
    """List keys with their people, roles and ends, without their secrets: yours, an admin everybody's.

    \b
    Example:
      egs key list
    """
    found = [_row(one) for one in asking.get("api-key/list")["apiKeys"]]
    _rows(found, output, _KEYS, "there are no keys; `egs key create` makes one")


def _row(shown: Row) -> dict[str, Any]:
    """A row of `egs key list -o json`."""
    return {
        "name": shown["name"],
        "email": shown["email"],
        "role": shown["role"],
        "slices": list(shown.get("workspaces") or ()),
        "notAfter": shown.get("expiresAt") or None,
        "state": shown["state"],
        "description": shown["description"],
    }


def revoke(name: Name) -> None:
    """Make a key open nothing any more; its manifest stays and says so.

    \b
    Example:
      egs key revoke nightly
    """
    done = asking.send("DELETE", "api-key", {"name": name})
    report(f"Revoke API key {name}", done["change"])


# The command calls its option `output`, as all others do; the module of that name is meant here.
_rows = output.rows
