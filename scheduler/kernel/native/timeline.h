/* Whole numbers over time, many lines in one arena: here planning spends nearly all its time.

A line is a step function. Its steps lie in blocks of at most `SIZE`. For each block a directory has the first instant,
the least and the greatest value, and what was added to the whole block. Taking or giving nodes changes only the steps
of the two blocks in which the hold begins and ends; a search (searches.h) skips whole blocks.

Lines never forget a step, so blocks stay at least half full after a split, and the space for them is known beforehand
(see scheduler/kernel/state.py). */

#ifndef EGS_TIMELINE_H
#define EGS_TIMELINE_H

#include "arrays.h"

#define SIZE 32

/* Columns of the directory: the block, its steps, what was added to all of them, and their bounds with that. */
enum { BLOCK, COUNT, ADDED, LEAST, MOST, COLUMNS };
/* Columns of a line: its part of the directory. */
enum { OFFSET, LENGTH, CAPACITY, LINE_COLUMNS };
/* The next free block, and the next free entry of the directory. */
enum { NEXT_BLOCK, NEXT_ENTRY };

/* The arena. `first` and `entries` are the directory; `at` and `value` are the blocks. */
typedef struct { Words first; Halves entries; Words at; Halves value; Words line, free; } Lines;

#define ENTRY(a, entry, column) ((a)->entries.v[(word)(entry) * COLUMNS + (column)])
#define STEP_AT(a, block, step) ((a)->at.v[(word)(block) * SIZE + (step)])
#define STEP_VALUE(a, block, step) ((a)->value.v[(word)(block) * SIZE + (step)])
#define LINE(a, line_, column) ((a)->line.v[(word)(line_) * LINE_COLUMNS + (column)])

/* Compute the least and the greatest value of a block again. */
static inline void measure(const Lines *a, word entry) {
    const int32_t *values = &STEP_VALUE(a, ENTRY(a, entry, BLOCK), 0);
    int32_t least = values[0], most = values[0], count = ENTRY(a, entry, COUNT);
    for (int32_t j = 1; j < count; j++) {
        least = values[j] < least ? values[j] : least;
        most = values[j] > most ? values[j] : most;
    }
    ENTRY(a, entry, LEAST) = least + ENTRY(a, entry, ADDED);
    ENTRY(a, entry, MOST) = most + ENTRY(a, entry, ADDED);
}

/* Make a line of these steps; the first is its origin. */
static inline void draw(const Lines *a, word line, const word *at, const word *value, word size) {
    const word half = SIZE / 2, blocks = (size + half - 1) / half, offset = a->free.v[NEXT_ENTRY];
    LINE(a, line, OFFSET) = offset;
    LINE(a, line, LENGTH) = blocks;
    LINE(a, line, CAPACITY) = 2 * blocks + 2;
    a->free.v[NEXT_ENTRY] += 2 * blocks + 2;
    for (word i = 0; i < blocks; i++) {
        const word block = a->free.v[NEXT_BLOCK]++, entry = offset + i;
        const word count = least_of(half, size - i * half);
        for (word j = 0; j < count; j++) {
            STEP_AT(a, block, j) = at[i * half + j];
            STEP_VALUE(a, block, j) = (int32_t)value[i * half + j];
        }
        a->first.v[entry] = STEP_AT(a, block, 0);
        ENTRY(a, entry, BLOCK) = (int32_t)block;
        ENTRY(a, entry, COUNT) = (int32_t)count;
        ENTRY(a, entry, ADDED) = 0;
        measure(a, entry);
    }
}

/* The entry of the block in which `instant` lies; before the origin: the first. */
static inline word entry_of(const Lines *a, word line, word instant) {
    const word *first = a->first.v;
    word low = LINE(a, line, OFFSET), count = LINE(a, line, LENGTH);
    while (count > 1) {
        const word half = count >> 1;
        low += first[low + half] <= instant ? half : 0;
        count -= half;
    }
    return low;
}

/* The step of that block in which `instant` lies. */
static inline word step_of(const Lines *a, word entry, word instant) {
    const word *at = &STEP_AT(a, ENTRY(a, entry, BLOCK), 0);
    word low = 0, count = ENTRY(a, entry, COUNT);
    while (count > 1) {
        const word half = count >> 1;
        low += at[low + half] <= instant ? half : 0;
        count -= half;
    }
    return low;
}

/* When the block after this one begins; NEVER after the last. */
static inline word following_of(const Lines *a, word entry, word stop) {
    return entry + 1 < stop ? a->first.v[entry + 1] : NEVER;
}

