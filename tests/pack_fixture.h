#ifndef AFZ_PACK_FIXTURE_H
#define AFZ_PACK_FIXTURE_H
/* Packs and samples made by hand, for tests of what is recorded. */
#include <stdint.h>
#include <stdlib.h>

#include "pack.h"

#define MS       UINT64_C(1000000)
#define START_NS (UINT64_C(5000) * 1000 * MS) /* the machine was up for a while */

static inline void pack_make(struct afz_pack *pack, size_t cap)
{
        *pack = (struct afz_pack){.buf = malloc(cap), .cap = cap};
        pack->seen = calloc(AFZ_PACK_SUBJECTS, sizeof *pack->seen);
        if (!pack->buf || !pack->seen)
                abort();
}

static inline void pack_done(struct afz_pack *pack)
{
        free(pack->buf);
        free(pack->seen);
}

static inline uint64_t at_ms(uint64_t ms)
{
        return START_NS + ms * MS;
}

static inline struct afz_sample sample_of(enum afz_kind kind, uint64_t id)
{
        return (struct afz_sample){.subject = {.kind = kind, .id = id}, .name = "it"};
}

/* A small generator: the same numbers in every run of a test. */
static inline uint64_t pack_random(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

#endif
