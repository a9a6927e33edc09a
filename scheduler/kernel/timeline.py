"""Whole numbers over time, many lines in one arena: here compiled planning spends nearly all its time.

A line is a step function. Its steps lie in blocks of at most `SIZE`. For each block a directory has the first instant,
the least and the greatest value, and what was added to the whole block. Taking or giving nodes changes only the steps
of the two blocks in which the hold begins and ends; a search skips whole blocks.

Lines never forget a step, so blocks stay at least half full after a split, and the space for them is known beforehand
(see `scheduler.kernel.state`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled

SIZE = 32
NEVER = 1 << 61
"""No instant: later than `scheduler.snapshot.FOREVER` by any margin."""
FOREVER = 1 << 60
BLOCK, COUNT, ADDED, LEAST, MOST = 0, 1, 2, 3, 4
"""Columns of the directory: the block, its steps, what was added to all of them, and their bounds with that."""
OFFSET, LENGTH, CAPACITY = 0, 1, 2
"""Columns of a line: its part of the directory."""
NEXT_BLOCK, NEXT_ENTRY = 0, 1
"""The next free block, and the next free entry of the directory."""


class Lines(NamedTuple):
    """The arena. `first` and `entries` are the directory; `at` and `value` are the blocks."""

    first: NDArray[np.int64]
    entries: NDArray[np.int32]
    at: NDArray[np.int64]
    value: NDArray[np.int32]
    line: NDArray[np.int64]
    free: NDArray[np.int64]


def lines(count: int, steps: int) -> Lines:
    """Space for `count` lines with at most that many `steps` in total. Memory is used only as it is written."""
    blocks = count + 2 * (steps // SIZE) + 8
    entries = 4 * (count + 2 * blocks)
    return Lines(
        np.empty(entries, dtype=np.int64),
        np.empty((entries, 5), dtype=np.int32),
        np.empty((blocks, SIZE), dtype=np.int64),
        np.empty((blocks, SIZE), dtype=np.int32),
        np.zeros((count, 3), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@compiled
def draw(a: Lines, line: int, at: NDArray[np.int64], value: NDArray[np.int64]) -> None:
    """Make a line of these steps; the first is its origin."""
    half = SIZE // 2
    blocks = (at.size + half - 1) // half
    offset = a.free[NEXT_ENTRY]
    a.line[line, OFFSET], a.line[line, LENGTH], a.line[line, CAPACITY] = offset, blocks, 2 * blocks + 2
    a.free[NEXT_ENTRY] += 2 * blocks + 2
    for i in range(blocks):
        block, entry = a.free[NEXT_BLOCK], offset + i
        a.free[NEXT_BLOCK] += 1
        count = min(half, at.size - i * half)
        for j in range(count):
            a.at[block, j], a.value[block, j] = at[i * half + j], value[i * half + j]
        a.first[entry] = a.at[block, 0]
        a.entries[entry, BLOCK], a.entries[entry, COUNT], a.entries[entry, ADDED] = block, count, 0
        measure(a, entry)


@compiled
def measure(a: Lines, entry: int) -> None:
    """Compute the least and the greatest value of a block again."""
    # Compilers vectorise loops over slices that start at index 0.
    values = a.value[a.entries[entry, BLOCK], : a.entries[entry, COUNT]]
    least = most = values[0]
    for j in range(values.size):
        least = min(least, values[j])
        most = max(most, values[j])
    a.entries[entry, LEAST] = least + a.entries[entry, ADDED]
    a.entries[entry, MOST] = most + a.entries[entry, ADDED]


@compiled
def entry_of(a: Lines, line: int, instant: int) -> int:
    """The entry of the block in which `instant` lies; before the origin: the first."""
    low = a.line[line, OFFSET]
    count = a.line[line, LENGTH]
    while count > 1:
        half = count >> 1
        if a.first[low + half] <= instant:
            low += half
        count -= half
    return low


@compiled
def step_of(a: Lines, entry: int, instant: int) -> int:
    """The step of that block in which `instant` lies."""
    at, step = a.at[a.entries[entry, BLOCK], : a.entries[entry, COUNT]], 0
    for j in range(at.size):
        step += at[j] <= instant
    return max(step - 1, 0)


@compiled
def add(a: Lines, line: int, begin: int, end: int, amount: int) -> None:
    """Add `amount` on [begin, end); the part before the origin is ignored."""
    lasts = end >= FOREVER
    if not lasts:
        _cut(a, line, end)
    entry = _cut(a, line, begin)
    stop = a.line[line, OFFSET] + a.line[line, LENGTH]
    step = step_of(a, entry, begin)
    while True:
        following = a.first[entry + 1] if entry + 1 < stop else NEVER
        if step == 0 and (lasts or following <= end):
            a.entries[entry, ADDED] += amount
            a.entries[entry, LEAST] += amount
            a.entries[entry, MOST] += amount
        else:
            block, count = a.entries[entry, BLOCK], a.entries[entry, COUNT]
            at, value = a.at[block, step:count], a.value[block, step:count]
            for j in range(at.size):
                value[j] += np.int32(amount if lasts or at[j] < end else 0)
            measure(a, entry)
        if following >= end:
            break
        entry, step = entry + 1, 0


@compiled
def _cut(a: Lines, line: int, instant: int) -> int:
    """Make a step begin at `instant`; returns its entry."""
    entry = entry_of(a, line, instant)
    step = step_of(a, entry, instant)
    block = a.entries[entry, BLOCK]
    if a.at[block, step] >= instant:
        return entry
    if a.entries[entry, COUNT] == SIZE:
        entry = _split(a, line, entry)
        if step >= SIZE // 2:
            entry, step = entry + 1, step - SIZE // 2
        block = a.entries[entry, BLOCK]
    count = a.entries[entry, COUNT]
    for j in range(count, step + 1, -1):
        a.at[block, j], a.value[block, j] = a.at[block, j - 1], a.value[block, j - 1]
    a.at[block, step + 1], a.value[block, step + 1] = instant, a.value[block, step]
    a.entries[entry, COUNT] = count + 1
    return entry


@compiled
def _split(a: Lines, line: int, entry: int) -> int:
    """Move the upper half of a full block into a new block after it; returns the lower half's entry."""
    entry = _room_for_entry(a, line, entry)
    block, fresh, half = a.entries[entry, BLOCK], a.free[NEXT_BLOCK], SIZE // 2
    a.free[NEXT_BLOCK] += 1
    for j in range(half):
        a.at[fresh, j], a.value[fresh, j] = a.at[block, half + j], a.value[block, half + j]
    last = a.line[line, OFFSET] + a.line[line, LENGTH]
    for i in range(last, entry + 1, -1):
        a.first[i] = a.first[i - 1]
        for column in range(5):
            a.entries[i, column] = a.entries[i - 1, column]
    a.line[line, LENGTH] += 1
    a.first[entry + 1] = a.at[fresh, 0]
    a.entries[entry + 1, BLOCK], a.entries[entry + 1, ADDED] = fresh, a.entries[entry, ADDED]
    a.entries[entry, COUNT] = a.entries[entry + 1, COUNT] = half
    measure(a, entry)
    measure(a, entry + 1)
    return entry


