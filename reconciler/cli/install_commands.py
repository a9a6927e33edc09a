"""The commands `egs install` and `egs uninstall`. Declarations only; the work is imported late."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from egs.commands.options import OwnContext, OwnKubeconfig
from egs.commands.output import Form


class Role(StrEnum):
    """What an installation is to its cluster."""

    CONTROLLER = "controller"
    CLUSTER = "cluster"


Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Of the installation.")]


def register(app: typer.Typer) -> None:
    app.command("install", short_help="Install or upgrade in a cluster, without Helm.")(install)
    app.command("uninstall", short_help="Uninstall from a cluster.")(uninstall)


def install(  # noqa: PLR0913 - each is an option of the command
    repo: Annotated[
        list[str] | None,
        typer.Option("--repo", metavar="URL", help="The repository; may be repeated.", show_default=False),
    ] = None,
    role: Annotated[
        Role | None,
        typer.Option(help="controller plans and drives; cluster applies (pull mode).", show_default=False),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="C", help="Name of this cluster's document.", show_default=False),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(metavar="NAME[:TAG|@DIGEST]", help="The image.", show_default=False),
    ] = None,
    git_secret: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET", help="Secret with the credentials of the repository.", show_default=False
        ),
    ] = None,
    verify: Annotated[
        Literal["none", "signature", "forge", "both"] | None,
        typer.Option(
            help="How changes of main are verified; none: everyone who can push counts as an admin.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(
            "--values", "-f", metavar="FILE", help="YAML with any value of the chart.", show_default=False
        ),
    ] = None,
    name: Name = "egs",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the objects; no cluster is contacted.")
    ] = False,
    output: Annotated[Form, typer.Option("--output", "-o", help="Output format.")] = Form.TABLE,
    kubeconfig: OwnKubeconfig = None,
    context: OwnContext = None,
) -> None:
    """Install in namespace egs-system of a cluster, or upgrade: the same objects as the Helm chart's.

    \b
    Examples:
      egs install -f values.yaml --image example.com/egs:0.1.0
      egs install --repo https://forge.example.com/fleet.git --verify none --dry-run -o yaml
    """
    from reconciler.cli.answers.installation import InstallOptions, Own, put_in, show

    part = None if role is None else role.value
    asked = InstallOptions(tuple(repo or ()), part, cluster, image, git_secret, verify, values)
    own = Own(kubeconfig, context)
    if dry_run:
        show(asked, name, output)
    else:
        put_in(asked, name, own, output)


def uninstall(
    project: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P",
            help="Only this project's; may be repeated. Default: the only one.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Uninstall even while requests hold nodes; they lose them at once."),
    ] = False,
    name: Name = "egs",
    kubeconfig: OwnKubeconfig = None,
    context: OwnContext = None,
) -> None:
    """Take everything out of a cluster again: marks on nodes, slices, admission objects, and what was installed.

    \b
    Example:
      egs uninstall --context east

    Namespaces that were made for slices go with all that is in them; adopted ones stay. What Helm installed is
    stopped, and left for `helm uninstall`.
    """
    from reconciler.cli.answers.installation import Own, take_out

    take_out(tuple(project or ()), name, Own(kubeconfig, context), is_sure=yes, force=force)
