"""The commands over a repository: what people ask of it and change in it.

Found by `egs` through the entry-point group `egs.commands`. Modules named after a group (`asking`, `showing`,
`requesting`, `sharing`, `keying`, `proposals`, `changing`, `watching`, `entering`, `installing`, `simulating`,
`insights`) hold the command lines alone; the work behind each is imported when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import typer

    from egs.commands.backend import Backend, Where


def register(app: typer.Typer) -> Callable[[Where], Backend]:
    """Add every command that only a repository has; gives the backend of the others (`egs.commands`)."""
    from reconciler.cli import (
        access_commands,
        decision_commands,
        forecast_command,
        install_commands,
        key_commands,
        move_command,
        pull_commands,
        question_commands,
        simulate_command,
        slice_commands,
    )

    question_commands.register(app)
    simulate_command.register(app)
    forecast_command.register(app)
    move_command.register(app)
    slice_commands.register(app)
    key_commands.register(app)
    pull_commands.register(app)
    decision_commands.register(app)
    access_commands.register(app)
    install_commands.register(app)
    return _opened


def _opened(where: Where) -> Backend:
    from reconciler.cli.repository import Repository

    return Repository(where)
