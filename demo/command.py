"""The command `egs demo`."""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

WIDTH = 140
"""Width of output to a file or a pipe."""


def register(app: typer.Typer) -> None:
    @app.command(epilog="Example: egs demo --once")
    def demo(
        once: Annotated[
            bool, typer.Option("--once", help="Play a scripted story in simulated time, print it, and exit.")
        ] = False,
        speed: Annotated[
            float, typer.Option("--speed", min=1, max=3600, help="Simulated seconds per real second.")
        ] = 60,
        port: Annotated[
            int | None,
            typer.Option(
                "--port",
                min=0,
                max=65535,
                metavar="N",
                help="Serve the portal on this port. Default: any free one.",
            ),
        ] = None,
        directory: Annotated[
            Path | None,
            typer.Option(
                "--dir", help="Folder for the repository and all state; absent: a new temporary one."
            ),
        ] = None,
    ) -> None:
        """Run everything on this machine: a repository, two simulated clusters, a controller, agents.

        Without --once it runs until Ctrl-C and shows queue, requests, nodes and events live; push to the printed
        repository, or use `egs gpr create`, from another terminal. The portal is served on this machine only; the
        page shows a link that opens it, and an API key. With --once it plays nine hours in a few seconds, and
        exits 0 only if every promise was kept.
        """
        from rich.console import Console

        from demo.live import watch
        from demo.once import play

        if once and port is not None:
            raise typer.BadParameter("--once plays a story and does not serve; leave --port out")
        logging.basicConfig(level=logging.ERROR)
        root = directory or Path(tempfile.mkdtemp(prefix="egs-demo-"))
        # A pipe has no width to detect, and names should not wrap.
        console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
        kept = play(root, console) if once else watch(root, console, speed, port or 0)
        raise typer.Exit(0 if kept else 1)
