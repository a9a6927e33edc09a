/* Free nodes over time as step functions: a row of an array for each pool.

A row is searched by bisection and changed by moving all later steps. Up to some thousands of steps that costs less than
the blocks of timeline.h, which are for a hundred thousand. Steps are never forgotten.

Held by tests/scheduler/replay/test_replanning.py. */

#ifndef EGS_STEP_FUNCTIONS_H
#define EGS_STEP_FUNCTIONS_H

#include "arrays.h"

/* By row: instants, the free nodes from each on, and their number (`size`). The first is the beginning of time. */
typedef struct { Words at, free, size; } Steps;

/* Index of the first of `size` rising instants that is not before this one. */
static inline word place_in(const word *at, word size, word instant) {
    word low = 0, high = size;
    while (low < high) {
        const word middle = (low + high) >> 1;
        if (at[middle] < instant)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The step that contains `instant`. */
static inline word step_in(const Steps *s, word row, word instant) {
    return greatest_of(place_in(&AT(s->at, row, 0), s->size.v[row], instant + 1) - 1, 0);
}

/* Nodes free at `instant`. */
static inline word free_at(const Steps *s, word row, word instant) {
    return AT(s->free, row, step_in(s, row, instant));
}

/* Whether that many are free on all of [begin, end). */
static inline bool row_has_room(const Steps *s, word row, word need, word begin, word end) {
    const word *at = &AT(s->at, row, 0), *free = &AT(s->free, row, 0), size = s->size.v[row];
    word k = step_in(s, row, begin);
    while (k < size && free[k] >= need && at[k] < end)
        k += 1;
    return k == size || at[k] >= end;
}

/* First b in [after, before) with at least `need` on all of [b, b + length); NEVER if there is none. */
static word gap_in_row(const Steps *s, word row, word need, word length, word after, word before) {
    const word *at = &AT(s->at, row, 0), *free = &AT(s->free, row, 0), size = s->size.v[row];
    const word k = step_in(s, row, after);
    word begin = free[k] >= need ? after : NEVER;
    for (word j = k + 1; j < size; j++) {
        if (begin != NEVER && at[j] - begin >= length)
            return begin;
        if (free[j] < need) {
            begin = NEVER;
            if (at[j] >= before)
                return NEVER;
        } else if (begin == NEVER) {
            begin = at[j];
            if (begin >= before)
                return NEVER;
        }
    }
    return begin < before ? begin : NEVER;
}

/* Make a step begin there; returns its index. */
static inline word cut_row(const Steps *s, word row, word instant) {
    word *at = &AT(s->at, row, 0), *free = &AT(s->free, row, 0);
    const word size = s->size.v[row], place = place_in(at, size, instant);
    if (place < size && at[place] == instant)
        return place;
    memmove(&at[place + 1], &at[place], (size - place) * sizeof(word));
    memmove(&free[place + 1], &free[place], (size - place) * sizeof(word));
    at[place] = instant;
    free[place] = free[place - 1];
    s->size.v[row] = size + 1;
    return place;
}

/* Add `amount` on the hold, which is not empty. */
static void add_to_row(const Steps *s, word row, Pair hold, word amount) {
    const word first = cut_row(s, row, hold.first), last = cut_row(s, row, hold.second);
    word *free = &AT(s->free, row, 0);
    for (word k = first; k < last; k++)
        free[k] += amount;
}

#endif
