"""Calls of the compiled part of planning. Arrays are passed as they lie in memory, and changed in place.

A tuple of arrays becomes a struct: for each array its address, the length of a row and the number of rows, for each
whole number itself, eight bytes each. An array of another type than its annotation says would be read as something
else, so that is an error here. Arrays may be changed, so none that is read-only is taken.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.library import load
from scheduler.kernel.world import Drawn, Holders, Lines, Outcome, Promises, Scratch, Spots, World

Struct = tuple[Any, ...]


def draw_lines(lines: Lines, shift: int, drawn: Drawn) -> None:
    """Draw all lines of a side, from line `shift` on."""
    _called("egs_draw_lines", lines, shift, drawn)


def stand(world: World, promises: Promises, outcome: Outcome, begin: int) -> int:
    """Step 1 from request `begin` on. Returns the request for which others must change nodes, or the number of all."""
    return _called("egs_stand", world, promises, outcome, begin)


def move_all(world: World, moved: Spots, pool: int) -> None:
    """Lift all but the last, then put all at their starts, from the groups in `world.wanted`. `moved` has the requests
    and their starts."""
    _called("egs_move_all", world, moved, pool)


def place(world: World, holders: Holders, scratch: Scratch, outcome: Outcome, standing: bool) -> None:
    """Step 2."""
    _called("egs_place", world, holders, scratch, outcome, int(standing))


def compress(world: World) -> None:
    """Step 3."""
    _called("egs_compress", world)


def replay_place(replay: Struct) -> None:
    """Step 2 of a replay's plan (`scheduler.replay.replanning`)."""
    _called("egs_replay_place", replay)


def replay_compress(replay: Struct) -> None:
    """Step 3 of a replay's plan."""
    _called("egs_replay_compress", replay)


def _called(entry: str, *values: Struct | int) -> int:
    found = load()
    assert found is not None, "no engine is chosen where there is no library"
    call = found[entry]
    call.restype = ctypes.c_int64
    given = [packed(value) if isinstance(value, tuple) else ctypes.c_int64(value) for value in values]
    return int(call(*given))


def packed(values: Struct) -> ctypes.Array[ctypes.c_int64]:
    """The struct of a tuple, whose arrays must outlive it. TypeError: an array is not as its annotation says."""
    words: list[int] = []
    _append(words, values)
    return (ctypes.c_int64 * len(words))(*words)


def _append(words: list[int], values: Struct) -> None:
    for value, kind in zip(values, _kinds(type(values)), strict=True):
        if kind is None:
            words.append(value)
        elif isinstance(value, tuple):
            _append(words, value)
        else:
            _append_array(words, value, kind)


def _append_array(words: list[int], array: NDArray[Any], kind: type) -> None:
    if array.dtype != kind or not array.flags.c_contiguous or not array.flags.writeable:
        raise TypeError(f"an array of {array.dtype} where writable rows of {kind.__name__} are needed")
    shape = array.shape
    words += (array.__array_interface__["data"][0], shape[-1], shape[-2] if len(shape) > 1 else 1)


@cache
def _kinds(struct: type) -> tuple[Any, ...]:
    """Of each field: the type of an array's elements, a tuple's own type, or None for a whole number."""
    return tuple(_kind(hint) for hint in get_type_hints(struct).values())


def _kind(hint: Any) -> Any:
    if hint is int:
        return None
    arguments = get_args(hint)
    return get_args(arguments[1])[0] if arguments else hint


assert np.dtype(np.bool_).itemsize == 1, "flags are bytes"
