#ifndef AFZ_CODEC_H
#define AFZ_CODEC_H
/* What stands between the bytes of a file and those of an array: at most one compressor, and
 * checksums before or behind it. Plain is what an array is made of, encoded what lies in the file.
 */
#include <stdint.h>

#include "format.h"

enum afz_codec {
        AFZ_CODEC_NONE,
        AFZ_CODEC_BLOSC,
        AFZ_CODEC_GZIP, /* zlib's own format, too: which of the two is told by the data */
        AFZ_CODEC_LZ4,  /* as numcodecs has it: the size in four bytes, then one block */
        AFZ_CODEC_ZSTD,
        AFZ_CODEC_COUNT
};

struct afz_chain {
        enum afz_codec compressor;
        uint32_t inner_sums; /* crc32c of the plain bytes, compressed with them */
        uint32_t outer_sums; /* crc32c of the encoded bytes, behind them */
};

/* By its name in Zarr, or -ENOENT. */
int afz_codec_named(const char *name);

/* Fails with -ENOTSUP and a sentence where this build has no such codec; -EFBIG: it cannot do
 * chunks of that size. */
int afz_chain_check(const struct afz_chain *chain, uint64_t plain_bytes, const char *path,
                    char why[AFZ_WHY_MAX]);

/* The most that plain bytes may take up encoded: a file that has more is not what it says. */
uint64_t afz_chain_most_bytes(const struct afz_chain *chain, uint64_t plain_bytes);
/* What has to be at `to` for afz_chain_decode(). */
uint64_t afz_chain_room_bytes(const struct afz_chain *chain, uint64_t plain_bytes);
/* What the libraries take from the heap for a thread, about. */
uint64_t afz_chain_heap_bytes(const struct afz_chain *chain, uint64_t plain_bytes);

/* Exactly plain_bytes, or an error: -EBADMSG: damaged; -EMSGSIZE: more or less than it should be;
 * -EILSEQ: a checksum is wrong; -E2BIG: it takes more of the heap than was told; -ENOMEM. */
int afz_chain_decode(const struct afz_chain *chain, const uint8_t *from, uint64_t bytes,
                     uint8_t *to, uint64_t plain_bytes, struct afz_scratch *scratch);
const char *afz_chain_error(int error);

/* What a thread keeps from one load to the next (scratch->codec). One for all formats of this
 * folder. */
struct afz_codec_state {
        void *zstd, *inflate;
};
struct afz_codec_state *afz_codec_state(struct afz_scratch *scratch); /* NULL: no memory */
void afz_codec_forget(struct afz_scratch *scratch);

#endif
