#ifndef AFZ_HANG_STACKS_H
#define AFZ_HANG_STACKS_H
/* Where the threads of a job stood while nothing moved, by the marks of the witness. Pure; part of
 * judge_hang.c.
 *
 * The witness looks twice (engine/witness.h). The last look tells who waits for what; the one
 * before it, who has not moved since, and whose deadline came and went without anything coming of
 * it. */
#include "flight.h"
#include "verdict.h"
#include "wait_kind.h"

/* One thread, or several of one process that stand at the same place. */
struct afz_stand {
        const struct afz_mark *mark;
        uint64_t pid, tid;
        unsigned threads;
        enum afz_wait wait;
        const char *words; /* what it waits for */
        bool timed;        /* a clock wakes it */
        bool unclear;      /* nobody knows what or how long it waits for */
        bool seen_before;  /* it was there at the look before */
        bool stood;        /* at the very same place, and has not moved since */
        bool beats;        /* it woke in between, by its clock, and sleeps by a clock again */
};

enum { AFZ_STANDS_MAX = 128 };

struct afz_stands {
        size_t count;
        struct afz_stand one[AFZ_STANDS_MAX];
};

/* Whether it is of a look at a thread: what was taken of a job that the guard held still says
 * nothing of where it stands by itself. */
bool afz_mark_is_look(const struct afz_mark *mark);

/* Of the last look within [from, to]; none: it has no marks there. */
void afz_stands_of(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                   struct afz_stands *ret);

/* The main thread of a process; NULL: it was not looked at. */
const struct afz_stand *afz_stands_main(const struct afz_stands *stands, uint64_t pid);

/* The next line of the user's own program in a stack, from the innermost outwards: Python's, and
 * not of the standard library or what was installed. *rest is what was not read yet. False: there
 * is none. */
bool afz_stand_next(const char **rest, struct afz_where *ret);
/* The innermost of them. */
bool afz_stand_where(const char *text, struct afz_where *ret);

/* Whether the innermost line of Python is the user's own: what it waits for, it asked for there. */
bool afz_stand_is_own(const char *text);

/* The stack in one line, innermost first: "futex_do_wait < train.py:33 in worker < train.py:50 in
 * main". */
void afz_stand_tell(const char *text, char *buf, size_t cap);

/* The file without its folders. */
const char *afz_where_file(const struct afz_where *where);
/* ", at train.py:33 in worker()"; "" where nobody knows. Returns buf. */
const char *afz_where_words(const struct afz_where *where, char *buf, size_t cap);

#endif
