#include "codec.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "crc32c.h"
#include "file.h"
#if AFZ_HAVE_BLOSC
#include <blosc.h>
#endif
#if AFZ_HAVE_LZ4
#include <lz4.h>
#endif
#if AFZ_HAVE_ZLIB
#include <zlib.h>
#endif
#if AFZ_HAVE_ZSTD
#include <zstd.h>
#endif

enum {
        SUM_BYTES = 4,
        /* A compressor that finds nothing to compress adds a little: lz4 and zstd 1/255, gzip 5
         * bytes in 16 KiB, blosc 16 bytes. An eighth and this is more than any of them. */
        SPARE_BYTES = 65536,
        BLOSC_BLOCK = 4 << 20, /* blosc takes three blocks; it chooses less than this by itself */
        CONTEXT_BYTES = 256 << 10, /* zstd's and zlib's tables */
};

struct codec_row {
        const char *name, *package;
        bool is_here;
        uint64_t most_plain_bytes;
        int (*decode)(const uint8_t *from, uint64_t bytes, uint8_t *to, uint64_t plain_bytes,
                      struct afz_codec_state *state);
};

#if AFZ_HAVE_BLOSC
static int decode_blosc(const uint8_t *from, uint64_t bytes, uint8_t *to, uint64_t plain_bytes,
                        struct afz_codec_state *state)
{
        (void)state;
        size_t told = 0, encoded = 0, block = 0;
        if (bytes < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(from, bytes, &told) < 0)
                return -EBADMSG;
        blosc_cbuffer_sizes(from, &told, &encoded, &block);
        if (told != plain_bytes)
                return -EMSGSIZE;
        if (block > told || encoded != bytes)
                return -EBADMSG;
        if (block > BLOSC_BLOCK) /* it would take more of the heap than was told */
                return -E2BIG;
        int got = blosc_decompress_ctx(from, to, plain_bytes, 1);
        return got < 0 ? -EBADMSG : (uint64_t)got != plain_bytes ? -EMSGSIZE : 0;
}
#define BLOSC_MOST BLOSC_MAX_BUFFERSIZE
#else
#define decode_blosc NULL
#define BLOSC_MOST   0
#endif

#if AFZ_HAVE_LZ4
static int decode_lz4(const uint8_t *from, uint64_t bytes, uint8_t *to, uint64_t plain_bytes,
                      struct afz_codec_state *state)
{
        (void)state;
        uint32_t told;
        if (bytes < sizeof told || bytes > INT32_MAX)
                return -EBADMSG;
        memcpy(&told, from, sizeof told);
        if (le32toh(told) != plain_bytes)
                return -EMSGSIZE;
        int got = LZ4_decompress_safe((const char *)from + sizeof told, (char *)to,
                                      (int)(bytes - sizeof told), (int)plain_bytes);
        return got < 0 ? -EBADMSG : (uint64_t)got != plain_bytes ? -EMSGSIZE : 0;
}
#define LZ4_MOST LZ4_MAX_INPUT_SIZE
#else
#define decode_lz4 NULL
#define LZ4_MOST   0
#endif

#if AFZ_HAVE_ZSTD
/* Frame by frame, and only those of today's format: what the library keeps for the old ones is less
 * looked after. */
static int decode_zstd(const uint8_t *from, uint64_t bytes, uint8_t *to, uint64_t plain_bytes,
                       struct afz_codec_state *state)
{
        uint64_t done = 0;
        if (!state->zstd && !(state->zstd = ZSTD_createDCtx()))
                return -ENOMEM;
        while (bytes > 0) {
                uint32_t magic;
                size_t frame = ZSTD_findFrameCompressedSize(from, bytes);
                if (ZSTD_isError(frame) || frame < sizeof magic || frame > bytes)
                        return -EBADMSG;
                memcpy(&magic, from, sizeof magic);
                if (le32toh(magic) != ZSTD_MAGICNUMBER)
                        return -EBADMSG;
                size_t got = ZSTD_decompressDCtx(state->zstd, to + done, plain_bytes - done, from,
                                                 frame);
                if (ZSTD_isError(got))
                        return -EBADMSG;
                done += got, from += frame, bytes -= frame;
        }
        return done == plain_bytes ? 0 : -EMSGSIZE;
}
#else
#define decode_zstd NULL
#endif

