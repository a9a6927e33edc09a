/* A request moves up: to its earliest spot among all others. */

#ifndef EGS_ADVANCE_H
#define EGS_ADVANCE_H

#include "search.h"

/* The bound of the request's own pool without its own hold there. */
static inline void once_lifted(const World *w, word i, word k) {
    const word pool = w->spots.pool.v[i], start = w->spots.start.v[i], least = floor_of(w, i, pool);
    if (least >= start)
        return;
    const word begin = hold_begin(w, pool, start);
    const word reach = start - (w->asked.duration.v[i] + w->pools.prepare.v[pool] + w->pools.drain.v[pool]) + 1;
    if (w->least.v[k] >= reach && room(&w->lines, &w->pools, 0, pool, begin - 1, begin) < w->asked.nodes.v[i]) {
        /* The remaining holds cover the instant before its own, and that instant is full. */
        show(&w->shown, 0, pool, &AT(w->asked.above, i, 0), begin);
        w->least.v[k] = start;
    } else {
        w->least.v[k] = least_of(w->least.v[k], greatest_of(least, reach));
    }
}

/* Whether any candidate may be better than the request's spot; `own`: whether its own pool is one. */
static inline bool may_improve(const World *w, word i, bool *own) {
    const word place = w->spots.pool.v[i], start = w->spots.start.v[i], first = w->asked.first.v[i];
    bool found = false;
    note_candidates(w, 0, i);
    for (word k = 0; k < w->asked.first.v[i + 1] - first; k++) {
        const word pool = w->asked.pool.v[first + k];
        if (pool == place)
            once_lifted(w, i, k);
        if (w->least.v[k] >= limit(w, i, place, start, w->asked.since.v[first + k])) {
            w->least.v[k] = NEVER;
        } else {
            found = true;
            *own = *own || pool == place;
        }
    }
    return found;
}

/* Move the request to its earliest spot among all others, if there is a better one. */
static inline void advance(const World *w, word i) {
    const word place = w->spots.pool.v[i], start = w->spots.start.v[i];
    bool own = false;
    if (!may_improve(w, i, &own))
        return;
    /* Its own nodes matter only when its own pool is searched. */
    if (own)
        move_nodes(w, 0, i, 1);
    vacate(&w->slices, 0, w->asked.slice.v[i], start);
    const Pair better = search(w, 0, i, place, start);
    if (better.first < 0) {
        if (own)
            move_nodes(w, 0, i, -1);
        occupy(&w->slices, 0, w->asked.slice.v[i], start, start + w->asked.duration.v[i], i);
        return;
    }
    if (!own)
        move_nodes(w, 0, i, 1);
    put(w, 0, i, better.first, better.second, &w->nothing);
    const word margin = w->pools.prepare.v[place] + w->pools.drain.v[place];
    give(&w->shown, &w->lines, w->pools.base.v[place], place, hold_at(w, i, place, start), margin);
}

#endif
