/* Planning on promises that all hold: the same results as `scheduler.plan`, where most of it is not needed.

A replay plans at every arrival and every end, and nearly everything stays from one plan to the next. If the nodes of
each pool are equal, slices do not matter and every promise still holds, the three steps of `scheduler.plan` shrink:
step 1 checks that the number of free nodes is never negative; in step 2 what higher ranks leave is built for the first
request without a place, and extended on the way to the next; step 3 is skipped if no request gave way and no nodes
became free. Requests are numbered by rank. */

#ifndef EGS_REPLAY_H
#define EGS_REPLAY_H

#include "step_functions.h"

/* By rank. `pools` has a row per request, padded with -1; `spot` is its current pool, `start` its start there. */
typedef struct { Words nodes, duration, wish; Flags displaces; Words pools, spot, start; } Ranked;

/* `begin`, by pool and marks: no hold of at least that many nodes and that length begins before it.

`marks` has the greatest marks below each request's nodes and duration, then the smallest marks above them; `reach` the
longest duration of each mark. */
typedef struct { Words begin, marks, reach; } Marked;

/* All state of a plan. `steps` has a row per pool with all requests on it, then a row per pool with only leases and the
ranks before `counted`. `gone` has which request gave way to which, in order, and their number. `section` is a stretch
of time for trials: when its steps begin, then its end; and the nodes free in each step. */
typedef struct {
    Ranked asked;
    struct { Words prepare, drain; } times;
    Steps steps;
    Marked shown;
    struct { Words who, whom, size; } gone;
    struct { Words at, free; } section;
    word counted, now;
} Replay;

#define BEGIN(b, pool, nodes, duration) \
    ((b)->begin.v[((pool) * (b)->begin.rows + (nodes)) * (b)->begin.columns + (duration)])

/* The request's hold for that start. */
static inline Pair replay_hold(const Replay *w, word i, word pool, word start) {
    const word begin = greatest_of(w->now, start - w->times.prepare.v[pool]);
    return pair(begin, start + w->asked.duration.v[i] + w->times.drain.v[pool]);
}

/* Record that a search for the request found no begin before this one. */
static inline void replay_show(const Marked *b, word pool, word i, word begin) {
    for (word nodes = AT(b->marks, 2, i); nodes < b->begin.rows; nodes++)
        for (word duration = AT(b->marks, 3, i); duration < b->begin.columns; duration++) {
            word *known = &BEGIN(b, pool, nodes, duration);
            *known = greatest_of(*known, begin);
        }
}

/* No hold of the request begins before this. */
static inline word replay_known(const Replay *w, word pool, word i) {
    return BEGIN(&w->shown, pool, AT(w->shown.marks, 0, i), AT(w->shown.marks, 1, i));
}

/* The earliest (pool, start) that leases and higher ranks leave; all ranks, if the request may displace none. */
static Pair replay_earliest(const Replay *w, word i) {
    const Ranked *a = &w->asked;
    const bool displaces = a->displaces.v[i];
    const word side = displaces ? w->times.prepare.columns : 0;
    word best = NOWHERE, found = NEVER;
    for (word k = 0; k < a->pools.columns; k++) {
        const word pool = AT(a->pools, i, k);
        if (pool == NOWHERE)
            break;
        const word prepare = w->times.prepare.v[pool];
        const word length = a->duration.v[i] + prepare + w->times.drain.v[pool];
        word after = greatest_of(w->now, a->wish.v[i] - prepare);
        if (displaces) /* higher ranks only take more nodes, so what one of them did not find is not there later either */
            after = greatest_of(after, replay_known(w, pool, i));
        const word begin = gap_in_row(&w->steps, side + pool, a->nodes.v[i], length, after, NEVER);
        if (displaces && a->wish.v[i] - prepare <= w->now)
            replay_show(&w->shown, pool, i, begin);
        if (begin != NEVER && begin + prepare < found) {
            best = pool;
            found = begin + prepare;
        }
    }
    return pair(best, found);
}

/* The first other pool with the same start that displaces no request. */
static word replay_undisturbing(const Replay *w, word i, word pool, word start) {
    for (word k = 0; k < w->asked.pools.columns; k++) {
        const word other = AT(w->asked.pools, i, k);
        if (other == NOWHERE)
            break;
        const word floor = greatest_of(w->now + w->times.prepare.v[other], w->asked.wish.v[i]);
        if (other != pool && floor <= start) {
            const Pair hold = replay_hold(w, i, other, start);
            if (row_has_room(&w->steps, other, w->asked.nodes.v[i], hold.first, hold.second))
                return other;
        }
    }
    return NOWHERE;
}

