"""Coroutine functions from scripts; `egs.functions` makes plain ones."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from egs.aio.transport import feed, run
from egs.arguments import check_call
from egs.functions import documented
from egs.steps import Feed, Script

P = ParamSpec("P")
T = TypeVar("T")


def coroutine(build: Callable[P, Script[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The coroutine function that runs the script of `build`."""

    @functools.wraps(build)
    async def function(*args: P.args, **kwargs: P.kwargs) -> T:
        check_call(build, args, kwargs)
        return await run(build(*args, **kwargs))

    return _shown(function, build, "{}")


def iterating(build: Callable[P, Feed[T]]) -> Callable[P, AsyncIterator[T]]:
    """The function that iterates over the feed of `build`."""

    @functools.wraps(build)
    def function(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        check_call(build, args, kwargs)
        return feed(build(*args, **kwargs))

    return _shown(function, build, "AsyncIterator[{}]")


def _shown(function: Callable[P, T], build: Callable[..., Any], returns: str) -> Callable[P, T]:
    shown = documented(function, build, returns)
    shown.__module__ = "egs.aio"
    return shown
