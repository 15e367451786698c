#ifndef AFZ_CFI_H
#define AFZ_CFI_H
/* One row of a module's unwind table (.eh_frame): how the frame below an address is stepped over.
 * Pure: all memory comes through a callback, and nothing in it is believed. */
#include <stdint.h>

enum afz_cfi_kind {
        AFZ_CFI_END,    /* the outermost frame, or one that cannot be told */
        AFZ_CFI_SP,     /* the frame ends at the stack pointer + cfa */
        AFZ_CFI_FP,     /* the same from the frame pointer */
        AFZ_CFI_DEREF,  /* where it ends is written at the frame pointer + cfa, and the caller's
                           frame pointer at the frame pointer: a frame that was aligned */
        AFZ_CFI_GUESS,  /* no table: as FP, and to be checked */
        AFZ_CFI_SIGNAL, /* what a signal's handler returns to; where it came from lies elsewhere */
};

struct afz_cfi_rule {
        enum afz_cfi_kind kind;
        int32_t cfa;    /* bytes; less than 2^21 either way */
        int16_t ra, fp; /* where return address and caller's frame pointer lie from the frame's end;
                           fp 0: it is as it was */
};

enum { AFZ_CFI_ENTRY = 2048 }; /* bytes of one entry that are looked at */

/* Where the module's bytes come from, and room for two entries (so that they are on no stack). */
struct afz_cfi_source {
        /* How many of the bytes could be read, from the front. */
        uint64_t (*read)(void *context, uint64_t at, void *buf, uint64_t size);
        void *context;
        unsigned char fde[AFZ_CFI_ENTRY], cie[AFZ_CFI_ENTRY];
};

/* The rule for pc in a module that lies in [base, end). 0; -1: it has none (ret untouched). */
int afz_cfi_find(struct afz_cfi_source *source, uint64_t eh_frame_hdr, uint64_t base, uint64_t end,
                 uint64_t pc, struct afz_cfi_rule *ret);

/* In one word, with 13 bits of a tag that must be met again. */
uint64_t afz_cfi_pack(const struct afz_cfi_rule *rule, uint16_t tag);
_Bool afz_cfi_unpack(uint64_t packed, uint16_t tag, struct afz_cfi_rule *ret);

#endif