/* Fill the section; returns the number of its steps. */
static word cut_out(const Replay *w, word pool, Pair hold) {
    const word *at = &AT(w->steps.at, pool, 0), *free = &AT(w->steps.free, pool, 0), size = w->steps.size.v[pool];
    word steps = 0;
    for (word k = step_in(&w->steps, pool, hold.first); k < size && at[k] < hold.second; k++, steps++) {
        w->section.at.v[steps] = greatest_of(hold.first, at[k]);
        w->section.free.v[steps] = free[k];
    }
    w->section.at.v[steps] = hold.second;
    return steps;
}

/* The first of these steps in which nodes are short, and the step after the last of them. */
static inline Pair section_shortage(const Replay *w, word low, word high, word need) {
    const word *free = w->section.free.v;
    while (high > low && free[high - 1] >= need)
        high -= 1;
    while (low < high && free[low] >= need)
        low += 1;
    return pair(low, high);
}

/* Whether nodes are short in any of these steps during the hold of `j`. */
static inline bool is_short(const Replay *w, Pair steps, word need, word j) {
    const word *at = w->section.at.v, *free = w->section.free.v;
    const Pair hold = replay_hold(w, j, w->asked.spot.v[j], w->asked.start.v[j]);
    if (hold.first >= at[steps.second] || hold.second <= at[steps.first])
        return false;
    for (word k = steps.first; k < steps.second && at[k] < hold.second; k++)
        if (free[k] < need && at[k + 1] > hold.first)
            return true;
    return false;
}

/* Add the nodes of `j` to the section, or remove them; returns whether nodes are then short during its hold. */
static bool change(const Replay *w, word steps, word need, word j, word sign) {
    const word *at = w->section.at.v, amount = sign * w->asked.nodes.v[j];
    const Pair hold = replay_hold(w, j, w->asked.spot.v[j], w->asked.start.v[j]);
    const word first = greatest_of(place_in(at, steps, hold.first + 1) - 1, 0);
    const word last = place_in(at, steps, hold.second);
    bool short_ = false;
    for (word k = first; k < last; k++) {
        w->section.free.v[k] += amount;
        short_ |= w->section.free.v[k] < need;
    }
    return short_;
}

/* Those that go leave their places, and are noted in rising rank, from number `first` on. */
static void let_go(const Replay *w, word i, word pool, word first) {
    word *who = w->gone.who.v, *whom = w->gone.whom.v, last = first;
    for (word k = first; k < w->gone.size.v[0]; k++) {
        const word j = who[k];
        if (j == NOWHERE)
            continue;
        add_to_row(&w->steps, pool, replay_hold(w, j, pool, w->asked.start.v[j]), w->asked.nodes.v[j]);
        w->asked.spot.v[j] = NOWHERE;
        who[last] = j;
        whom[last++] = i;
    }
    for (word k = 0; k < (last - first) / 2; k++) {
        const word other = who[first + k];
        who[first + k] = who[last - 1 - k];
        who[last - 1 - k] = other;
    }
    w->gone.size.v[0] = last;
}

/* The lowest ranks that hold nodes during a shortage go; those that need not go after all return. */
static void replay_make_room(const Replay *w, word i, word pool, word steps) {
    const word need = w->asked.nodes.v[i], first = w->gone.size.v[0];
    word *who = w->gone.who.v, *size = w->gone.size.v;
    Pair low = section_shortage(w, 0, steps, need);
    for (word j = w->asked.nodes.columns - 1; j >= 0 && low.first < low.second; j--)
        if (w->asked.spot.v[j] == pool && is_short(w, low, need, j)) {
            change(w, steps, need, j, 1);
            low = section_shortage(w, low.first, low.second, need);
            who[(*size)++] = j;
        }
    for (word k = *size - 1; k >= first; k--) {
        if (change(w, steps, need, who[k], -1))
            change(w, steps, need, who[k], 1);
        else
            who[k] = NOWHERE;
    }
    let_go(w, i, pool, first);
}

/* A pool with room at `start`; if there is none, room is made in `pool`. */
static word with_room(const Replay *w, word i, word pool, word start) {
    const Pair hold = replay_hold(w, i, pool, start);
    if (row_has_room(&w->steps, pool, w->asked.nodes.v[i], hold.first, hold.second))
        return pool;
    const word other = replay_undisturbing(w, i, pool, start);
    if (other != NOWHERE)
        return other;
    replay_make_room(w, i, pool, cut_out(w, pool, hold));
    return pool;
}

