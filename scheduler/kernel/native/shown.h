/* Search bounds: `scheduler.calendars.bounds.Bounds` as one table for each side and pool.

Bounds only say where a search may begin, so marks that differ from the plain engine's change no answer. Instants are
kept as seconds since now, at most `FARTHEST`, which is far enough. */

#ifndef EGS_SHOWN_H
#define EGS_SHOWN_H

#include "searches.h"

#define FARTHEST INT32_MAX
/* Least gain of a bound, as a part of the least duration: for less, searching a little more is cheaper. */
#define WORTH 4

/* `table` is flat, by side, pool, and the marks of wishes, nodes and durations; `sizes` has the lengths of the last
four. `nodes` and `durations` have the least value of each mark, `forgotten` the pools of side 0 to reset. */
typedef struct { Halves table; Words sizes, nodes, durations; Flags forgotten; word now; } Shown;

/* Lower bound for the begin of a hold of a request with these marks below it. */
static inline word known(const Shown *b, word side, word pool, const word *below) {
    const word *s = b->sizes.v;
    const word row = ((side * s[0] + pool) * s[1] + below[0]) * s[2] + below[1];
    return b->now + b->table.v[row * s[3] + below[2]];
}

/* Record that a search for a request with these marks above it found no begin before this one. */
static inline void show(const Shown *b, word side, word pool, const word *above, word begin) {
    const word *s = b->sizes.v;
    if (above[2] == s[3])
        return;
    const int32_t seconds = (int32_t)least_of(begin - b->now, FARTHEST);
    const word slack = b->durations.v[0] / WORTH;
    for (word wish = above[0]; wish < s[1]; wish++) {
        const word first = ((side * s[0] + pool) * s[1] + wish) * s[2];
        for (word row = first + above[1]; row < first + s[2]; row++) {
            int32_t *cells = &b->table.v[row * s[3]];
            if (cells[above[2]] >= seconds - slack)
                break; /* larger sizes mostly have a later bound already */
            for (word cell = above[2]; cell < s[3]; cell++)
                cells[cell] = cells[cell] > seconds ? cells[cell] : seconds;
        }
    }
}

/* The number of rising `values` that are at most `most`. */
static inline word up_to(const Words *values, word most) {
    word low = 0, high = values->columns;
    while (low < high) {
        const word half = (low + high) >> 1;
        if (values->v[half] <= most)
            low = half + 1;
        else
            high = half;
    }
    return low;
}

/* Room appeared on [begin, end) of the first side: requests that fit into the gaps around it may begin there. */
static inline void give(const Shown *b, const Lines *a, word line, word pool, Pair hold, word margin) {
    const word *s = b->sizes.v;
    for (word nodes = 0; nodes < s[2]; nodes++) {
        const Pair gaps = gaps_around(a, line, b->nodes.v[nodes], hold.first, hold.second);
        if (gaps.second < b->durations.v[0] + margin)
            return;
        const int32_t seconds = (int32_t)least_of(greatest_of(gaps.first - b->now, 0), FARTHEST);
        const word fitting = up_to(&b->durations, gaps.second - margin);
        for (word wish = 0; wish < s[1]; wish++) {
            int32_t *cells = &b->table.v[((pool * s[1] + wish) * s[2] + nodes) * s[3]];
            for (word cell = 0; cell < fitting; cell++)
                cells[cell] = cells[cell] < seconds ? cells[cell] : seconds;
        }
    }
}

/* Forget the bounds of pools where room appeared. */
static inline void forget(const Shown *b) {
    const word *s = b->sizes.v, size = s[1] * s[2] * s[3];
    for (word pool = 0; pool < s[0]; pool++)
        if (b->forgotten.v[pool]) {
            b->forgotten.v[pool] = false;
            memset(&b->table.v[pool * size], 0, size * sizeof(int32_t));
        }
}

#endif
