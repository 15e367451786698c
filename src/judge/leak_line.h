#ifndef AFZ_LEAK_LINE_H
#define AFZ_LEAK_LINE_H
/* The line of the user's own code that made most of what grew. Pure. */
#include "leak_growth.h"

struct afz_leak_line {
        double bytes;   /* of growth */
        double share;   /* of the growth of all lines */
        char name[128]; /* "train.py:33 in step()" */
        struct afz_where where;
        bool is_python;
        bool is_below;                  /* it did not allocate itself: what it called did */
        const struct afz_site_row *row; /* the largest site's; with is_below only one of several */
};

/* The innermost line with enough of it; where several lines share it, the line that called them
 * all. False: none has, or most of what grew was seen by nobody. */
bool afz_leak_line_of(const struct afz_leak_growth *growth, struct afz_leak_line *ret);

#endif
