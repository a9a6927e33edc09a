"""How functions of this package are compiled: the only module that names numba.

`compiled` functions are inlined into their callers. An `entry` is called from Python; its machine code, with all that
it calls, is kept on disk (see `scheduler.kernel.cache`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from scheduler.kernel.cache import folder

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""Other threads may run meanwhile, divisions are not checked, and references to arrays are not counted: nothing here
makes or keeps an array, and the counting took three quarters of the time."""
_PART = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}
"""Only compiled code calls parts; wrappers for Python would be most of the code to compile. Parts are inlined because a
call pushes every array of the world onto the stack, which took a third of the time."""
_jit: Any = numba.njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A part; as in C, nothing is checked."""
    return cast(Function, _jit(**_OPTIONS, **_PART)(function))


def entry(function: Function) -> Function:
    """Called from Python, without blocking other threads; kept on disk if possible."""
    dispatcher = _jit(**_OPTIONS)(function)
    kept = folder()
    config: Any = numba.config
    before = config.CACHE_DIR
    try:
        if kept is not None:
            config.CACHE_DIR = str(kept)
            dispatcher.enable_caching()
    except (OSError, RuntimeError):
        pass  # the disk cannot be written: each process compiles it anew
    finally:
        config.CACHE_DIR = before
    return cast(Function, dispatcher)
