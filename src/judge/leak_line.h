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
        bool by_pool;  /* a framework's own pool grew: this line keeps most of what else stayed, */
        bool asked;    /* or it grew mostly when this line asked for memory */
        bool is_below; /* it did not allocate itself: what it called did */
        bool in_function;               /* several lines of its function share it; it has most */
        const struct afz_site_row *row; /* the largest site's; with is_below only one of several */
};

/* The innermost line with enough of it; where several lines share it, the largest if they are of
 * one function, or the line that called them all. False: none has, or most of what grew was seen by
 * nobody. */
bool afz_leak_line_of(const struct afz_leak_growth *growth, struct afz_leak_line *ret);

/* Where loader workers copy what they share with their parent: the line that allocated most of it,
 * before the first of them began. False: it is not clear. */
bool afz_leak_shared_line(const struct afz_leak_growth *growth, struct afz_site_row *ret);

/* Where the heap is in pieces: the line whose small blocks stay, and so lie between. False: none is
 * known. */
bool afz_leak_pin_line(const struct afz_leak_growth *growth, struct afz_site_row *ret);

#endif
