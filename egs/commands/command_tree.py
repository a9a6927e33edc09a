"""The commands of an app, each built when it is asked for.

Typer builds every command before it runs one: 50 ms for eighty commands, which each `egs` would pay. A list of commands
in a help text says a sentence of each, for which none is built with its options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import partial
from typing import Any

import typer
from typer.main import get_command_from_info, get_command_name

Limit = Callable[[Any, str], None]
"""Called with each command or group that is built, and its path below `egs`."""


class Commands(Mapping[str, Any]):
    """The commands of a group, by name, in the order of their registration."""

    def __init__(self, builders: Mapping[str, Callable[[], Any]]) -> None:
        self._builders = builders
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = self._builders[name]()
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builders)

    def __len__(self) -> int:
        return len(self._builders)


def command_tree(app: typer.Typer, limit: Limit, path: str = "") -> Any:
    """The app as a group of commands; `limit` may change each command when it is built."""
    bare = copy(app)
    bare.registered_commands, bare.registered_groups = [], []
    group = typer.main.get_group(bare) if path else typer.main.get_command(bare)
    groups = {name: partial(_group, inner, name, limit, path) for name, inner in _groups(app)}
    commands = dict(_commands(app))
    whole = {name: partial(_command, info, name, limit, path) for name, info in commands.items()}
    bare_ones = {name: partial(_command, _bare(info), name, limit, path) for name, info in commands.items()}
    group.commands = Commands(whole | groups)  # type: ignore[attr-defined]
    listed = copy(group)
    listed.commands = Commands(bare_ones | groups)  # type: ignore[attr-defined]
    group.format_commands = listed.format_commands  # type: ignore[attr-defined]
    return group


def _commands(app: typer.Typer) -> Iterator[tuple[str, Any]]:
    for info in app.registered_commands:
        assert info.callback is not None
        yield info.name or get_command_name(info.callback.__name__), info


def _groups(app: typer.Typer) -> Iterator[tuple[str, typer.Typer]]:
    for info in app.registered_groups:
        assert isinstance(info.name, str)
        assert info.typer_instance is not None
        yield info.name, info.typer_instance


def _command(info: Any, name: str, limit: Limit, path: str) -> Any:
    command = get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)
    limit(command, f"{path} {name}".strip())
    return command


def _bare(info: Any) -> Any:
    """The same command without options, for a list of commands."""
    found = copy(info)
    found.help = info.help or inspect.getdoc(info.callback)
    found.callback = _nothing
    return found


def _nothing() -> None:
    pass


def _group(app: typer.Typer, name: str, limit: Limit, path: str) -> Any:
    own = f"{path} {name}".strip()
    group = command_tree(app, limit, own)
    group.name = name
    limit(group, own)
    return group
