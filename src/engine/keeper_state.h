#ifndef AFZ_KEEPER_STATE_H
#define AFZ_KEEPER_STATE_H
/* The keeper's own state, shared by keeper_loop.c (its life), keeper_books.c (the books') and
 * keeper_look.c (a look at all of them).
 */
#include <sys/types.h>

#include "keeper_answer.h"
#include "keeper_blocks.h"
#include "keeper_inside.h"
#include "keeper_loop.h"
#include "keeper_record.h"

enum { AFZ_KEEPER_BOOKS = 64, AFZ_KEEPER_WHY_CAP = 400 };

/* A book that was handed over. */
struct afz_held {
        struct afz_book *book;
        pid_t pid;
        int pidfd;
        int memory_fd;                   /* until it is filled */
        uint64_t given_ns;               /* when it was handed over, */
        uint64_t fill_ns;                /* and when it is to be filled */
        uint64_t dead_ns;                /* 0: it lives */
        bool told;                       /* what it held when it died was recorded */
        uint32_t number[AFZ_BOOK_SITES]; /* and one more; 0: not known yet */
        struct afz_resident resident;
        struct afz_inside inside;
};

struct afz_keeping {
        const struct afz_keeper_order *order;
        struct afz_sites *sites;
        struct afz_keeper_record record;
        struct afz_past past;
        struct afz_block_sums sums;
        uint64_t mean_bytes;
        unsigned most;
        struct afz_held *held[AFZ_KEEPER_BOOKS];
        unsigned books;
        uint64_t looked_ns;      /* the last look; 0: there was none */
        uint64_t stepped_ns;     /* the look before the first step of any process; 0: none yet */
        uint64_t next_ns;        /* the next; UINT64_MAX: there was no book yet */
        unsigned given, refused; /* books, ever */
        unsigned full;           /* of those that are gone: had no room in a table */
        unsigned insides;        /* that were ever told */
        char python[64], why[AFZ_KEEPER_WHY_CAP]; /* sentences of the books, each once */
};

/* Gives a process a book, if there is room for one more. */
void afz_keeper_give(struct afz_keeping *keeping, int fd, pid_t pid, const char *program);
/* Takes the memory for a book whose time has come: one, as it takes a millisecond and others wait
 * to be served. When the next one's does (UINT64_MAX: none). */
uint64_t afz_keeper_fill(struct afz_keeping *keeping, uint64_t t_ns);
/* Its process is dead; the book stays for a look. */
void afz_keeper_bury(struct afz_keeping *keeping, struct afz_held *held);
/* Lets go of a book; the last one takes its place. */
void afz_keeper_fold(struct afz_keeping *keeping, unsigned at);
/* Takes in what a book says of the probe, and whether a table of it was full. */
void afz_keeper_note(struct afz_keeping *keeping, const struct afz_book *book);
bool afz_keeper_was_full(const struct afz_book *book);

/* Reads all books, adds up and records. `last`: there will be no other. */
void afz_keeper_look(struct afz_keeping *keeping, uint64_t t_ns, bool last);

#endif