@compiled
def _room_for_entry(a: Lines, line: int, entry: int) -> int:
    """Move the line's directory, if it is full, to a place of twice the size; returns the entry there."""
    offset, length, capacity = a.line[line, OFFSET], a.line[line, LENGTH], a.line[line, CAPACITY]
    if length < capacity:
        return entry
    fresh = a.free[NEXT_ENTRY]
    a.free[NEXT_ENTRY] += 2 * capacity
    a.line[line, OFFSET], a.line[line, CAPACITY] = fresh, 2 * capacity
    for i in range(length):
        a.first[fresh + i] = a.first[offset + i]
        for column in range(5):
            a.entries[fresh + i, column] = a.entries[offset + i, column]
    return fresh + entry - offset


@compiled
def lowest(a: Lines, line: int, begin: int, end: int) -> int:
    """Least value on [begin, end), which is not empty."""
    entry = entry_of(a, line, begin)
    stop = a.line[line, OFFSET] + a.line[line, LENGTH]
    step = step_of(a, entry, begin)
    least = np.int64(NEVER)
    while True:
        following = a.first[entry + 1] if entry + 1 < stop else NEVER
        if step == 0 and following <= end:
            least = min(least, a.entries[entry, LEAST])
        elif a.entries[entry, LEAST] < least:
            block, added = a.entries[entry, BLOCK], a.entries[entry, ADDED]
            least = min(least, a.value[block, step] + added)
            for j in range(step + 1, a.entries[entry, COUNT]):
                if a.at[block, j] < end:
                    least = min(least, a.value[block, j] + added)
        if following >= end:
            return least
        entry, step = entry + 1, 0


@compiled
def first_gap(a: Lines, line: int, need: int, length: int, after: int, before: int) -> int:
    """First b in [after, before) with at least `need` on all of [b, b + length); NEVER if there is none."""
    if after >= before:
        return NEVER
    entry = entry_of(a, line, after)
    stop = a.line[line, OFFSET] + a.line[line, LENGTH]
    step = step_of(a, entry, after)
    begin = np.int64(NEVER)  # of the gap that is open
    while True:
        following = a.first[entry + 1] if entry + 1 < stop else NEVER
        is_found, begin = _gap_within(a, entry, step, need, length, after, begin)
        if (following if begin == NEVER else begin) >= before:
            return NEVER
        if is_found or (begin != NEVER and following - begin >= length):
            return begin
        entry, step = entry + 1, 0


