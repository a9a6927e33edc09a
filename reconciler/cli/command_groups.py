"""Groups of commands to which a repository adds its own."""

from __future__ import annotations

import typer


def group_of(app: typer.Typer, name: str) -> typer.Typer:
    """The group of that name, which `egs.commands` declares."""
    found = next(group.typer_instance for group in app.registered_groups if group.name == name)
    assert found is not None
    return found
