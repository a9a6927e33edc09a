"""Questions that need a plan, one at a time in a thread of their own, so that cheap ones are answered meanwhile.

More threads would not help: they would take the interpreter from each other and from the other answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from portal.http.errors import unavailable

Answer = TypeVar("Answer")
MOST_WAITING = 32
"""Questions that may wait; further ones are refused."""


class Costly:
    """Used by one event loop; `stop` ends the thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="costly")
        self._waiting = 0

    async def answer(self, ask: Callable[..., Answer], *about: Any) -> Answer:
        """The result of `ask`, when its turn comes. ApiError 503: too many wait."""
        if self._waiting >= MOST_WAITING:
            raise unavailable("too many questions that need a plan are waiting; try again later")
        self._waiting += 1
        try:
            here = copy_context()
            return await asyncio.get_running_loop().run_in_executor(self._thread, here.run, ask, *about)
        finally:
            self._waiting -= 1

    def stop(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
