/* Which requests give way to another: the same results as `scheduler.choices.displacement`.

The lowest ranks that hold nodes during a shortage go, until there is none; then those that need not go after all
return, highest first. With unequal nodes no single instant is short: then those go that hold nodes of a group at an
instant at which the group alone is too small. All others that the plain engine lifts return there, because with enough
nodes in one group the rest does not matter. */

#ifndef EGS_DISPLACED_H
#define EGS_DISPLACED_H

#include "holders.h"
#include "search.h"

#define RETURNED (-1)

/* Scratch space for one period: the requests that hold nodes, and those that go. */
typedef struct { Words others, gone; } Scratch;

/* From the first to the last instant at which fewer than `need` are free; (0, 0) if there is none. */
static inline Pair shortage(const World *w, word pool, word need, word begin, word end) {
    if (w->pools.groups.v[pool] > 1)
        return room(&w->lines, &w->pools, 0, pool, begin, end) < need ? pair(begin, end) : pair(0, 0);
    const word line = w->pools.base.v[pool], low = first_below(&w->lines, line, need, begin, end);
    return low == NEVER ? pair(0, 0) : pair(low, last_below(&w->lines, line, need, end));
}

/* Free nodes of one group that are enough whatever the others have; lasting nodes may be fewer than none. */
static inline word enough_alone(const World *w, word pool, word need, Pair hold) {
    const word groups = w->pools.groups.v[pool];
    if (groups == 1)
        return need;
    return need - least_of(0, lowest(&w->lines, w->pools.base.v[pool] + groups, hold.first, hold.second));
}

/* Whether fewer than `enough` are free at some instant of its hold within the period. */
static inline bool is_to_blame(const World *w, word pool, word enough, Pair period, word other) {
    const Pools *p = &w->pools;
    const Shares *s = &w->shares;
    const Pair hold = hold_of(w, other);
    const word begin = hold.first, end = hold.second, low = period.first, high = period.second;
    if (begin >= high || end <= low)
        return false;
    if (p->groups.v[pool] == 1) /* nodes are short at both ends, so most need no search */
        return begin <= low || end >= high || lowest(&w->lines, p->base.v[pool], begin, end) < enough;
    for (word share = s->first.v[other]; share < s->first.v[other] + s->counts.v[other]; share++) {
        const word group = s->group.v[share];
        const bool lasts = group == p->base.v[pool] + p->groups.v[pool];
        if (lasts || (p->ends.v[group] >= high && p->since.v[group] <= low))
            if (lowest(&w->lines, group, greatest_of(begin, low), least_of(end, high)) < enough)
                return true;
    }
    return false;
}

/* Move those that do not return to the front; returns their number. */
static inline word packed(word *gone, word count) {
    word kept = 0;
    for (word k = 0; k < count; k++)
        if (gone[k] != RETURNED)
            gone[kept++] = gone[k];
    return kept;
}

static inline void sink(word *numbers, word k, word count) {
    const word number = numbers[k];
    while (2 * k + 1 < count) {
        word child = 2 * k + 1;
        if (child + 1 < count && numbers[child + 1] > numbers[child])
            child += 1;
        if (numbers[child] <= number)
            break;
        numbers[k] = numbers[child];
        k = child;
    }
    numbers[k] = number;
}

/* Make a heap of the first `count` numbers, the greatest first. */
static inline void heap(word *numbers, word count) {
    for (word k = count / 2 - 1; k >= 0; k--)
        sink(numbers, k, count);
}

/* Take the greatest number, which is the lowest rank, off a heap of that size. */
static inline word greatest(word *numbers, word count) {
    const word number = numbers[0];
    numbers[0] = numbers[count - 1];
    sink(numbers, 0, count - 1);
    return number;
}

/* Lift the requests in the way of request `i` and note them in `t->gone`; returns their number. */
static word lift_those_in_the_way(const World *w, const Holders *h, const Scratch *t, word i, word pool, word start) {
    const Pair hold = hold_at(w, i, pool, start);
    const word begin = hold.first, end = hold.second, need = w->asked.nodes.v[i];
    word *others = t->others.v, *gone = t->gone.v, count = 0;
    const word enough = enough_alone(w, pool, need, hold);
    Pair period = shortage(w, pool, need, begin, end);
    word left = period.first < period.second ? gather(h, pool, period.first, period.second, i, others) : 0;
    heap(others, left);
    while (period.first < period.second && left > 0) {
        /* Those passed over need not be checked again: shortages only shrink. */
        const word last = greatest(others, left--);
        if (is_to_blame(w, pool, enough, period, last)) {
            move_nodes(w, 0, last, 1);
            gone[count++] = last;
            period = shortage(w, pool, need, period.first, end);
        }
    }
    /* The last one is needed: without it there were too few. */
    for (word k = count - 2; k >= 0; k--) {
        move_nodes(w, 0, gone[k], -1);
        period = shortage(w, pool, need, begin, end);
        if (period.first < period.second)
            move_nodes(w, 0, gone[k], 1);
        else
            gone[k] = RETURNED;
    }
    return packed(gone, count);
}

#endif