@compiled
def _gap_within(
    a: Lines, entry: int, step: int, need: int, length: int, after: int, begin: int
) -> tuple[bool, int]:
    """Whether a gap that is long enough ends in this block, and its begin; else the begin of the gap open at its end.

    `begin` belongs to the gap that is open at the block's start; NEVER: none is.
    """
    block = a.entries[entry, BLOCK]
    if a.entries[entry, LEAST] >= need:
        return False, (max(after, a.at[block, step]) if begin == NEVER else begin)
    if a.entries[entry, MOST] < need:
        is_found = begin != NEVER and a.first[entry] - begin >= length
        return is_found, (begin if is_found else np.int64(NEVER))
    enough = need - a.entries[entry, ADDED]
    at, value = a.at[block, : a.entries[entry, COUNT]], a.value[block]
    for j in range(step, at.size):
        if value[j] >= enough:
            if begin == NEVER:
                begin = max(after, at[j])
        elif begin != NEVER:
            if at[j] - begin >= length:
                return True, begin
            begin = np.int64(NEVER)
    return False, begin


@compiled
def after_instant(a: Lines, line: int, instant: int) -> int:
    """When the next step begins; NEVER after the last."""
    entry = entry_of(a, line, instant)
    step = step_of(a, entry, instant) + 1
    if step < a.entries[entry, COUNT]:
        return a.at[a.entries[entry, BLOCK], step]
    stop = a.line[line, OFFSET] + a.line[line, LENGTH]
    return a.first[entry + 1] if entry + 1 < stop else NEVER


@compiled
def gaps_around(a: Lines, line: int, need: int, begin: int, end: int) -> tuple[int, int]:
    """Of the stretches with at least `need` that touch [begin, end): when the first begins, how long the longest is.

    The stretches count whole, also beyond [begin, end). Without any the longest is 0.
    """
    entry = entry_of(a, line, begin)
    stop = a.line[line, OFFSET] + a.line[line, LENGTH]
    step = step_of(a, entry, begin)
    since, longest, opened = np.int64(NEVER), np.int64(0), np.int64(NEVER)
    if a.value[a.entries[entry, BLOCK], step] + a.entries[entry, ADDED] >= need:
        since = opened = _reaches_back(a, line, need, entry, step)
    while entry < stop:
        block, enough = a.entries[entry, BLOCK], need - a.entries[entry, ADDED]
        # If all steps of a block have enough, or none has, the first step is enough to look at.
        is_mixed = a.entries[entry, LEAST] < need <= a.entries[entry, MOST]
        for j in range(step, a.entries[entry, COUNT] if is_mixed else step + 1):
            at = a.at[block, j]
            if opened == NEVER and at >= end:
                return since, longest
            if a.value[block, j] >= enough:
                opened = min(opened, at)
                since = min(since, at)
            else:
                longest = max(longest, at - opened)
                opened = np.int64(NEVER)
        entry, step = entry + 1, 0
    return since, (longest if opened == NEVER else NEVER)


@compiled
def _reaches_back(a: Lines, line: int, need: int, entry: int, step: int) -> int:
    """When the stretch with at least `need` that contains this step begins."""
    begin = a.at[a.entries[entry, BLOCK], step]
    while True:
        block, enough = a.entries[entry, BLOCK], need - a.entries[entry, ADDED]
        for j in range(step, -1, -1):
            if a.value[block, j] < enough:
                return begin
            begin = a.at[block, j]
        entry -= 1
        if entry < a.line[line, OFFSET]:
            return begin
        step = a.entries[entry, COUNT] - 1


@compiled
def first_below(a: Lines, line: int, need: int, begin: int, end: int) -> int:
    """The first instant of [begin, end) with less than `need`; NEVER if there is none."""
    entry = entry_of(a, line, begin)
    stop = a.line[line, OFFSET] + a.line[line, LENGTH]
    step = step_of(a, entry, begin)
    while True:
        if a.entries[entry, LEAST] < need:
            block, enough = a.entries[entry, BLOCK], need - a.entries[entry, ADDED]
            for j in range(step, a.entries[entry, COUNT]):
                if a.at[block, j] >= end:
                    return NEVER
                if a.value[block, j] < enough:
                    return max(begin, a.at[block, j])
        entry, step = entry + 1, 0
        if entry >= stop or a.first[entry] >= end:
            return NEVER


@compiled
def last_below(a: Lines, line: int, need: int, end: int) -> int:
    """When the last stretch before `end` with less than `need` ends, at most `end`; there must be one."""
    entry = entry_of(a, line, end - 1)
    while True:
        if a.entries[entry, LEAST] < need:
            block, enough = a.entries[entry, BLOCK], need - a.entries[entry, ADDED]
            for j in range(a.entries[entry, COUNT] - 1, -1, -1):
                if a.at[block, j] < end:
                    if a.value[block, j] < enough:
                        return end
                    end = a.at[block, j]
        end = min(end, a.first[entry])
        entry -= 1
