"""Commands that let people into clusters: kubeconfig, and the one that kubectl calls for it. Only their words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.command_options import Repo

Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Your own kubeconfig of the cluster. Default: KUBECONFIG, else ~/.kube/config.",
        show_default=False,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Context of it. Default: its current one.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    app.command("kubeconfig", short_help="Get a kubeconfig of a slice.")(kubeconfig)
    app.command("kubeconfig-token", short_help="Called by kubectl: get a token.")(kubeconfig_token)


def kubeconfig(  # noqa: PLR0913 - each is an option of the command
    slice_: Annotated[str, typer.Argument(metavar="SLICE", help="The slice.", show_default=False)],
    cluster: Annotated[str, typer.Option(metavar="C", help="The cluster.", show_default=False)],
    namespace: Annotated[
        str | None,
        typer.Option(metavar="N", help="This namespace only. Default: all of them.", show_default=False),
    ] = None,
    member: Annotated[
        str | None,
        typer.Option(
            metavar="EMAIL", help="For whom. Default: you, as git is configured.", show_default=False
        ),
    ] = None,
    static: Annotated[
        bool, typer.Option("--static", help="Put a token in, for machines without `egs`.")
    ] = False,
    expires: Annotated[
        str, typer.Option(metavar="DURATION", help="How long that token lives, 10m to 7d.")
    ] = "8h",
    plugin_api: Annotated[
        str, typer.Option(metavar="VERSION", help="v1beta1 for a kubectl older than 1.22.")
    ] = "v1",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write it there, for your eyes only. Default: stdout.", show_default=False
        ),
    ] = None,
    repo: Repo = None,
) -> None:
    """Get a kubeconfig of a slice's namespaces in a cluster. Those you got before end at once.

    \b
    Examples:
      egs kubeconfig vision --cluster east --out ~/.kube/vision
      egs kubeconfig vision --cluster east --static --expires 2d --member bo@example.com

    kubectl then gets short-lived tokens by itself, with your own credentials of the cluster or an admin's.
    """
    from reconciler.cli.answers.member_kubeconfig import KubeconfigOptions, Own, Shape, give

    shape = Shape(expires if static else None, plugin_api, out)
    give(repo, KubeconfigOptions(slice_, cluster, namespace, member), Own(kubeconfig, context), shape)


def kubeconfig_token(
    namespace: Annotated[str, typer.Option(metavar="N", help="The namespace.", show_default=False)],
    account: Annotated[str, typer.Option(metavar="NAME", help="The ServiceAccount.", show_default=False)],
    secret: Annotated[
        str, typer.Option(metavar="NAME", help="The Secret it is bound to.", show_default=False)
    ],
    uid: Annotated[str, typer.Option(metavar="UID", help="That very Secret.", show_default=False)],
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print a token in the words of kubectl's plugins; kubeconfigs of `egs kubeconfig` call it.

    \b
    Example:
      egs kubeconfig-token --namespace vision --account A --secret S --uid U
    """
    from reconciler.cli.answers.member_kubeconfig import Own, answer_kubectl
    from reconciler.clusters.kubernetes.tenancy.member_tokens import Ticket

    answer_kubectl(Ticket(namespace, account, secret, uid), Own(kubeconfig, context))
