"""Commands and options that work on a repository only, and their refusal on a server.

With only the client installed, help hides them.
"""

from __future__ import annotations

from typing import Any

from egs.commands.errors import Said, wrong_use
from egs.commands.options import ON_A_REPOSITORY

NOT_ON_A_SERVER = frozenset({"codeowners", "forecast", "gpr move", "pr", "prune", "resubmit", "slice edit"})
"""Commands and groups. Commands for the caller's own files and machines are not listed: they run everywhere."""


def limit(command: Any, path: str, *, is_alone: bool) -> None:
    """Make a command refuse what works on a repository only; if only the client is installed, hide that too."""
    if any(path == refused or path.startswith(f"{refused} ") for refused in NOT_ON_A_SERVER):
        _refuse(command, path, is_alone)
        return
    marked = [p for p in command.params if getattr(p, "rich_help_panel", None) == ON_A_REPOSITORY]
    if marked and command.callback is not None:
        _refuse_options(command, path, marked, is_alone)


def _refuse(command: Any, path: str, is_alone: bool) -> None:
    def refused(**_: object) -> None:
        raise not_here(f"egs {path}", is_alone=is_alone)

    command.hidden = command.hidden or (is_alone and path in NOT_ON_A_SERVER)
    if not hasattr(command, "commands"):
        command.callback = refused


def _refuse_options(command: Any, path: str, marked: list[Any], is_alone: bool) -> None:
    carried_out = command.callback

    def checked(**given: Any) -> Any:
        for option in marked:
            value = given.get(option.name)
            if value not in (None, [], ()) and value != option.default:
                raise not_here(f"{option.opts[0]} of egs {path}", is_alone=is_alone)
        return carried_out(**given)

    for option in marked:
        option.hidden = is_alone
    command.callback = checked


def not_here(what: str, *, is_alone: bool = False) -> Said:
    """The refusal of a command or option on a server."""
    remedy = "install egs-gitops for that" if is_alone else "run it in one, or name one with --repo"
    return wrong_use(f"{what} works on a repository and not on a server; {remedy}")
