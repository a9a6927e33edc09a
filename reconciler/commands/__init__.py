"""The commands over a repository: what people ask of it and change in it.

Found by `egs` through the entry-point group `egs.commands`. Modules named after a group (`asking`, `showing`,
`requesting`, `sharing`, `keying`, `proposals`, `changing`, `watching`, `entering`, `installing`, `simulating`,
`insights`) hold the command lines alone; the work behind each is imported when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add every command of this package to the app of `egs`."""
    from reconciler.commands import (
        asking,
        changing,
        entering,
        insights,
        installing,
        keying,
        proposals,
        requesting,
        sharing,
        showing,
        simulating,
        watching,
    )

    asking.register(app)
    simulating.register(app)
    insights.register(app)
    showing.register(app)
    watching.register(app)
    requesting.register(app)
    sharing.register(app)
    keying.register(app)
    proposals.register(app)
    changing.register(app)
    entering.register(app)
    installing.register(app)
