#ifndef AFZ_KEEPER_INSIDE_H
#define AFZ_KEEPER_INSIDE_H
/* What processes tell of themselves as a whole (AFZ_KIND_INSIDE): steps, what is live, how malloc
 * stands, what was refused, and the figures of their framework (enum afz_told). Of a job with many
 * processes, those that have steps or tell figures and the largest are recorded, each from when it
 * is first among them; when something changed, and now and then.
 *
 * A process with steps is told with one point of 0 before the first other: at the look before, or
 * when it got its book. So the first step lies between the two.
 */
#include "keeper_book.h"

struct afz_recorder;

struct afz_inside {
        char name[64]; /* of the program */
        uint64_t live_bytes;
        struct afz_book_inside now, put;
        bool chosen;
        uint64_t put_ns, put_live_bytes;
};

/* Takes in what a book says. Steps, waits and all that is counted never run back; a figure that is
 * taken back is as if it had not been told. */
void afz_inside_look(struct afz_inside *inside, struct afz_book *book);
/* And then how much is really there, of what all of its sites say. */
void afz_inside_there(struct afz_inside *inside, uint64_t there_bytes, uint64_t said_bytes);

/* One of those that are there at this look. */
struct afz_inside_one {
        struct afz_inside *inside;
        uint64_t pid;
        uint64_t before_ns; /* when no step of it had been seen yet */
};

/* *chosen: how many ever were. */
void afz_inside_record(struct afz_recorder *recorder, const struct afz_inside_one *one, unsigned n,
                       uint64_t t_ns, bool last, unsigned *chosen);

#endif
