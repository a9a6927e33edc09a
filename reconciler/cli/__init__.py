"""The backend of the commands for repositories, and the commands that only a repository has.

`egs` finds it by the entry-point group `egs.commands`. Modules named after commands only declare them; the work
behind each is imported when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from egs.commands.running.job_logs import LOGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import typer

    from egs.commands.backend import Backend, Where
    from egs.commands.running.job_logs import Read


def register(app: typer.Typer) -> Callable[[Where], Backend]:
    """Adds every command that only a repository has; returns the backend of the others (`egs.commands`)."""
    from reconciler.cli import (
        doctor_command,
        file_commands,
        forecast_command,
        install_commands,
        pull_commands,
        question_commands,
        simulate_command,
        token_command,
    )

    question_commands.register(app)
    simulate_command.register(app)
    forecast_command.register(app)
    pull_commands.register(app)
    file_commands.register(app)
    token_command.register(app)
    install_commands.register(app)
    doctor_command.register(app)
    LOGS.set(_logs)
    return _opened


def _logs(job: Mapping[str, Any], kubeconfig: str | None, context: str | None) -> Read:
    from reconciler.cli.answers.job_logs import opened

    return opened(job, kubeconfig, context)


def _opened(where: Where) -> Backend:
    from reconciler.cli.repository import Repository

    return Repository(where)
