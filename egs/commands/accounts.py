"""The servers that a person uses, and the identity on each: login, logout, context, whoami."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from egs.commands import output
from egs.commands.errors import not_allowed, wrong_use
from egs.commands.options import Output, argument, option
from egs.commands.output import Column, Form, field
from egs.contexts import Context, checked, path_of, read, write
from egs.modes import SERVER, Target, key_in
from egs.remote import asking

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_Name = Annotated[str, argument(metavar="NAME", help="The context.")]


def register(app: typer.Typer) -> None:
    app.command("login", short_help="Use a server from now on.")(login)
    app.command("logout", short_help="Forget the key or token of a server.")(logout)
    app.command("whoami", short_help="Show who you are on a server.")(whoami)
    group = typer.Typer(
        help="List, choose and delete servers that you logged in to.\n\n\b\nExample:\n  egs context use prod",
        short_help="List, choose and delete servers.",
        no_args_is_help=True,
    )
    group.command("list", short_help="List them; a star marks the current one.")(list_)
    group.command("use", short_help="Make one the current one.")(use)
    group.command("delete", short_help="Delete one.")(delete)
    app.add_typer(group, name="context")


def login(
    server: Annotated[
        str | None, argument(metavar="SERVER", help="The server's address. Default: that of the context.")
    ] = None,
    api_key_file: Annotated[
        str | None,
        option(
            "--api-key-file",
            metavar="FILE",
            help="File with an API key; - reads it from stdin. Default: log in with a browser.",
        ),
    ] = None,
    context: Annotated[
        str | None, option(metavar="NAME", help="Name of the context. Default: the server's host.")
    ] = None,
) -> None:
    """Log in to a server and make it the current context, which commands outside a repository use.

    \b
    Examples:
      egs login https://egs.example.com
      egs login https://egs.example.com --api-key-file ~/.secrets/egs --context ci

    Without a key it shows an address and a code; open the address in a browser and log in there.
    """
    book = read(path_of(os.environ))
    name = context or ("" if server else book.current)
    address = server or (book.named(name).server if name else "")
    if not address:
        raise wrong_use("say which server: egs login https://HOST")
    name = checked(name or _host(address))
    _warn_of_plain_http(address)
    found = _by_key(address, api_key_file) if api_key_file is not None else _by_browser(address)
    write(path_of(os.environ), book.having(name, found))
    output.note(f"{found.email} is logged in to {found.server}; the context {name} is the current one")


def _by_key(address: str, file: str) -> Context:
    key = sys.stdin.readline().strip() if file == "-" else key_in(Path(file).expanduser())
    SERVER.set(Target(address, key))
    me = asking.get("auth")
    return Context(address.rstrip("/"), me["email"], api_key=key)


def _by_browser(address: str) -> Context:
    from egs.remote.device import id_token

    # There is no credential yet, and these two paths need none.
    SERVER.set(Target(address, token="-"))  # noqa: S106 - no password
    told = asking.get("auth/config")
    if not told.get("issuer"):
        raise not_allowed(
            f"{address} has no identity provider; log in with --api-key-file FILE", "NoProvider"
        )
    token = id_token(told["issuer"], told["clientId"], told.get("scopes") or "openid email")
    opened = asking.send("POST", "auth", {"idToken": token})
    return Context(address.rstrip("/"), opened["email"], token=opened["token"], expires=opened["expiresAt"])


def _host(address: str) -> str:
    host = (urlsplit(address).netloc.rpartition("@")[2] or "server").replace(":", "-").strip("[]-")
    return host[:63]


def _warn_of_plain_http(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        output.note(
            f"{parts.hostname} is reached over plain http: others on the network can read your credentials"
        )


def logout(
    context: Annotated[
        str | None, argument(metavar="CONTEXT", help="The context. Default: the current one.")
    ] = None,
) -> None:
    """Forget the key or token of a context; its server's address stays, so that `egs login` knows it.

    \b
    Example:
      egs logout
    """
    book = read(path_of(os.environ))
    name = context or book.current
    if not name:
        raise not_allowed("there is no current context; `egs context list` lists all", "NotFound")
    found = book.named(name)
    bare = Context(found.server, found.email, more=found.more)
    current = book.current
    write(path_of(os.environ), book.having(name, bare).using(current or name))
    output.note(
        f"the key or token for {found.server} is deleted here; `egs key revoke` ends a key everywhere"
    )


def whoami(output: Output = Form.TABLE) -> None:
    """Show who you are on the server, and your rights there.

    \b
    Example:
      egs whoami -o json
    """
    server = asking.target()
    me = asking.get("auth")
    content = {"server": server.server, "context": server.context or None, **me}
    if output is not Form.TABLE:
        _data(content, output)
        return
    _text(f"{me['email']} at {server.server}{', an admin' if me['isAdmin'] else ''} (by {me['via']})")
    for grant in me["grants"]:
        _text(f"  {grant['role']} of {_where(grant)}")


def _where(grant: dict[str, Any]) -> str:
    workspaces = grant.get("workspaces")
    return "the whole project" if workspaces is None else ", ".join(workspaces) or "nothing"


_CONTEXTS: tuple[Column, ...] = (
    ("CURRENT", lambda row: "*" if row["current"] else None),
    ("NAME", field("name")),
    ("SERVER", field("server")),
    ("EMAIL", field("email")),
    ("OPENED BY", field("by")),
)


def list_(output: Output = Form.TABLE) -> None:
    """List the contexts, without their keys and tokens.

    \b
    Example:
      egs context list
    """
    book = read(path_of(os.environ))
    rows = [
        {
            "name": name,
            "server": found.server,
            "email": found.email or None,
            "by": "key" if found.api_key else "login" if found.token else None,
            "expires": found.expires or None,
            "current": name == book.current,
        }
        for name, found in sorted(book.contexts.items())
    ]
    _rows(rows, output, _CONTEXTS, "no context; `egs login SERVER` makes one")


def use(name: _Name) -> None:
    """Make a context the current one.

    \b
    Example:
      egs context use prod
    """
    book = read(path_of(os.environ)).using(name)
    write(path_of(os.environ), book)
    output.note(f"commands outside a repository now use {book.named(name).server}")


def delete(name: _Name) -> None:
    """Delete a context with its key or token.

    \b
    Example:
      egs context delete old
    """
    write(path_of(os.environ), read(path_of(os.environ)).without(name))


# Inside a command, `output` is its option and not the module.
_rows, _data, _text = output.rows, output.data, output.text
