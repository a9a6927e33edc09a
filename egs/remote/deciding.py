"""`egs approve` and `egs reject` on a server: the admin's word about a request as it reads there when it is shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from egs.commands import output
from egs.commands.options import Request
from egs.remote import asking
from egs.remote.changes import report
from egs.remote.fields import named

Rule = Literal["request", "extension"]
NotAfter = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="The word counts until then (RFC 3339).", show_default="30 days from now"
    ),
]


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    app.command("approve", short_help="Approve a request that waits (admins).")(approve)
    app.command("reject", short_help="Reject a request (admins).")(reject)


def approve(  # noqa: PLR0913 - each is an option of the command
    request: Request,
    limit_gpus: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Most GPUs it may hold.", show_default="what it asks for"),
    ] = None,
    limit_nodes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Most nodes it may hold.", show_default="what it asks for"),
    ] = None,
    limit_extend: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Most grace, with --rule extension.", show_default=False),
    ] = None,
    not_after: NotAfter = None,
    rule: Annotated[
        Rule, typer.Option(help="What it lifts: what keeps it waiting, or the bound of its grace.")
    ] = "request",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For the requester.", show_default=False)] = "",
) -> None:
    """Approve a request exactly as it is shown then; an edit that asks for more needs a new word.

    \b
    Examples:
      egs approve vision/train --not-after 2026-12-01T00:00:00Z --reason "for the paper"
      egs approve vision/train --rule extension --limit-extend 3h

    The server writes it in your name; a word signed with your own key is given on a repository.
    """
    bounds = {"gpus": limit_gpus, "nodes": limit_nodes, "extend": limit_extend}
    limit = {name: value for name, value in bounds.items() if value is not None}
    _decide(request, {"decision": "approve", "limit": limit or None, "rule": rule}, reason, not_after)


def reject(
    request: Request,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Shown to the requester.", show_default=False)],
    not_after: NotAfter = None,
) -> None:
    """Reject a request as it is shown then; it ends as Rejected and says why.

    \b
    Example:
      egs reject vision/train --reason "wait for the new nodes"
    """
    _decide(request, {"decision": "reject"}, reason, not_after)


def _asked(request: str, shown: dict[str, Any]) -> str:
    """What the word is about, in a sentence."""
    size = f"{shown['numberOfGPUNodes']} x {shown['numberOfGPUs']} GPUs"
    shapes = ", ".join(shown["gpuShapes"]) or "any shape"
    where = ", ".join(shown["preferredClusters"]) or "any cluster"
    lasting = f"{shown['exitDuration']} and {shown['extend']} of grace"
    return (
        f"{request} asks for {size}, {shapes}, in {where}, for {lasting}, with priority {shown['priority']}"
    )


def _decide(request: str, word: dict[str, Any], reason: str, not_after: str | None) -> None:
    shown = asking.get("gpr", {"gprId": named(request)})
    output.note(_asked(request, shown))
    digest = shown["specDigest"] or None
    body = {"gprId": request, **word, "specDigest": digest, "reason": reason, "notAfter": not_after}
    done = asking.send("POST", "approvals", body)
    report(f"{word['decision'].capitalize()} {request}", done["change"])
