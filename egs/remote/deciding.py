"""`egs approve` and `egs reject` on a server: the admin's word about a request as it reads there now."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from egs.remote import asking
from egs.remote.options import Request
from egs.remote.requesting import report
from egs.remote.showing import named

Rule = Literal["request", "extension"]
NotAfter = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="The word counts until then (RFC 3339).", show_default="30 days from now"
    ),
]


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    app.command("approve", short_help="Approve a request that waits for an admin.")(approve)
    app.command("reject", short_help="Reject a request.")(reject)


def approve(
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
        Rule, typer.Option(help="What it lifts: what keeps it waiting, or the bound of its grace.")
    ] = "request",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For the requester.", show_default=False)] = "",
) -> None:
    """Approve a request exactly as it reads now; an edit that asks for more needs a new word.

    \b
    Examples:
      egs approve vision/train --not-after 2026-12-01T00:00:00Z --reason "for the paper"
      egs approve vision/train --rule extension

    The server writes it in your name; a word signed with your own key is given on a repository.
    """
    bounds = {"gpus": limit_gpus, "nodes": limit_nodes}
    limit = {name: value for name, value in bounds.items() if value is not None}
    _decide(request, {"decision": "approve", "limit": limit or None, "rule": rule}, reason, not_after)


def reject(
    request: Request,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Shown to the requester.", show_default=False)],
    not_after: NotAfter = None,
) -> None:
    """Reject a request as it reads now; it ends as Rejected and says why.

    \b
    Example:
      egs reject vision/train --reason "wait for the new nodes"
    """
    _decide(request, {"decision": "reject"}, reason, not_after)


def _decide(request: str, word: dict[str, Any], reason: str, not_after: str | None) -> None:
    body = {"gprId": named(request), **word, "reason": reason, "notAfter": not_after}
    done = asking.send("POST", "approvals", body)
    report(f"{word['decision'].capitalize()} {request}", done["change"])
