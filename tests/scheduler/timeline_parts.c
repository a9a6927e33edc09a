/* Single functions of the lines, for test_kernel_timeline.py. */

#include "searches.h"
void part_add(const Lines *a, word line, word begin, word end, word amount) { add(a, line, begin, end, amount); }
word part_lowest(const Lines *a, word line, word begin, word end) { return lowest(a, line, begin, end); }
word part_first_gap(const Lines *a, word line, word need, word length, word after, word before) {
    return first_gap(a, line, need, length, after, before);
}
word part_first_below(const Lines *a, word line, word need, word begin, word end) {
    return first_below(a, line, need, begin, end);
}
word part_last_below(const Lines *a, word line, word need, word end) { return last_below(a, line, need, end); }
word part_since(const Lines *a, word line, word need, word begin, word end) {
    return gaps_around(a, line, need, begin, end).first;
}
word part_longest(const Lines *a, word line, word need, word begin, word end) {
    return gaps_around(a, line, need, begin, end).second;
}
