"""Opens the backend that the running command is for."""

from __future__ import annotations

from egs.commands.backend import REPOSITORY, Backend, Where
from egs.modes import SERVER


def backend(where: Where) -> Backend:
    """The server if one is chosen (`egs.modes`), else the repository."""
    opened = REPOSITORY.get()
    if opened is not None and SERVER.get() is None:
        return opened(where)
    from egs.remote.server import Server

    return Server()
