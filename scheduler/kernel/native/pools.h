/* Free nodes of pools: the same results as `scheduler.calendars.calendar.PoolCalendar`, over lines.

A pool whose free time all ends together is one line. Any other pool has a line for their sum, then one for each instant
at which some free time ends, the last for nodes that stay. If the sum is too small for a hold, the groups need not be
searched. */

#ifndef EGS_POOLS_H
#define EGS_POOLS_H

#include "searches.h"

/* By pool: its first line and number of groups. By line: the group's end, and when it first has free time.

`width` is the number of lines of a side; lines of the second side follow those of the first. */
typedef struct { Words base, groups, prepare, drain, ends, since; word width; } Pools;

/* By request: where its shares begin, their number, and the group's line and nodes of each. */
typedef struct { Words first, counts, group, nodes; } Shares;

/* Nodes free on all of [begin, end). */
static word room(const Lines *a, const Pools *p, word side, word pool, word begin, word end) {
    const word shift = side * p->width, base = p->base.v[pool], groups = p->groups.v[pool];
    if (groups == 1)
        return lowest(a, shift + base, begin, end);
    word total = lowest(a, shift + base + groups, begin, end);
    for (word group = base + groups - 1; group > base && p->ends.v[group] >= end; group--)
        if (p->since.v[group] <= begin)
            total += lowest(a, shift + group, begin, end);
    return total;
}

/* Whether that many are free on all of [begin, end), on the first side; returns early if not. */
static inline bool has_room(const Lines *a, const Pools *p, word pool, word nodes, word begin, word end) {
    if (first_below(a, p->base.v[pool], nodes, begin, end) != NEVER)
        return false;
    return p->groups.v[pool] == 1 || room(a, p, 0, pool, begin, end) >= nodes;
}

/* First b in [after, before) at which `nodes` are free on all of [b, b + length); NEVER if there is none. */
static word earliest(
    const Lines *a, const Pools *p, word side, word pool, word nodes, word length, word after, word before
) {
    const word line = side * p->width + p->base.v[pool], groups = p->groups.v[pool];
    if (groups == 1)
        return first_gap(a, line, nodes, length, after, before);
    const word last = p->ends.v[p->base.v[pool] + groups - 1];
    for (;;) {
        const word begin = first_gap(a, line, nodes, length, after, before);
        if (begin == NEVER || room(a, p, side, pool, begin, begin + length) >= nodes)
            return begin;
        if (begin + length > last) /* only lasting nodes are left to count */
            return first_gap(a, line + groups, nodes, length, begin, before);
        after = after_instant(a, line, begin);
    }
}

/* Give back or take what request `i` holds, according to its shares. */
static void shift_nodes(
    const Lines *a, const Pools *p, word side, word pool, Pair hold, word nodes, word i, const Shares *s, word sign
) {
    const word offset = side * p->width, first = s->first.v[i];
    add(a, offset + p->base.v[pool], hold.first, hold.second, sign * nodes);
    for (word share = first; share < first + s->counts.v[i]; share++)
        add(a, offset + s->group.v[share], hold.first, hold.second, sign * s->nodes.v[share]);
}

/* Add up to `most` nodes of a group with `free` free ones to the sorted shares; returns their number. */
static inline word give_share(const Shares *s, word i, word group, word most, word free) {
    const word first = s->first.v[i], count = s->counts.v[i];
    word place = first;
    while (place < first + count && s->group.v[place] < group)
        place++;
    const bool known = place < first + count && s->group.v[place] == group;
    const word given = least_of(most, free - (known ? s->nodes.v[place] : 0));
    if (given <= 0)
        return 0;
    if (known) {
        s->nodes.v[place] += given;
        return given;
    }
    for (word share = first + count; share > place; share--) {
        s->group.v[share] = s->group.v[share - 1];
        s->nodes.v[share] = s->nodes.v[share - 1];
    }
    s->group.v[place] = group;
    s->nodes.v[place] = given;
    s->counts.v[i] = count + 1;
    return given;
}

static inline void share_out(
    const Lines *a, const Pools *p, word side, word pool, Pair hold, word nodes, word i, const Shares *s,
    const Shares *w
) {
    const word base = p->base.v[pool], groups = p->groups.v[pool], begin = hold.first, end = hold.second;
    word left = nodes;
    s->counts.v[i] = 0;
    for (word wanted = w->first.v[i]; wanted < w->first.v[i] + w->counts.v[i]; wanted++) {
        const word group = w->group.v[wanted];
        if (base < group && group <= base + groups && p->ends.v[group] >= end) {
            const word free = lowest(a, side * p->width + group, begin, end);
            left -= give_share(s, i, group, least_of(w->nodes.v[wanted], left), free);
        }
    }
    for (word group = base + 1; group <= base + groups && left != 0; group++)
        if (p->ends.v[group] >= end && (p->since.v[group] <= begin || group == base + groups)) {
            const word free = lowest(a, side * p->width + group, begin, end);
            left -= give_share(s, i, group, left, free);
        }
}

/* Take free nodes for request `i` and note their groups in `s`: those of `w` first, then soonest ends. */
static void take(
    const Lines *a, const Pools *p, word side, word pool, Pair hold, word nodes, word i, const Shares *s,
    const Shares *w
) {
    if (p->groups.v[pool] > 1)
        share_out(a, p, side, pool, hold, nodes, i, s, w);
    else
        s->counts.v[i] = 0;
    shift_nodes(a, p, side, pool, hold, nodes, i, s, -1);
}

#endif