#if AFZ_HAVE_ZLIB
static int inflater(struct afz_codec_state *state, z_stream **ret)
{
        enum { GZIP_OR_ZLIB = 32 + MAX_WBITS };
        z_stream *z = state->inflate;
        if (!z) {
                z = calloc(1, sizeof *z);
                if (!z || inflateInit2(z, GZIP_OR_ZLIB) != Z_OK) {
                        free(z);
                        return -ENOMEM;
                }
                state->inflate = z;
        }
        *ret = z;
        return inflateReset2(z, GZIP_OR_ZLIB) == Z_OK ? 0 : -ENOMEM;
}

/* gzip may be several members one behind the other. A byte of room behind the last tells of a
 * stream that has more to give than it should. */
static int decode_gzip(const uint8_t *from, uint64_t bytes, uint8_t *to, uint64_t plain_bytes,
                       struct afz_codec_state *state)
{
        enum { AT_ONCE = 1 << 30 }; /* its counters have 32 bits */
        uint64_t read = 0, done = 0;
        uint8_t beyond;
        z_stream *z;
        int r = inflater(state, &z);
        if (r < 0)
                return r;
        for (;;) {
                uint64_t in = bytes - read, out = plain_bytes - done;
                z->next_in = (Bytef *)(uintptr_t)(from + read);
                z->avail_in = (uInt)(in < AT_ONCE ? in : AT_ONCE);
                z->next_out = out > 0 ? to + done : &beyond;
                z->avail_out = (uInt)(out == 0 ? 1 : out < AT_ONCE ? out : AT_ONCE);
                uint64_t had_in = z->avail_in, had_out = z->avail_out;
                r = inflate(z, Z_NO_FLUSH);
                read += had_in - z->avail_in;
                if (out == 0 && z->avail_out == 0)
                        return -EMSGSIZE;
                done += out == 0 ? 0 : had_out - z->avail_out;
                if (r == Z_STREAM_END) {
                        if (read == bytes)
                                return done == plain_bytes ? 0 : -EMSGSIZE;
                        if (inflateReset(z) != Z_OK)
                                return -EBADMSG;
                } else if (r != Z_OK) { /* Z_BUF_ERROR: it ends in the middle */
                        return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
                }
        }
}
#else
#define decode_gzip NULL
#endif

static const struct codec_row rows[AFZ_CODEC_COUNT] = {
        [AFZ_CODEC_NONE] = {.name = "none", .is_here = true, .most_plain_bytes = UINT64_MAX},
        [AFZ_CODEC_BLOSC] = {"blosc", "libblosc-dev", AFZ_HAVE_BLOSC, BLOSC_MOST, decode_blosc},
        [AFZ_CODEC_GZIP] = {"gzip", "zlib1g-dev", AFZ_HAVE_ZLIB, UINT64_MAX, decode_gzip},
        [AFZ_CODEC_LZ4] = {"lz4", "liblz4-dev", AFZ_HAVE_LZ4, LZ4_MOST, decode_lz4},
        [AFZ_CODEC_ZSTD] = {"zstd", "libzstd-dev", AFZ_HAVE_ZSTD, UINT64_MAX, decode_zstd},
};

int afz_codec_named(const char *name)
{
        static const char prefix[] = "numcodecs."; /* as zarr-python names those that v3 does not */
        if (strncmp(name, prefix, sizeof prefix - 1) == 0)
                name += sizeof prefix - 1;
        if (strcmp(name, "zlib") == 0)
                return AFZ_CODEC_GZIP;
        for (int i = AFZ_CODEC_NONE + 1; i < AFZ_CODEC_COUNT; i++)
                if (strcmp(name, rows[i].name) == 0)
                        return i;
        return -ENOENT;
}

