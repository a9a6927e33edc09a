"""Plain functions from scripts, with their public signature; `egs.aio.functions` makes coroutines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from egs.arguments import check_call
from egs.steps import Feed, Script
from egs.transport import feed, run

P = ParamSpec("P")
T = TypeVar("T")


def blocking(build: Callable[P, Script[T]]) -> Callable[P, T]:
    """The function that runs the script of `build`."""

    @functools.wraps(build)
    def function(*args: P.args, **kwargs: P.kwargs) -> T:
        check_call(build, args, kwargs)
        return run(build(*args, **kwargs))

    return documented(function, build, "{}")


def iterating(build: Callable[P, Feed[T]]) -> Callable[P, Iterator[T]]:
    """The function that iterates over the feed of `build`."""

    @functools.wraps(build)
    def function(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        check_call(build, args, kwargs)
        return feed(build(*args, **kwargs))

    return documented(function, build, "Iterator[{}]")


def documented(function: Callable[P, T], build: Callable[..., Any], returns: str) -> Callable[P, T]:
    """With the public signature: the result type instead of the script."""
    signature = getattr(build, "__signature__", None) or inspect.signature(build)
    shown = str(signature.return_annotation)
    inner = shown.partition("[")[2].removesuffix("]") or "Any"
    function.__signature__ = signature.replace(return_annotation=returns.format(inner))  # type: ignore[attr-defined]
    function.__annotations__ = dict(function.__annotations__) | {"return": returns.format(inner)}
    function.__module__ = "egs"
    return function
