#include "crc32c.h"

#include <string.h>

/* Eight bytes at a time by the processor's own instruction where it has one: a table of ours would
 * be slower than the disk. */
#if defined __x86_64__
#include <immintrin.h>
#define HAS_INSTRUCTION() __builtin_cpu_supports("sse4.2")
#define TARGET            __attribute__((target("sse4.2")))
#define STEP8(crc, word)  ((uint32_t)_mm_crc32_u64((crc), (word)))
#define STEP1(crc, byte)  _mm_crc32_u8((crc), (byte))
#elif defined __aarch64__ && (defined __ARM_FEATURE_CRC32 || !defined __clang__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#define HAS_INSTRUCTION() (getauxval(AT_HWCAP) & HWCAP_CRC32)
#define TARGET            __attribute__((target("+crc")))
#define STEP8(crc, word)  __crc32cd((crc), (word))
#define STEP1(crc, byte)  __crc32cb((crc), (byte))
#endif

static uint32_t by_halves(uint32_t crc, const uint8_t *data, size_t bytes)
{
        static const uint32_t half[16] = {
                0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
        };
        for (size_t i = 0; i < bytes; i++) {
                crc ^= data[i];
                crc = crc >> 4 ^ half[crc & 15];
                crc = crc >> 4 ^ half[crc & 15];
        }
        return crc;
}

#ifdef STEP8
TARGET static uint32_t by_instruction(uint32_t crc, const uint8_t *data, size_t bytes)
{
        uint64_t word;
        for (; bytes >= sizeof word; bytes -= sizeof word, data += sizeof word) {
                memcpy(&word, data, sizeof word);
                crc = STEP8(crc, word);
        }
        for (; bytes > 0; bytes--)
                crc = STEP1(crc, *data++);
        return crc;
}
#endif

uint32_t afz_crc32c(const uint8_t *data, size_t bytes)
{
#ifdef STEP8
        if (HAS_INSTRUCTION())
                return ~by_instruction(UINT32_MAX, data, bytes);
#endif
        return ~by_halves(UINT32_MAX, data, bytes);
}
