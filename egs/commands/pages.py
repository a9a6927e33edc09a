"""`egs portal`: the pages, in a browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from egs.commands import output
from egs.commands.backend import Backend
from egs.commands.declare import READS_NOW, declare
from egs.commands.options import of_repository, option


def register(app: typer.Typer) -> None:
    declare(app, "portal", "Open the pages in a browser.", portal, READS_NOW)


def portal(
    backend: Backend,
    print_: Annotated[bool, option("--print", help="Only print the link.")] = False,
    port: Annotated[
        int,
        of_repository("--port", min=0, max=65535, metavar="N", help="Serve on this port; 0: any free one."),
    ] = 0,
) -> None:
    """Open the portal's pages in a browser, logged in as you.

    \b
    Examples:
      egs portal
      egs portal --repo https://forge.example.com/fleet.git --print

    A server makes a link that logs you in within the next minute. On a repository the pages are served on this machine
    until Ctrl-C, for the person as whom git is configured; changes are pushed with your own credentials, and a verified
    repository counts them only if the fleet's own portal or a signature vouches for them.
    """

    def show(link: str) -> None:
        output.text(link)
        output.flush()  # it may go to a pipe, and the portal goes on
        if not print_ and not webbrowser.open(link):
            output.note("there is no browser here; open the link yourself")

    backend.portal(port, show)