/* Step 2: requests without a place get one, in rank order; lower ranks give way. */
static void replay_place(const Replay *w) {
    const Ranked *a = &w->asked;
    const word pools = w->times.prepare.columns;
    word counted = w->counted;
    for (word i = 0; i < a->nodes.columns; i++) {
        if (a->spot.v[i] != NOWHERE)
            continue;
        for (word j = counted; j < i; j++)
            if (a->spot.v[j] != NOWHERE) {
                const Pair hold = replay_hold(w, j, a->spot.v[j], a->start.v[j]);
                add_to_row(&w->steps, pools + a->spot.v[j], hold, -a->nodes.v[j]);
            }
        counted = i;
        const Pair found = replay_earliest(w, i);
        if (found.first == NOWHERE)
            continue;
        const word pool = a->displaces.v[i] ? with_room(w, i, found.first, found.second) : found.first;
        a->spot.v[i] = pool;
        a->start.v[i] = found.second;
        add_to_row(&w->steps, pool, replay_hold(w, i, pool, found.second), -a->nodes.v[i]);
    }
}

/* A bound: in that pool no better hold of the request than its own begins before this. */
static inline word replay_least(const Replay *w, word i, word other) {
    const Ranked *a = &w->asked;
    const word prepare = w->times.prepare.v[other], start = a->start.v[i];
    const Pair hold = replay_hold(w, i, other, start);
    const word floor = greatest_of(w->now, a->wish.v[i] - prepare);
    const word shown = greatest_of(floor, replay_known(w, other, i));
    if (other != a->spot.v[i] || floor >= hold.first)
        return shown;
    const word near = start - (a->duration.v[i] + w->times.drain.v[other]) - 2 * prepare + 1;
    if (shown >= near && free_at(&w->steps, other, hold.first - 1) < a->nodes.v[i])
        return hold.second; /* the remaining holds cover the instant before its own, and that instant is full */
    return least_of(shown, greatest_of(floor, near));
}

/* Room appeared: a hold may begin earlier by its length. `begin` is its begin, less preparation and draining. */
static inline void replay_give(const Marked *b, word pool, word begin) {
    for (word nodes = 0; nodes < b->begin.rows; nodes++)
        for (word duration = 0; duration < b->begin.columns; duration++) {
            word *known = &BEGIN(b, pool, nodes, duration);
            *known = least_of(*known, begin - b->reach.v[duration] + 1);
        }
}

/* The request moves to its earliest start among all others. */
static void replay_advance(const Replay *w, word i) {
    const Ranked *a = &w->asked;
    const word pool = a->spot.v[i], nodes = a->nodes.v[i];
    const Pair hold = replay_hold(w, i, pool, a->start.v[i]);
    word best = NOWHERE, found = a->start.v[i];
    bool is_lifted = false;
    for (word k = 0; k < a->pools.columns; k++) {
        const word other = AT(a->pools, i, k);
        if (other == NOWHERE)
            break;
        const word prepare = w->times.prepare.v[other], least = replay_least(w, i, other);
        if (least + prepare >= found)
            continue;
        if (other == pool)
            add_to_row(&w->steps, pool, hold, nodes);
        const word length = a->duration.v[i] + prepare + w->times.drain.v[other];
        const word at = gap_in_row(&w->steps, other, nodes, length, least, found - prepare);
        if (a->wish.v[i] - prepare <= w->now) /* a request that may not begin yet proves nothing for others */
            replay_show(&w->shown, other, i, at == NEVER ? found - prepare : at);
        if (at != NEVER) {
            best = other;
            found = at + prepare;
            is_lifted = is_lifted || other == pool;
        } else if (other == pool) {
            add_to_row(&w->steps, pool, hold, -nodes);
        }
    }
    if (best == NOWHERE)
        return;
    if (!is_lifted)
        add_to_row(&w->steps, pool, hold, nodes);
    replay_give(&w->shown, pool, hold.first - w->times.prepare.v[pool] - w->times.drain.v[pool]);
    a->spot.v[i] = best;
    a->start.v[i] = found;
    add_to_row(&w->steps, best, replay_hold(w, i, best, found), -nodes);
}

/* Step 3: in rank order every request moves to its earliest start among all others. */
static void replay_compress(const Replay *w) {
    const word size = w->times.prepare.columns * w->shown.begin.rows * w->shown.begin.columns;
    for (word k = 0; k < size; k++)
        w->shown.begin.v[k] = w->now; /* the bounds of step 2 count higher ranks only */
    for (word i = 0; i < w->asked.nodes.columns; i++)
        if (w->asked.spot.v[i] != NOWHERE)
            replay_advance(w, i);
}

#endif
