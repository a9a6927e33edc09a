"""What `egs portal` does on a repository: serve its pages on this machine, for the person whose machine it is.

Who can start it can read the repository anyway, and pushes with their own credentials; so they are logged in by the
address with which git is configured, and have the rights that the manifests give it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from egs.commands.backend import PAGES, Where

if TYPE_CHECKING:
    import typer


def register(_: typer.Typer) -> None:
    """Makes `egs portal` work on a repository."""
    PAGES.set(_serve)


def _serve(where: Where, port: int, show: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; `show` gets the link that logs the person in. WrongUse: no repository."""
    import tempfile
    from datetime import timedelta
    from pathlib import Path

    from portal.local_server import served
    from portal.settings import PortalSettings
    from reconciler.clock import SystemClock
    from reconciler.settings import Settings
    from reconciler.signals import ended_by_signals, wait_for
    from reconciler.sources.command_errors import WrongUse
    from reconciler.sources.open_source import opened

    with opened(where.repo) as source, tempfile.TemporaryDirectory(prefix="egs-portal-") as state:
        remote = source.upstream()
        if remote is None:
            raise WrongUse("this folder is pushed nowhere; name a repository with --repo PATH|URL")
        base = Settings(repo=remote.address, state=Path(state), poll=timedelta(seconds=5))
        settings = PortalSettings(base, session_life=timedelta(hours=12))
        with served(settings, SystemClock(), port) as local, ended_by_signals() as ended:
            show(local.link(source.author(where.author)))
            wait_for(ended)
