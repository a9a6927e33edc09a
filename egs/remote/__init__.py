"""The commands of `egs` on a server: the same words and the same answers as on a repository, over the HTTP API.

`register` adds those that a server carries out; `egs.cli` puts them over the commands of a repository where both are
installed. Modules named after a group hold the command lines; `asking` is the one door to the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add every command that a server carries out."""
    from egs.remote import deciding, keys, sharing

    for part in (sharing, deciding, keys):
        part.register(app)
