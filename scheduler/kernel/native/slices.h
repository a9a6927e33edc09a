/* When slices are busy: disjoint, sorted stretches of each slice on each side. */

#ifndef EGS_SLICES_H
#define EGS_SLICES_H

#include "arrays.h"

/* By slice: where its stretches begin; on each side: their number, times and runners. */
typedef struct { Words first, counts, begin, end, who; } Slices;

/* The first stretch that begins at or after this. */
static inline word stretch_of(const Slices *s, word side, word slice, word instant) {
    word low = s->first.v[slice], high = low + AT(s->counts, side, slice);
    while (low < high) {
        const word half = (low + high) >> 1;
        if (AT(s->begin, side, half) < instant)
            low = half + 1;
        else
            high = half;
    }
    return low;
}

/* Whether nothing runs on [begin, end). */
static inline bool is_free(const Slices *s, word side, word slice, word begin, word end) {
    if (slice < 0)
        return true;
    const word before = stretch_of(s, side, slice, end) - 1;
    return before < s->first.v[slice] || AT(s->end, side, before) <= begin;
}

/* First b in [after, before) at which nothing runs on [b, b + length); NEVER if there is none. */
static inline word gap(const Slices *s, word side, word slice, word length, word after, word before) {
    const word first = s->first.v[slice], stop = first + AT(s->counts, side, slice);
    for (word i = greatest_of(first, stretch_of(s, side, slice, after) - 1); i < stop; i++) {
        if (AT(s->begin, side, i) - after >= length)
            break;
        after = greatest_of(after, AT(s->end, side, i));
    }
    return after < before ? after : NEVER;
}

/* `who` runs on [begin, end), which is free. */
static inline void occupy(const Slices *s, word side, word slice, word begin, word end, word who) {
    if (slice < 0)
        return;
    const word place = stretch_of(s, side, slice, begin);
    for (word i = s->first.v[slice] + AT(s->counts, side, slice); i > place; i--) {
        AT(s->begin, side, i) = AT(s->begin, side, i - 1);
        AT(s->end, side, i) = AT(s->end, side, i - 1);
        AT(s->who, side, i) = AT(s->who, side, i - 1);
    }
    AT(s->begin, side, place) = begin;
    AT(s->end, side, place) = end;
    AT(s->who, side, place) = who;
    AT(s->counts, side, slice) += 1;
}

/* Remove the stretch that begins there. */
static inline void vacate(const Slices *s, word side, word slice, word begin) {
    if (slice < 0)
        return;
    const word stop = s->first.v[slice] + AT(s->counts, side, slice) - 1;
    AT(s->counts, side, slice) -= 1;
    for (word i = stretch_of(s, side, slice, begin); i < stop; i++) {
        AT(s->begin, side, i) = AT(s->begin, side, i + 1);
        AT(s->end, side, i) = AT(s->end, side, i + 1);
        AT(s->who, side, i) = AT(s->who, side, i + 1);
    }
}

#endif
