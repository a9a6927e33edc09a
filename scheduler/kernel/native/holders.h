/* Which requests hold nodes of a pool in a period: reservations by the begin of their holds.

They lie in blocks, as the steps of lines do. Each block knows its last end, so that most blocks are skipped. */

#ifndef EGS_HOLDERS_H
#define EGS_HOLDERS_H

#include "arrays.h"

#define HOLDERS 64

enum { HOLD_BLOCK, HOLD_COUNT };
enum { NEXT_HOLD_BLOCK, BUILT };

/* By pool: the number of rows (`length`) and the `longest` hold. By row: its first begin, its last end, and the block
with the begins, ends and owners of its holds. */
typedef struct { Words length, longest, first, last; Halves entries; Words begin, end, who, state; } Holders;

#define ROW(h, pool, row, column) ((h)->entries.v[((pool) * (h)->entries.rows + (row)) * 2 + (column)])

static inline word row_of(const Holders *h, word pool, word begin) {
    const word *first = &AT(h->first, pool, 0);
    word low = 0, count = h->length.v[pool];
    while (count > 1) {
        const word half = count >> 1;
        low += first[low + half] <= begin ? half : 0;
        count -= half;
    }
    return low;
}

static inline void copy_row(const Holders *h, word pool, word to, word from) {
    AT(h->first, pool, to) = AT(h->first, pool, from);
    AT(h->last, pool, to) = AT(h->last, pool, from);
    ROW(h, pool, to, HOLD_BLOCK) = ROW(h, pool, from, HOLD_BLOCK);
    ROW(h, pool, to, HOLD_COUNT) = ROW(h, pool, from, HOLD_COUNT);
}

static inline void copy_hold(const Holders *h, word to, word from) {
    h->begin.v[to] = h->begin.v[from];
    h->end.v[to] = h->end.v[from];
    h->who.v[to] = h->who.v[from];
}

/* Insert a row with an empty block; later rows move up by one. */
static inline void fresh_row(const Holders *h, word pool, word row) {
    for (word other = h->length.v[pool]; other > row; other--)
        copy_row(h, pool, other, other - 1);
    ROW(h, pool, row, HOLD_BLOCK) = (int32_t)h->state.v[NEXT_HOLD_BLOCK]++;
    h->length.v[pool] += 1;
}

static inline void measure_row(const Holders *h, word pool, word row) {
    const word block = (word)ROW(h, pool, row, HOLD_BLOCK) * HOLDERS;
    word last = -NEVER;
    for (word j = 0; j < ROW(h, pool, row, HOLD_COUNT); j++)
        last = greatest_of(last, h->end.v[block + j]);
    AT(h->last, pool, row) = last;
}

/* The later half of a full row becomes the next one. */
static inline void split_row(const Holders *h, word pool, word row) {
    const word half = HOLDERS / 2;
    fresh_row(h, pool, row + 1);
    const word old = (word)ROW(h, pool, row, HOLD_BLOCK) * HOLDERS;
    const word fresh = (word)ROW(h, pool, row + 1, HOLD_BLOCK) * HOLDERS;
    for (word j = 0; j < half; j++)
        copy_hold(h, fresh + j, old + half + j);
    ROW(h, pool, row, HOLD_COUNT) = ROW(h, pool, row + 1, HOLD_COUNT) = (int32_t)half;
    AT(h->first, pool, row + 1) = h->begin.v[fresh];
    measure_row(h, pool, row);
    measure_row(h, pool, row + 1);
}

/* `who` has this hold. */
static void insert(const Holders *h, word pool, Pair hold, word who) {
    const word begin = hold.first, end = hold.second;
    if (h->length.v[pool] == 0) {
        fresh_row(h, pool, 0);
        ROW(h, pool, 0, HOLD_COUNT) = 0;
        AT(h->first, pool, 0) = begin;
        AT(h->last, pool, 0) = end;
    }
    h->longest.v[pool] = greatest_of(h->longest.v[pool], end - begin);
    word row = row_of(h, pool, begin);
    if (ROW(h, pool, row, HOLD_COUNT) == HOLDERS) {
        split_row(h, pool, row);
        if (AT(h->first, pool, row + 1) <= begin)
            row += 1;
    }
    const word block = (word)ROW(h, pool, row, HOLD_BLOCK) * HOLDERS, count = ROW(h, pool, row, HOLD_COUNT);
    word place = block + count;
    for (; place > block && h->begin.v[place - 1] > begin; place--)
        copy_hold(h, place, place - 1);
    h->begin.v[place] = begin;
    h->end.v[place] = end;
    h->who.v[place] = who;
    ROW(h, pool, row, HOLD_COUNT) = (int32_t)(count + 1);
    AT(h->first, pool, row) = least_of(AT(h->first, pool, row), begin);
    AT(h->last, pool, row) = count ? greatest_of(AT(h->last, pool, row), end) : end;
}

/* Remove the hold of `who` that begins there. */
static void drop(const Holders *h, word pool, word begin, word who) {
    for (word row = row_of(h, pool, begin);; row--) { /* an earlier row may have equal begins */
        const word block = (word)ROW(h, pool, row, HOLD_BLOCK) * HOLDERS, count = ROW(h, pool, row, HOLD_COUNT);
        for (word j = block; j < block + count; j++) {
            if (h->who.v[j] != who)
                continue;
            for (; j < block + count - 1; j++)
                copy_hold(h, j, j + 1);
            ROW(h, pool, row, HOLD_COUNT) = (int32_t)(count - 1);
            measure_row(h, pool, row);
            return;
        }
    }
}

/* Requests ranked after `after` that hold nodes at any time of [begin, end), unordered; returns their number. */
static inline word gather(const Holders *h, word pool, word begin, word end, word after, word *found) {
    word count = 0;
    /* A hold that reaches beyond `begin` began at most the longest hold before it. */
    for (word row = row_of(h, pool, begin - h->longest.v[pool]); row < h->length.v[pool]; row++) {
        if (AT(h->first, pool, row) >= end)
            break;
        if (AT(h->last, pool, row) <= begin)
            continue;
        const word block = (word)ROW(h, pool, row, HOLD_BLOCK) * HOLDERS, size = ROW(h, pool, row, HOLD_COUNT);
        for (word j = block; j < block + size; j++)
            if (h->who.v[j] > after && h->begin.v[j] < end && h->end.v[j] > begin)
                found[count++] = h->who.v[j];
    }
    return count;
}

#endif
