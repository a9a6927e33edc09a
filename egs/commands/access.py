"""`egs kubeconfig`: a way into a slice's namespaces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from egs.commands import output
from egs.commands.backend import Access, Backend
from egs.commands.declare import READS_NOW, declare
from egs.commands.errors import not_allowed, wrong_use
from egs.commands.options import OwnContext, OwnKubeconfig, argument, of_repository, option
from egs.contexts import write_private


def register(app: typer.Typer) -> None:
    declare(app, "kubeconfig", "Get a kubeconfig of a slice.", kubeconfig, READS_NOW)


def kubeconfig(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    slice_: Annotated[str, argument(metavar="SLICE", help="The slice.")],
    cluster: Annotated[str, option(metavar="C", help="The cluster.")],
    namespace: Annotated[
        str | None, of_repository(metavar="N", help="This namespace only. Default: all of them.")
    ] = None,
    member: Annotated[
        str | None, of_repository(metavar="EMAIL", help="The member. Default: you, as git is configured.")
    ] = None,
    static: Annotated[
        bool, of_repository("--static", help="Embed a token, for machines without `egs`.")
    ] = False,
    expires: Annotated[
        str,
        of_repository(metavar="DURATION", help="How long that token lives, 10m to 7d.", show_default=True),
    ] = "8h",
    plugin_api: Annotated[
        str,
        of_repository(metavar="VERSION", help="v1beta1 for a kubectl older than 1.22.", show_default=True),
    ] = "v1",
    kubeconfig: OwnKubeconfig = None,
    context: OwnContext = None,
    out: Annotated[
        Path | None,
        option(metavar="FILE", help="Write it to this file, readable only by you. Default: stdout."),
    ] = None,
) -> None:
    """Get a kubeconfig of a slice's namespaces in a cluster. Earlier ones of yours stop working at once.

    \b
    Examples:
      egs kubeconfig vision --cluster east --out ~/.kube/vision
      egs kubeconfig vision --cluster east --static --expires 2d --member bo@example.com

    On a repository, kubectl then gets short-lived tokens by itself, with your own credentials for the cluster or an
    admin's. A server puts a token into the file, which is valid for an hour: keep it secret.
    """
    if out is not None:
        _check_outside_of_git(out)
    life = expires if static else None
    text = backend.kubeconfig(
        slice_, cluster, Access(namespace, member, life, plugin_api, kubeconfig, context, out)
    )
    _hand_over(text, out)


def _check_outside_of_git(path: Path) -> None:
    folder = path.expanduser().absolute().parent
    if any((place / ".git").exists() for place in (folder, *folder.parents)):
        raise not_allowed(
            f"{path} is inside of a Git work tree, where it may get into a commit; write it elsewhere"
        )


def _hand_over(text: str, out: Path | None) -> None:
    if out is None:
        output.text(text.rstrip("\n"))
        return
    try:
        write_private(out.expanduser().absolute(), text)
    except OSError as error:
        raise wrong_use(f"--out {out}: it cannot be written ({error.strerror})") from error
    output.note(f"wrote {out}; use it with `kubectl --kubeconfig {out} get pods`")
