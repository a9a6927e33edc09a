/* Arrays of numpy and their tuples, as scheduler/kernel/native.py passes them: every field is a word or three.

Each struct has the fields of the NamedTuple of the same name, in its order. Nothing here makes or keeps an array. */

#ifndef EGS_ARRAYS_H
#define EGS_ARRAYS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef int64_t word;

/* One or two dimensions: `columns` is the length of a row, `rows` their number (1 for a single dimension). Of three
dimensions they are the last two. */
typedef struct { word *v; word columns, rows; } Words;
typedef struct { int32_t *v; word columns, rows; } Halves;
typedef struct { uint8_t *v; word columns, rows; } Flags;

/* native.py writes eight bytes for each pointer and number. */
_Static_assert(sizeof(void *) == 8 && sizeof(Words) == 24, "64 bits are needed");

#define AT(a, row, column) ((a).v[(word)(row) * (a).columns + (column)])

/* A pair that a function returns: a period, or a pool and a start. */
typedef struct { word first, second; } Pair;

#define NEVER ((word)1 << 61)
#define FOREVER ((word)1 << 60)
#define NOWHERE (-1)

static inline word least_of(word a, word b) { return a < b ? a : b; }
static inline word greatest_of(word a, word b) { return a > b ? a : b; }
static inline Pair pair(word first, word second) { return (Pair){first, second}; }

#endif
