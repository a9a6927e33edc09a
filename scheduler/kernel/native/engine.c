/* The three steps of a plan: the same results as `scheduler.plan`. Requests are numbered by rank.

Built by hatch_build.py and reconciler/machine_code.py. Each function here is called from Python with other threads running; what it is
given is its own until it returns. */

#include "advance.h"
#include "displaced.h"
#include "replay.h"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#define NO_PROMISE (-2)

/* Promises by rank: the pool (-1 if it cannot hold, -2 without a promise), and the start. */
typedef struct { Words pool, start; } Promises;

/* Which request gave way to which (-1: to none), in order; `size` has their number. */
typedef struct { Words who, whom, size; } Outcome;

/* The steps of all lines of a side; `first` says where those of each begin. */
typedef struct { Words first, at, value; } Drawn;

static void displace(const Outcome *o, word who, word whom) {
    const word count = o->size.v[0]++;
    o->who.v[count] = who;
    o->whom.v[count] = whom;
}

/* Whether another assignment of nodes might help: they are unequal, and there are enough in total. */
static bool may_be_bound_anew(const World *w, const Promises *p, word i) {
    const word pool = p->pool.v[i];
    const Pair hold = hold_at(w, i, pool, p->start.v[i]);
    const word free = lowest(&w->lines, w->pools.base.v[pool], hold.first, hold.second);
    return w->pools.groups.v[pool] > 1 && free >= w->asked.nodes.v[i];
}

/* Whether it may start there: if the second side (higher ranks alone) has no room, it cannot. */
static bool may_start(const World *w, word i, word pool, word start) {
    const word shown = known(&w->shown, 1, pool, &AT(w->asked.below, i, 0)) + w->pools.prepare.v[pool];
    return greatest_of(floor_of(w, i, pool), shown) <= start;
}

/* The first other pool with the same start that displaces no request; -1 if there is none. */
static word undisturbing(const World *w, word i, word pool, word start) {
    if (!slice_free(w, i, start))
        return NOWHERE;
    const word reached = greatest_of(held_back_until(w, i, pool), start - 1);
    for (word k = w->asked.first.v[i]; k < w->asked.first.v[i + 1]; k++) {
        const word other = w->asked.pool.v[k];
        if (other != pool && w->asked.since.v[k] <= reached && may_start(w, i, other, start))
            if (nodes_free(w, i, other, start))
                return other;
    }
    return NOWHERE;
}

static void build(const World *w, const Holders *h) {
    h->state.v[BUILT] = 1;
    for (word j = 0; j < w->spots.pool.columns; j++)
        if (w->spots.pool.v[j] >= 0)
            insert(h, w->spots.pool.v[j], hold_of(w, j), j);
}

/* Take it off the board; its nodes were given back before. */
static void take_off(const World *w, const Holders *h, word who) {
    drop(h, w->spots.pool.v[who], hold_of(w, who).first, who);
    leave(w, who);
}

/* Take out requests of the same slice that run at that time: all are of lower rank. */
static void clear_slice(const World *w, const Holders *h, const Outcome *o, word i, word start) {
    const Slices *s = &w->slices;
    const word slice = w->asked.slice.v[i], end = start + w->asked.duration.v[i];
    if (slice < 0)
        return;
    for (word k = s->first.v[slice] + AT(s->counts, 0, slice) - 1; k >= s->first.v[slice]; k--) {
        if (AT(s->end, 0, k) <= start)
            return;
        if (AT(s->begin, 0, k) < end) {
            const word who = AT(s->who, 0, k);
            move_nodes(w, 0, who, 1);
            take_off(w, h, who);
            displace(o, who, i);
        }
    }
}

/* In place, rising; there are few. */
static void sort(word *numbers, word first, word last) {
    for (word k = first + 1; k < last; k++) {
        const word number = numbers[k];
        word j = k;
        for (; j > first && numbers[j - 1] > number; j--)
            numbers[j] = numbers[j - 1];
        numbers[j] = number;
    }
}

