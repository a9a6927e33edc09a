"""Declare a command: a function of a backend and the typed arguments, plus the options that choose where it runs.

`declare` appends those options, so each is written once and means the same everywhere. Options that only a repository
understands are in the panel `ON_A_REPOSITORY`; `egs.commands.limits` refuses them on a server.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_type_hints

import typer

from egs.commands import options
from egs.commands.backend import REPOSITORY, Backend, Where
from egs.modes import SERVER


@dataclass(frozen=True, slots=True)
class Place:
    """The options that choose where a command runs, by the field of `Where` that they set."""

    options: Mapping[str, Any] = field(default_factory=dict)
    by_default: Literal["push", "pull-request"] | None = None


_WRITES = {"repo": options.Repo, "author": options.Author}
READS = Place({"repo": options.Repo, "now": options.Now})
READS_THEN = Place({**READS.options, "at": options.At})
"""Also past states."""
READS_NOW = Place({"repo": options.Repo})
LOOKS = Place(
    {
        **READS.options,
        "kubeconfigs": options.Kubeconfigs,
        "kubeconfig": options.OwnKubeconfig,
        "context": options.OwnContext,
        "state": options.ClusterState,
        "metrics_files": options.MetricsFiles,
    }
)
"""Also looks into clusters."""
CHANGES = Place({"pull_request": options.AsPull, **_WRITES})
CHANGES_AT = Place({**CHANGES.options, "now": options.Now})
PUSHES = Place({"pull_request": options.StraightOn, **_WRITES}, "push")
PUSHES_AT = Place({**PUSHES.options, "now": options.Now}, "push")
ASKS = Place({"pull_request": options.AsksFirst, **_WRITES}, "pull-request")
ASKS_AT = Place({**ASKS.options, "now": options.Now}, "pull-request")
ASKS_OF_METRICS = Place({**ASKS_AT.options, "metrics_files": options.MetricsFiles}, "pull-request")
"""Also asks the clusters' Prometheus."""
DECIDES = Place({**_WRITES, "now": options.Now})


def group(app: typer.Typer, name: str, short: str, about: str) -> typer.Typer:
    """A new group of commands; `about` is its help, an example included."""
    made = typer.Typer(help=about, short_help=short, no_args_is_help=True)
    app.add_typer(made, name=name)
    return made


def declare(app: typer.Typer, name: str, short: str, function: Callable[..., None], place: Place) -> None:
    """Add `function(backend, …)` as a command; its other parameters become options and arguments."""
    add(app, (name, short, function.__doc__ or ""), function, _typed(function), place)


@cache
def _typed(function: Callable[..., None]) -> tuple[inspect.Parameter, ...]:
    """Its parameters after the backend, with their annotations evaluated."""
    hints = get_type_hints(function, include_extras=True)
    _backend, *own = inspect.signature(function).parameters.values()
    return tuple(one.replace(annotation=hints[one.name]) for one in own)


def add(
    app: typer.Typer,
    words: tuple[str, str, str],
    function: Callable[..., None],
    typed: Sequence[inspect.Parameter],
    place: Place,
    *also: str,
) -> None:
    """The same for given parameters. `words`: name, short help and help; `also`: hidden further names."""
    name, short, about = words

    def command(**given: Any) -> None:
        where = Where(**{one: given.pop(one) for one in place.options}, by_default=place.by_default)
        function(opened(where), **given)

    more = [parameter(one, hint) for one, hint in place.options.items()]
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([one.replace(kind=keyword) for one in (*typed, *more)])
    command.__signature__ = signature  # type: ignore[attr-defined]  # read by Typer
    command.__doc__ = about
    app.command(name, short_help=short)(command)
    for other in also:
        app.command(other, short_help=short, hidden=True)(command)


def parameter(name: str, hint: Any, default: Any = None) -> inspect.Parameter:
    """A parameter of a command; without a default it must be given (`inspect.Parameter.empty`)."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def opened(where: Where) -> Backend:
    """The server if one is chosen (`egs.modes`), else the repository."""
    repository = REPOSITORY.get()
    if repository is not None and SERVER.get() is None:
        return repository(where)
    from egs.remote.server import Server

    return Server(where.at)
