/* Searches in lines: each skips blocks by their bounds. */

#ifndef EGS_SEARCHES_H
#define EGS_SEARCHES_H

#include "timeline.h"

/* Least value on [begin, end), which is not empty. */
static word lowest(const Lines *a, word line, word begin, word end) {
    word entry = entry_of(a, line, begin), step = step_of(a, entry, begin), least = NEVER;
    const word stop = stop_of(a, line);
    for (;;) {
        const word following = following_of(a, entry, stop);
        if (step == 0 && following <= end) {
            least = least_of(least, ENTRY(a, entry, LEAST));
        } else if (ENTRY(a, entry, LEAST) < least) {
            const word block = ENTRY(a, entry, BLOCK), added = ENTRY(a, entry, ADDED);
            least = least_of(least, STEP_VALUE(a, block, step) + added);
            for (word j = step + 1; j < ENTRY(a, entry, COUNT) && STEP_AT(a, block, j) < end; j++)
                least = least_of(least, STEP_VALUE(a, block, j) + added);
        }
        if (following >= end)
            return least;
        entry += 1;
        step = 0;
    }
}

/* Whether a gap that is long enough ends in this block. `begin` becomes that of the found gap, else of the gap open at
the block's end; before, it is that of the gap open at the block's start. NEVER: none is. */
static inline bool gap_within(const Lines *a, word entry, word step, word need, word length, word after, word *begin) {
    const word block = ENTRY(a, entry, BLOCK);
    if (ENTRY(a, entry, LEAST) >= need) {
        if (*begin == NEVER)
            *begin = greatest_of(after, STEP_AT(a, block, step));
        return false;
    }
    if (ENTRY(a, entry, MOST) < need) {
        if (*begin != NEVER && a->first.v[entry] - *begin >= length)
            return true;
        *begin = NEVER;
        return false;
    }
    const word enough = need - ENTRY(a, entry, ADDED), count = ENTRY(a, entry, COUNT);
    const word *at = &STEP_AT(a, block, 0);
    const int32_t *value = &STEP_VALUE(a, block, 0);
    for (word j = step; j < count; j++) {
        if (value[j] >= enough) {
            if (*begin == NEVER)
                *begin = greatest_of(after, at[j]);
        } else if (*begin != NEVER) {
            if (at[j] - *begin >= length)
                return true;
            *begin = NEVER;
        }
    }
    return false;
}

/* First b in [after, before) with at least `need` on all of [b, b + length); NEVER if there is none. */
static word first_gap(const Lines *a, word line, word need, word length, word after, word before) {
    if (after >= before)
        return NEVER;
    word entry = entry_of(a, line, after), step = step_of(a, entry, after), begin = NEVER;
    const word stop = stop_of(a, line);
    for (;;) {
        const word following = following_of(a, entry, stop);
        const bool is_found = gap_within(a, entry, step, need, length, after, &begin);
        if ((begin == NEVER ? following : begin) >= before)
            return NEVER;
        if (is_found || (begin != NEVER && following - begin >= length))
            return begin;
        entry += 1;
        step = 0;
    }
}

/* When the next step begins; NEVER after the last. */
static inline word after_instant(const Lines *a, word line, word instant) {
    const word entry = entry_of(a, line, instant), step = step_of(a, entry, instant) + 1;
    if (step < ENTRY(a, entry, COUNT))
        return STEP_AT(a, ENTRY(a, entry, BLOCK), step);
    return following_of(a, entry, stop_of(a, line));
}

/* When the stretch with at least `need` that contains this step begins. */
static inline word reaches_back(const Lines *a, word line, word need, word entry, word step) {
    word begin = STEP_AT(a, ENTRY(a, entry, BLOCK), step);
    for (;;) {
        const word block = ENTRY(a, entry, BLOCK), enough = need - ENTRY(a, entry, ADDED);
        for (word j = step; j >= 0; j--) {
            if (STEP_VALUE(a, block, j) < enough)
                return begin;
            begin = STEP_AT(a, block, j);
        }
        entry -= 1;
        if (entry < LINE(a, line, OFFSET))
            return begin;
        step = ENTRY(a, entry, COUNT) - 1;
    }
}

/* Of the stretches with at least `need` that touch [begin, end): when the first begins, how long the longest is.

The stretches count whole, also beyond [begin, end). Without any the longest is 0. */
static Pair gaps_around(const Lines *a, word line, word need, word begin, word end) {
    word entry = entry_of(a, line, begin), step = step_of(a, entry, begin);
    word since = NEVER, longest = 0, opened = NEVER;
    const word stop = stop_of(a, line);
    if (STEP_VALUE(a, ENTRY(a, entry, BLOCK), step) + (word)ENTRY(a, entry, ADDED) >= need)
        since = opened = reaches_back(a, line, need, entry, step);
    while (entry < stop) {
        const word block = ENTRY(a, entry, BLOCK), enough = need - ENTRY(a, entry, ADDED);
        /* If all steps of a block have enough, or none has, the first step is enough to look at. */
        const bool is_mixed = ENTRY(a, entry, LEAST) < need && need <= ENTRY(a, entry, MOST);
        const word last = is_mixed ? ENTRY(a, entry, COUNT) : step + 1;
        for (word j = step; j < last; j++) {
            const word at = STEP_AT(a, block, j);
            if (opened == NEVER && at >= end)
                return pair(since, longest);
            if (STEP_VALUE(a, block, j) >= enough) {
                opened = least_of(opened, at);
                since = least_of(since, at);
            } else {
                longest = greatest_of(longest, at - opened);
                opened = NEVER;
            }
        }
        entry += 1;
        step = 0;
    }
    return pair(since, opened == NEVER ? longest : NEVER);
}

/* The first instant of [begin, end) with less than `need`; NEVER if there is none. */
static word first_below(const Lines *a, word line, word need, word begin, word end) {
    word entry = entry_of(a, line, begin), step = step_of(a, entry, begin);
    const word stop = stop_of(a, line);
    for (;;) {
        if (ENTRY(a, entry, LEAST) < need) {
            const word block = ENTRY(a, entry, BLOCK), enough = need - ENTRY(a, entry, ADDED);
            for (word j = step; j < ENTRY(a, entry, COUNT); j++) {
                if (STEP_AT(a, block, j) >= end)
                    return NEVER;
                if (STEP_VALUE(a, block, j) < enough)
                    return greatest_of(begin, STEP_AT(a, block, j));
            }
        }
        entry += 1;
        step = 0;
        if (entry >= stop || a->first.v[entry] >= end)
            return NEVER;
    }
}

/* When the last stretch before `end` with less than `need` ends, at most `end`; there must be one. */
static word last_below(const Lines *a, word line, word need, word end) {
    for (word entry = entry_of(a, line, end - 1);; entry--) {
        if (ENTRY(a, entry, LEAST) < need) {
            const word block = ENTRY(a, entry, BLOCK), enough = need - ENTRY(a, entry, ADDED);
            for (word j = ENTRY(a, entry, COUNT) - 1; j >= 0; j--) {
                if (STEP_AT(a, block, j) < end) {
                    if (STEP_VALUE(a, block, j) < enough)
                        return end;
                    end = STEP_AT(a, block, j);
                }
            }
        }
        end = least_of(end, a->first.v[entry]);
    }
}

#endif
