/* Where a request may start: the same results as `scheduler.calendars.board.Board`.

There are two sides: 0 is the board with all requests on it, 1 has only leases and higher ranks. */

#ifndef EGS_SEARCH_H
#define EGS_SEARCH_H

#include "pools.h"
#include "shown.h"
#include "slices.h"

/* The waiting requests, by rank. `first` says where the pools of each begin in `pool` and `since`. */
typedef struct {
    Words nodes, duration, wish, slice;
    Flags displaces;
    Words first, pool, since;
    Flags falls_back;
    Words below, above;
} RequestArrays;

/* Where each request is placed: its pool (-1: nowhere) and its start. */
typedef struct { Words pool, start; } Spots;

/* All state of a plan; `least` is scratch space for the candidates of one search. */
typedef struct {
    Lines lines;
    Pools pools;
    RequestArrays asked;
    Slices slices;
    Shown shown;
    Spots spots;
    Shares shares, wanted, nothing;
    Words least;
} World;

/* When the hold for a start begins; if the start is nearer than the preparation time, now. */
static inline word hold_begin(const World *w, word pool, word start) {
    return greatest_of(w->shown.now, start - w->pools.prepare.v[pool]);
}

/* The hold of request `i` for that start. */
static inline Pair hold_at(const World *w, word i, word pool, word start) {
    return pair(hold_begin(w, pool, start), start + w->asked.duration.v[i] + w->pools.drain.v[pool]);
}

/* The hold of a reservation. */
static inline Pair hold_of(const World *w, word i) {
    return hold_at(w, i, w->spots.pool.v[i], w->spots.start.v[i]);
}

/* The earliest possible start of the request in this pool, whatever is free. */
static inline word floor_of(const World *w, word i, word pool) {
    return greatest_of(w->shown.now + w->pools.prepare.v[pool], w->asked.wish.v[i]);
}

/* Take free nodes and the slice. */
static void put(const World *w, word side, word i, word pool, word start, const Shares *wanted) {
    take(&w->lines, &w->pools, side, pool, hold_at(w, i, pool, start), w->asked.nodes.v[i], i, &w->shares, wanted);
    occupy(&w->slices, side, w->asked.slice.v[i], start, start + w->asked.duration.v[i], i);
    w->spots.pool.v[i] = pool;
    w->spots.start.v[i] = start;
}

/* Take exactly the nodes of the spot, or give them back. */
static void move_nodes(const World *w, word side, word i, word sign) {
    const word pool = w->spots.pool.v[i];
    shift_nodes(&w->lines, &w->pools, side, pool, hold_of(w, i), w->asked.nodes.v[i], i, &w->shares, sign);
}

/* Put a request on the second side as it is on the first. */
static inline void copy_above(const World *w, word i) {
    const word start = w->spots.start.v[i];
    move_nodes(w, 1, i, -1);
    occupy(&w->slices, 1, w->asked.slice.v[i], start, start + w->asked.duration.v[i], i);
}

/* The request, whose nodes were given back, is nowhere now. */
static inline void leave(const World *w, word i) {
    vacate(&w->slices, 0, w->asked.slice.v[i], w->spots.start.v[i]);
    w->shown.forgotten.v[w->spots.pool.v[i]] = true;
    w->spots.pool.v[i] = NOWHERE;
}

/* Give back what the request holds, on the first side. */
static inline void take_out(const World *w, word i) {
    move_nodes(w, 0, i, 1);
    leave(w, i);
}

/* Whether enough nodes are free on the first side for the whole hold. */
static inline bool nodes_free(const World *w, word i, word pool, word start) {
    const Pair hold = hold_at(w, i, pool, start);
    return has_room(&w->lines, &w->pools, pool, w->asked.nodes.v[i], hold.first, hold.second);
}

/* Whether no other request of the slice runs at that time, on the first side. */
static inline bool slice_free(const World *w, word i, word start) {
    return is_free(&w->slices, 0, w->asked.slice.v[i], start, start + w->asked.duration.v[i]);
}

/* Note the bound of each of the request's pools: no start before it is possible. */
static inline void note_candidates(const World *w, word side, word i) {
    const word first = w->asked.first.v[i], count = w->asked.first.v[i + 1] - first;
    for (word k = 0; k < count; k++) {
        const word pool = w->asked.pool.v[first + k];
        const word shown = known(&w->shown, side, pool, &AT(w->asked.below, i, 0)) + w->pools.prepare.v[pool];
        w->least.v[k] = greatest_of(floor_of(w, i, pool), shown);
    }
}

