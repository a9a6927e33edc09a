"""`egs approve` and `egs reject`: an admin's decision about a request as it reads now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from egs.commands.backend import Backend, Decision, Rule
from egs.commands.declare import DECIDES, declare
from egs.commands.options import Request, of_repository, option

NotAfter = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="The decision counts until then (RFC 3339).", show_default="30 days from now"
    ),
]
As = Annotated[
    str | None,
    of_repository("--as", metavar="NAME", help="The admin who decides. Default: the one with git's address."),
]
SigningKey = Annotated[
    Path | None,
    of_repository(
        "--key", metavar="FILE", help="SSH key to sign with. Default: the one that git signs with."
    ),
]


def register(app: typer.Typer) -> None:
    declare(app, "approve", "Approve a request that waits (admins).", approve, DECIDES)
    declare(app, "reject", "Reject a request (admins).", reject, DECIDES)


def approve(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    request: Request,
    limit_gpus: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Most GPUs it may hold.", show_default="what it asks for"),
    ] = None,
    limit_nodes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Most nodes it may hold.", show_default="what it asks for"),
    ] = None,
    not_after: NotAfter = None,
    rule: Annotated[
        Rule, typer.Option(help="What it approves: the request itself, or its extension.")
    ] = "request",
    limit_extend: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            help="Most grace beyond the duration; with --rule extension.",
            show_default="what it asks for",
        ),
    ] = None,
    as_: As = None,
    key: SigningKey = None,
    reason: Annotated[str, option(metavar="TEXT", help="For the requester.")] = "",
) -> None:
    """Approve a request exactly as it reads now; an edit that asks for more needs a new approval.

    \b
    Examples:
      egs approve vision/train --not-after 2026-12-01T00:00:00Z --reason "for the paper"
      egs approve vision/train --key ~/.ssh/id_ed25519
      egs approve vision/train --rule extension --limit-extend 3h

    On a repository it is signed with --key, or with the SSH key that git signs with; that needs no network. A server
    writes it in your name.
    """
    limits = (limit_gpus, limit_nodes)
    backend.decide(request, Decision("approve", reason, *limits, not_after, as_, rule, limit_extend, key))


def reject(
    backend: Backend,
    request: Request,
    reason: Annotated[str, option(metavar="TEXT", help="Shown to the requester.")],
    not_after: NotAfter = None,
    as_: As = None,
    key: SigningKey = None,
) -> None:
    """Reject a request as it reads now; it ends as Rejected and says why.

    \b
    Example:
      egs reject vision/train --reason "wait for the new nodes"
    """
    backend.decide(request, Decision("reject", reason, not_after=not_after, handle=as_, key=key))