int afz_chain_check(const struct afz_chain *chain, uint64_t plain_bytes, const char *path,
                    char why[AFZ_WHY_MAX])
{
        const struct codec_row *row = &rows[chain->compressor];
        if (!row->is_here)
                return afz_why_left_out(why, path, row->name, row->package);
        if (afz_chain_room_bytes(chain, plain_bytes) > row->most_plain_bytes)
                return afz_why(why, -EFBIG,
                               "%s: its chunks have %llu bytes; %s cannot do more than %llu", path,
                               (unsigned long long)plain_bytes, row->name,
                               (unsigned long long)row->most_plain_bytes);
        return 0;
}

uint64_t afz_chain_room_bytes(const struct afz_chain *chain, uint64_t plain_bytes)
{
        return plain_bytes + chain->inner_sums * (uint64_t)SUM_BYTES;
}

uint64_t afz_chain_most_bytes(const struct afz_chain *chain, uint64_t plain_bytes)
{
        uint64_t room = afz_chain_room_bytes(chain, plain_bytes);
        if (chain->compressor != AFZ_CODEC_NONE)
                room += room / 8 + SPARE_BYTES;
        return room + chain->outer_sums * (uint64_t)SUM_BYTES;
}

uint64_t afz_chain_heap_bytes(const struct afz_chain *chain, uint64_t plain_bytes)
{
        uint64_t block = plain_bytes < BLOSC_BLOCK ? plain_bytes : BLOSC_BLOCK;
        return CONTEXT_BYTES + (chain->compressor == AFZ_CODEC_BLOSC ? 3 * block : 0);
}

static int sum_off(const uint8_t *data, uint64_t *bytes)
{
        uint32_t told;
        if (*bytes < SUM_BYTES)
                return -EMSGSIZE;
        *bytes -= SUM_BYTES;
        memcpy(&told, data + *bytes, sizeof told);
        return le32toh(told) == afz_crc32c(data, *bytes) ? 0 : -EILSEQ;
}

int afz_chain_decode(const struct afz_chain *chain, const uint8_t *from, uint64_t bytes,
                     uint8_t *to, uint64_t plain_bytes, struct afz_scratch *scratch)
{
        uint64_t room = afz_chain_room_bytes(chain, plain_bytes);
        int r = 0;
        for (uint32_t i = 0; i < chain->outer_sums && r == 0; i++)
                r = sum_off(from, &bytes);
        if (r < 0)
                return r;
        if (chain->compressor == AFZ_CODEC_NONE) {
                if (bytes != room)
                        return -EMSGSIZE;
                memcpy(to, from, room);
        } else {
                struct afz_codec_state *state = afz_codec_state(scratch);
                const struct codec_row *row = &rows[chain->compressor];
                r = !state         ? -ENOMEM
                    : !row->decode ? -ENOTSUP
                                   : row->decode(from, bytes, to, room, state);
        }
        for (uint32_t i = 0; i < chain->inner_sums && r == 0; i++)
                r = sum_off(to, &room);
        return r;
}

const char *afz_chain_error(int error)
{
        switch (error) {
        case -EBADMSG:
                return "its compressed data are damaged";
        case -EMSGSIZE:
                return "it has more or less data than a chunk has";
        case -EILSEQ:
                return "its checksum is wrong";
        case -E2BIG:
                return "its blosc blocks are over 4 MiB: write it without a blocksize of its own";
        default:
                return afz_error_text(error);
        }
}

struct afz_codec_state *afz_codec_state(struct afz_scratch *scratch)
{
        if (!scratch->codec)
                scratch->codec = calloc(1, sizeof(struct afz_codec_state));
        return scratch->codec;
}

void afz_codec_forget(struct afz_scratch *scratch)
{
        struct afz_codec_state *state = scratch->codec;
        if (!state)
                return;
#if AFZ_HAVE_ZSTD
        ZSTD_freeDCtx(state->zstd);
#endif
#if AFZ_HAVE_ZLIB
        if (state->inflate)
                inflateEnd(state->inflate);
#endif
        free(state->inflate);
        free(state);
        scratch->codec = NULL;
}