/* The candidate to search next: of those held back least the one that may be earliest, in the request's order. */
static inline word next_candidate(const World *w, word first, word count, bool falls_back) {
    const word *least = w->least.v, *since = w->asked.since.v;
    word this = 0;
    if (!falls_back || count == 0) {
        for (word k = 1; k < count; k++)
            this = least[k] < least[this] ? k : this;
        return count ? this : NOWHERE;
    }
    this = NOWHERE;
    for (word k = 0; k < count; k++) {
        if (least[k] == NEVER)
            continue;
        const bool earlier = this < 0 || since[first + k] < since[first + this];
        if (earlier || (since[first + k] == since[first + this] && least[k] < least[this]))
            this = k;
    }
    return this;
}

/* The instant until which the request does not use this pool if others give a start. */
static inline word held_back_until(const World *w, word i, word pool) {
    if (w->asked.falls_back.v[i])
        for (word k = w->asked.first.v[i]; k < w->asked.first.v[i + 1]; k++)
            if (w->asked.pool.v[k] == pool)
                return w->asked.since.v[k];
    return -FOREVER;
}

/* The instant before which a start in a pool held back until `since` is better than the one at `place`. */
static inline word limit(const World *w, word i, word place, word start, word since) {
    if (place < 0)
        return FOREVER;
    const word own = held_back_until(w, i, place);
    if (since < own)
        return start + 1;
    return since == own || start > since ? start : -FOREVER;
}

static word earliest_in(const World *w, word side, word i, word pool, word least, word before) {
    const word prepare = w->pools.prepare.v[pool], slice = w->asked.slice.v[i];
    const word nodes = w->asked.nodes.v[i], duration = w->asked.duration.v[i];
    const word length = duration + prepare + w->pools.drain.v[pool], until = before - prepare;
    /* Looking past `before` costs little, and its result saves many other searches. */
    word begin = earliest(&w->lines, &w->pools, side, pool, nodes, length, least - prepare, FOREVER);
    show(&w->shown, side, pool, &AT(w->asked.above, i, 0), begin);
    if (begin >= until)
        return NEVER;
    if (slice < 0 || AT(w->slices.counts, side, slice) == 0)
        return begin + prepare;
    while (begin != NEVER) {
        const word start = begin + prepare, free_from = gap(&w->slices, side, slice, duration, start, before);
        if (free_from == NEVER || free_from == start)
            return free_from;
        /* The slice is busy at that time: continue where it is free. */
        begin = earliest(&w->lines, &w->pools, side, pool, nodes, length, free_from - prepare, until);
    }
    return NEVER;
}

/* The best of the noted candidates, held back least first; with a `place`, only what is better. (-1, NEVER): none. */
static Pair search(const World *w, word side, word i, word place, word start) {
    const word first = w->asked.first.v[i], count = w->asked.first.v[i + 1] - first;
    const bool falls_back = w->asked.falls_back.v[i];
    word best = NOWHERE, best_start = NEVER;
    for (;;) {
        const word k = next_candidate(w, first, count, falls_back), least = k >= 0 ? w->least.v[k] : NEVER;
        if (least == NEVER)
            break;
        w->least.v[k] = NEVER;
        const word since = w->asked.since.v[first + k];
        word before = limit(w, i, place, start, since);
        if (best >= 0) {
            if (best_start <= since || (!falls_back && least > best_start))
                break;
            before = least_of(before, best_start + (since == w->asked.since.v[first + best] && k < best));
        }
        if (least < before) {
            const word found = earliest_in(w, side, i, w->asked.pool.v[first + k], least, before);
            if (found != NEVER) {
                best = k;
                best_start = found;
            }
        }
    }
    return pair(best >= 0 ? w->asked.pool.v[first + best] : NOWHERE, best_start);
}

/* The earliest (pool, start) among the request's pools; (-1, NEVER) if none ever has room. */
static inline Pair earliest_spot(const World *w, word side, word i) {
    note_candidates(w, side, i);
    return search(w, side, i, NOWHERE, NEVER);
}

#endif
