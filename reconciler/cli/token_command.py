"""The command that kubectl calls for kubeconfigs of `egs kubeconfig`. Declarations only."""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands.options import OwnContext, OwnKubeconfig


def register(app: typer.Typer) -> None:
    app.command("kubeconfig-token", short_help="Called by kubectl: get a token.")(kubeconfig_token)


def kubeconfig_token(
    namespace: Annotated[str, typer.Option(metavar="N", help="The namespace.", show_default=False)],
    account: Annotated[str, typer.Option(metavar="NAME", help="The ServiceAccount.", show_default=False)],
    secret: Annotated[
        str, typer.Option(metavar="NAME", help="The Secret it is bound to.", show_default=False)
    ],
    uid: Annotated[str, typer.Option(metavar="UID", help="UID of that Secret.", show_default=False)],
    kubeconfig: OwnKubeconfig = None,
    context: OwnContext = None,
) -> None:
    """Print a token in the format of kubectl's plugins; kubeconfigs of `egs kubeconfig` call it.

    \b
    Example:
      egs kubeconfig-token --namespace vision --account A --secret S --uid U
    """
    from reconciler.cli.answers.member_kubeconfig import Own, answer_kubectl
    from reconciler.clusters.kubernetes.tenancy.member_tokens import Ticket

    answer_kubectl(Ticket(namespace, account, secret, uid), Own(kubeconfig, context))
