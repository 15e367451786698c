#ifndef AFZ_CRC32C_H
#define AFZ_CRC32C_H
/* The checksum that Zarr v3 puts behind a chunk and behind a shard's index (Castagnoli's). */
#include <stddef.h>
#include <stdint.h>

uint32_t afz_crc32c(const uint8_t *data, size_t bytes);

#endif