static inline word stop_of(const Lines *a, word line) {
    return LINE(a, line, OFFSET) + LINE(a, line, LENGTH);
}

/* Move the line's directory, if it is full, to a place of twice the size; returns the entry there. */
static inline word room_for_entry(const Lines *a, word line, word entry) {
    const word offset = LINE(a, line, OFFSET), length = LINE(a, line, LENGTH), capacity = LINE(a, line, CAPACITY);
    if (length < capacity)
        return entry;
    const word fresh = a->free.v[NEXT_ENTRY];
    a->free.v[NEXT_ENTRY] += 2 * capacity;
    LINE(a, line, OFFSET) = fresh;
    LINE(a, line, CAPACITY) = 2 * capacity;
    memcpy(&a->first.v[fresh], &a->first.v[offset], length * sizeof(word));
    memcpy(&ENTRY(a, fresh, 0), &ENTRY(a, offset, 0), length * COLUMNS * sizeof(int32_t));
    return fresh + entry - offset;
}

/* Move the upper half of a full block into a new block after it; returns the lower half's entry. */
static word split(const Lines *a, word line, word entry) {
    entry = room_for_entry(a, line, entry);
    const word block = ENTRY(a, entry, BLOCK), fresh = a->free.v[NEXT_BLOCK]++, half = SIZE / 2;
    memcpy(&STEP_AT(a, fresh, 0), &STEP_AT(a, block, half), half * sizeof(word));
    memcpy(&STEP_VALUE(a, fresh, 0), &STEP_VALUE(a, block, half), half * sizeof(int32_t));
    const word after = stop_of(a, line) - (entry + 1);
    memmove(&a->first.v[entry + 2], &a->first.v[entry + 1], after * sizeof(word));
    memmove(&ENTRY(a, entry + 2, 0), &ENTRY(a, entry + 1, 0), after * COLUMNS * sizeof(int32_t));
    LINE(a, line, LENGTH) += 1;
    a->first.v[entry + 1] = STEP_AT(a, fresh, 0);
    ENTRY(a, entry + 1, BLOCK) = (int32_t)fresh;
    ENTRY(a, entry + 1, ADDED) = ENTRY(a, entry, ADDED);
    ENTRY(a, entry, COUNT) = ENTRY(a, entry + 1, COUNT) = (int32_t)half;
    measure(a, entry);
    measure(a, entry + 1);
    return entry;
}

/* Make a step begin at `instant`; returns its entry. */
static inline word cut(const Lines *a, word line, word instant) {
    word entry = entry_of(a, line, instant), step = step_of(a, entry, instant), block = ENTRY(a, entry, BLOCK);
    if (STEP_AT(a, block, step) >= instant)
        return entry;
    if (ENTRY(a, entry, COUNT) == SIZE) {
        entry = split(a, line, entry);
        if (step >= SIZE / 2) {
            entry += 1;
            step -= SIZE / 2;
        }
        block = ENTRY(a, entry, BLOCK);
    }
    const word count = ENTRY(a, entry, COUNT), later = count - step - 1;
    memmove(&STEP_AT(a, block, step + 2), &STEP_AT(a, block, step + 1), later * sizeof(word));
    memmove(&STEP_VALUE(a, block, step + 2), &STEP_VALUE(a, block, step + 1), later * sizeof(int32_t));
    STEP_AT(a, block, step + 1) = instant;
    STEP_VALUE(a, block, step + 1) = STEP_VALUE(a, block, step);
    ENTRY(a, entry, COUNT) = (int32_t)(count + 1);
    return entry;
}

/* Add `amount` on [begin, end); the part before the origin is ignored. */
static void add(const Lines *a, word line, word begin, word end, word amount) {
    const bool lasts = end >= FOREVER;
    if (!lasts)
        cut(a, line, end);
    word entry = cut(a, line, begin), step = step_of(a, entry, begin);
    const word stop = stop_of(a, line);
    for (;;) {
        const word following = following_of(a, entry, stop);
        if (step == 0 && (lasts || following <= end)) {
            ENTRY(a, entry, ADDED) += (int32_t)amount;
            ENTRY(a, entry, LEAST) += (int32_t)amount;
            ENTRY(a, entry, MOST) += (int32_t)amount;
        } else {
            const word block = ENTRY(a, entry, BLOCK), count = ENTRY(a, entry, COUNT);
            for (; step < count && (lasts || STEP_AT(a, block, step) < end); step++)
                STEP_VALUE(a, block, step) += (int32_t)amount;
            measure(a, entry);
        }
        if (following >= end)
            return;
        entry += 1;
        step = 0;
    }
}

#endif
