"""How functions of this package are compiled: the only place that names numba.

`compiled` functions are parts: they become part of whatever calls them. An `entry` is called from Python; its machine
code is kept on disk (see `scheduler.kernel.cache`), with all its parts in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from scheduler.kernel.cache import folder

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""Other threads may run meanwhile; no division is checked; and arrays are not counted by who refers to them: nothing
here makes an array or keeps one, and the counting took three quarters of the time."""
_PART = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}
"""A call would push every array of the world onto the stack, some hundred words: that took a third of the time."""
"""Parts are called from compiled code alone: ways into each from Python were most of what there was to compile."""
_jit: Any = numba.njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A part; nothing is checked, as in C."""
    return cast(Function, _jit(**_OPTIONS, **_PART)(function))


def entry(function: Function) -> Function:
    """Called from Python, kept on disk where that is possible, and without holding up other threads."""
    dispatcher = _jit(**_OPTIONS)(function)
    kept = folder()
    config: Any = numba.config
    before = config.CACHE_DIR
    try:
        if kept is not None:
            config.CACHE_DIR = str(kept)
            dispatcher.enable_caching()
    except (OSError, RuntimeError):
        pass  # a disk that cannot be written: it works as well, and is compiled anew in each process
    finally:
        config.CACHE_DIR = before
    return cast(Function, dispatcher)
