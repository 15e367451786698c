#include "pack.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "crc32c.h"

enum { SUM_BYTES = 4 };

struct afz_packer {
        int level;
        ZSTD_CCtx *zstd;
        uint8_t *room;
        uint64_t room_bytes, used_bytes;
};

uint64_t afz_pack_most_bytes(uint64_t plain_bytes)
{
        return ZSTD_compressBound(plain_bytes) + SUM_BYTES;
}

/* zstd takes what it needs when it is first used. */
static int warm_up(struct afz_packer *packer, uint64_t plain_bytes)
{
        const uint8_t *packed;
        uint64_t bytes;
        int r = afz_pack(packer, "", 0, plain_bytes, &packed, &bytes);
        afz_packer_empty(packer);
        return r;
}

struct afz_packer *afz_packer_new(int level, uint64_t plain_bytes, uint64_t room_bytes)
{
        struct afz_packer *packer = calloc(1, sizeof *packer);
        if (!packer)
                return NULL;
        packer->level = level;
        packer->room_bytes = room_bytes;
        packer->room = malloc(room_bytes);
        packer->zstd = ZSTD_createCCtx();
        if (!packer->room || !packer->zstd || warm_up(packer, plain_bytes) < 0) {
                afz_packer_free(packer);
                return NULL;
        }
        return packer;
}

void afz_packer_free(struct afz_packer *packer)
{
        if (!packer)
                return;
        ZSTD_freeCCtx(packer->zstd);
        free(packer->room);
        free(packer);
}

uint64_t afz_packer_bytes(const struct afz_packer *packer)
{
        return packer->room_bytes + ZSTD_sizeof_CCtx(packer->zstd);
}

void afz_packer_empty(struct afz_packer *packer)
{
        packer->used_bytes = 0;
}

static int compress(struct afz_packer *packer, uint8_t *to, const void *from, uint64_t bytes,
                    uint64_t *ret)
{
        size_t packed = bytes;
        if (packer->level == 0)
                memcpy(to, from, bytes);
        else
                packed = ZSTD_compressCCtx(packer->zstd, to, afz_pack_most_bytes(bytes), from,
                                           bytes, packer->level);
        if (ZSTD_isError(packed)) /* there is room for anything, so it can only be this */
                return -ENOMEM;
        *ret = packed;
        return 0;
}

int afz_pack(struct afz_packer *packer, const void *from, uint64_t bytes, uint64_t whole_bytes,
             const uint8_t **ret, uint64_t *ret_bytes)
{
        uint8_t *to = packer->room + packer->used_bytes, *whole = NULL;
        uint64_t packed = 0;
        if (afz_pack_most_bytes(whole_bytes) > packer->room_bytes - packer->used_bytes)
                return -ENOBUFS;
        if (bytes < whole_bytes) { /* the last chunk of an array */
                whole = calloc(1, whole_bytes);
                if (!whole)
                        return -ENOMEM;
                memcpy(whole, from, bytes);
        }
        int r = compress(packer, to, whole ? whole : from, whole_bytes, &packed);
        free(whole);
        if (r < 0)
                return r;
        uint32_t sum = htole32(afz_crc32c(to, packed));
        memcpy(to + packed, &sum, sizeof sum);
        *ret = to;
        *ret_bytes = packed + sizeof sum;
        packer->used_bytes += *ret_bytes;
        return 0;
}