/* Take out the requests in the way of the spot: all of its slice at that time, and as few others as needed. */
static void make_room(
    const World *w, const Holders *h, const Scratch *t, const Outcome *o, word i, word pool, word start
) {
    if (!h->state.v[BUILT])
        build(w, h);
    const word before = o->size.v[0];
    clear_slice(w, h, o, i, start);
    const word gone = lift_those_in_the_way(w, h, t, i, pool, start);
    for (word k = 0; k < gone; k++) {
        take_off(w, h, t->gone.v[k]);
        displace(o, t->gone.v[k], i);
    }
    sort(o->who.v, before, o->size.v[0]);
}

/* Draw all lines of a side, from line `shift` on. */
EXPORT void egs_draw_lines(const Lines *a, word shift, const Drawn *d) {
    for (word line = 0; line < d->first.columns - 1; line++) {
        const word first = d->first.v[line];
        draw(a, shift + line, &d->at.v[first], &d->value.v[first], d->first.v[line + 1] - first);
    }
}

/* Step 1 from request `begin` on. Returns the request for which others must change nodes, or the number of all. */
EXPORT word egs_stand(const World *w, const Promises *p, const Outcome *o, word begin) {
    for (word i = begin; i < p->pool.columns; i++) {
        const word pool = p->pool.v[i], start = p->start.v[i];
        if (pool == NO_PROMISE)
            continue;
        if (pool >= 0 && slice_free(w, i, start)) {
            if (nodes_free(w, i, pool, start)) {
                put(w, 0, i, pool, start, &w->wanted);
                continue;
            }
            if (may_be_bound_anew(w, p, i))
                return i;
        }
        displace(o, i, NOWHERE);
    }
    return p->pool.columns;
}

/* Lift all but the last, then put all at their starts, from the groups in `w->wanted`. `moved` has the requests and
their starts. */
EXPORT void egs_move_all(const World *w, const Spots *moved, word pool) {
    const word *there = moved->pool.v, size = moved->pool.columns;
    for (word k = 0; k < size - 1; k++)
        take_out(w, there[k]);
    for (word k = 0; k < size; k++)
        put(w, 0, there[k], pool, moved->start.v[k], &w->wanted);
}

/* Step 2. */
EXPORT void egs_place(const World *w, const Holders *h, const Scratch *t, const Outcome *o, word standing) {
    word counted = 0;
    for (word i = 0; i < w->spots.pool.columns; i++) {
        if (w->spots.pool.v[i] >= 0)
            continue;
        for (word j = counted; j < (standing ? i : 0); j++)
            if (w->spots.pool.v[j] >= 0)
                copy_above(w, j);
        counted = i;
        const bool displaces = w->asked.displaces.v[i];
        if (!displaces)
            forget(&w->shown);
        const Pair spot = earliest_spot(w, standing && displaces ? 1 : 0, i);
        word pool = spot.first;
        const word start = spot.second;
        if (pool < 0)
            continue;
        if (standing && !(slice_free(w, i, start) && nodes_free(w, i, pool, start))) {
            const word other = undisturbing(w, i, pool, start);
            if (other >= 0)
                pool = other;
            else
                make_room(w, h, t, o, i, pool, start);
        }
        put(w, 0, i, pool, start, &w->nothing);
        if (standing && h->state.v[BUILT])
            insert(h, pool, hold_of(w, i), i);
    }
}

/* Step 3. */
EXPORT void egs_compress(const World *w) {
    forget(&w->shown);
    for (word i = 0; i < w->spots.pool.columns; i++)
        if (w->spots.pool.v[i] >= 0)
            advance(w, i);
}

/* A replay's steps 2 and 3. */
EXPORT void egs_replay_place(const Replay *w) { replay_place(w); }
EXPORT void egs_replay_compress(const Replay *w) { replay_compress(w); }
