"""`egs-reconciler notify`: a test message to the addresses of one secret, and the results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.telling.courier import Answer, sent
from reconciler.telling.messages import Message
from reconciler.telling.route_secrets import Secrets
from schemas.errors import UserError

app = typer.Typer()

TEST = Message("EGS: a test", "If you can read this, notifications of your GPU requests arrive here.", False)
MEANING = {
    Answer.DELIVERED: "its service accepted the message",
    Answer.REFUSED: "its service refused the message, or could not be reached",
    Answer.TIMED_OUT: "its service did not answer in time",
    Answer.UNUSABLE: "apprise does not support this address",
}


@app.command(epilog="Example: egs-reconciler notify --routes routes/ --secret slice.vision.chat")
def notify(
    secret: Annotated[
        str,
        typer.Option(
            "--secret",
            help="Name of the file: project.NAME, slice.SLICE.NAME or person.PERSON.NAME.",
            show_default=False,
        ),
    ],
    routes: Annotated[
        Path,
        typer.Option("--routes", envvar="EGS_ROUTES", help="Folder with the addresses.", show_default=False),
    ],
) -> None:
    """Sends a test message to the addresses of one secret. Exit 1: some were not accepted."""
    if Path(secret).name != secret:
        raise UserError(
            f"--secret {secret} is not a valid file name; write for example slice.vision.chat", "WrongUse"
        )
    answers = [sent(address, TEST, "test") for address in Secrets(routes).read(secret)]
    for number, answer in enumerate(answers, 1):
        typer.echo(f"{secret} address {number}: {answer}: {MEANING[answer]}")
    if set(answers) != {Answer.DELIVERED}:
        raise typer.Exit(1)
