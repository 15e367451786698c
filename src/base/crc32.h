#ifndef AFZ_CRC32_H
#define AFZ_CRC32_H
/* The sum that says whether bytes are as they were written: CRC-32 as zlib, PNG and Ethernet have
 * it (crc32() of "123456789" is cbf43926), so that any language can check our files.
 */
#include <stddef.h>
#include <stdint.h>

/* Goes on from `sum`, which is 0 at the start. */
uint32_t afz_crc32(uint32_t sum, const void *bytes, size_t n);

#endif
