"""The command `egs doctor`. Declaration only; the work is imported late."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from egs.commands.options import Output, OwnContext, OwnKubeconfig, Repo
from egs.commands.output import Form


class Part(StrEnum):
    """What it looks at."""

    MACHINE = "machine"
    REPOSITORY = "repository"
    CLUSTER = "cluster"
    SERVER = "server"


def register(app: typer.Typer) -> None:
    app.command("doctor", short_help="Look for trouble, and say what to do.")(doctor)


def doctor(
    parts: Annotated[
        list[Part] | None,
        typer.Argument(
            metavar="[PART]...",
            help="machine, repository, cluster, server. Default: those that are named or at hand.",
            show_default=False,
        ),
    ] = None,
    repo: Repo = None,
    kubeconfig: OwnKubeconfig = None,
    context: OwnContext = None,
    output: Output = Form.TABLE,
) -> None:
    """Look at this machine, a repository, a cluster and a server, and say what to do. Nothing is changed.

    \b
    Examples:
      egs doctor
      egs doctor cluster --context north

    Without PART it looks at the machine, at the repository that you stand in or name, at a cluster if --kubeconfig or
    --context names one, and at the server that you are logged in to. Exit 1 if something is bad.
    """
    from reconciler.cli.answers.doctor import show_findings
    from reconciler.cli.answers.member_kubeconfig import Own

    code = show_findings(tuple(parts or ()), repo, Own(kubeconfig, context), output)
    if code:
        raise typer.Exit(code)
