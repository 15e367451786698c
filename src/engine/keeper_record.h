#ifndef AFZ_KEEPER_RECORD_H
#define AFZ_KEEPER_RECORD_H
/* Which sites go into the recording, and when: the largest stacks, from when they are first among
 * them to the end; all others are added up by the line of the program that they belong to. What has
 * not changed is told again only now and then. Names are looked up on the way,
 * for so much processor time a look; what finds none has one at a later look.
 */
#include "keeper_sites.h"

struct afz_recorder;
struct afz_symbols;

struct afz_keeper_record {
        struct afz_recorder *recorder; /* borrowed */
        struct afz_sites *sites;       /* borrowed */
        struct afz_symbols *symbols;   /* NULL: not there, or not asked for yet */
        bool asked;                    /* for symbols */
        unsigned stacks, lines;        /* that are recorded */
        char stack[AFZ_BOOK_TEXT_CAP * 16];
        uint64_t size_bytes[AFZ_SITES_MOST]; /* of stacks, to find the largest */
};

/* What stands in the sums now; t_ns is CLOCK_BOOTTIME. `last`: there will be no other. */
void afz_keeper_record(struct afz_keeper_record *record, uint64_t t_ns, bool last);

#endif
