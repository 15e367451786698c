#ifndef AFZ_PACK_H
#define AFZ_PACK_H
/* Plain chunks to packed ones: zstd, and crc32c behind it. The same bytes for the same chunk and
 * level, whoever packs it. A packer is one thread's. */
#include <stdint.h>

struct afz_packer;

/* For chunks of up to plain_bytes, which take up to room_bytes packed, all that are kept at a time.
 * Level 0: not compressed, only summed. NULL: no memory. */
struct afz_packer *afz_packer_new(int level, uint64_t plain_bytes, uint64_t room_bytes);
void afz_packer_free(struct afz_packer *packer);

/* How much of the heap one takes: measured, since zstd's tables depend on level and size. */
uint64_t afz_packer_bytes(const struct afz_packer *packer);

/* The most that a chunk may come to. */
uint64_t afz_pack_most_bytes(uint64_t plain_bytes);

/* `bytes` of plain data, and zeros up to whole_bytes: a chunk that reaches beyond the last sample
 * is filled up. The packed bytes stay the packer's, until it is emptied. -ENOMEM; -ENOBUFS: there
 * is no room for them. */
int afz_pack(struct afz_packer *packer, const void *from, uint64_t bytes, uint64_t whole_bytes,
             const uint8_t **ret, uint64_t *ret_bytes);
void afz_packer_empty(struct afz_packer *packer);

#endif
