#include "flight_stream.h"

#include <endian.h>

enum {
        SAME = 0xff,    /* in place of the number of plain bits: all are the value that follows */
        PLAIN_MAX = 48, /* plain bits */
        ESCAPE = 20,    /* so many ones: the value follows in 64 bits */
};

/* ---- writing ---- */

struct bits {
        struct afz_put *put;
        uint64_t word;
        unsigned n;
};

/* At most 56 at once. */
static void put_bits(struct bits *b, uint64_t v, unsigned n)
{
        b->word |= v << b->n;
        for (b->n += n; b->n >= 8; b->n -= 8, b->word >>= 8)
                afz_put_byte(b->put, (unsigned char)b->word);
}

static unsigned length_of(uint64_t v)
{
        return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* About how many bits the chunk takes: by the lengths of its values, which is near enough. */
static uint64_t cost(const unsigned char *of_length, unsigned longest, unsigned plain)
{
        uint64_t bits = 0;
        for (unsigned len = 0; len <= longest; len++) {
                if (!of_length[len])
                        continue;
                unsigned over = len > plain ? len - plain : 0;
                uint64_t ones = over == 0 ? 0 : over > 5 ? ESCAPE : (3U << over) / 4;
                bits += of_length[len] * (ones >= ESCAPE ? ESCAPE + 64 : ones + 1 + plain);
        }
        return bits;
}

static unsigned choose(const uint64_t *v, size_t n)
{
        unsigned char of_length[65] = {0};
        unsigned longest = 0, best = 0;
        for (size_t i = 0; i < n; i++) {
                unsigned len = length_of(v[i]);
                of_length[len]++;
                longest = len > longest ? len : longest;
        }
        uint64_t least = UINT64_MAX;
        for (unsigned plain = 0; plain <= longest && plain <= PLAIN_MAX; plain++) {
                uint64_t bits = cost(of_length, longest, plain);
                if (bits < least) {
                        least = bits;
                        best = plain;
                }
        }
        return best;
}

static void put_chunk(struct afz_put *put, const uint64_t *v, size_t n)
{
        bool same = true;
        for (size_t i = 1; i < n && same; i++)
                same = v[i] == v[0];
        if (same) {
                afz_put_byte(put, SAME);
                afz_put_number(put, v[0]);
                return;
        }
        unsigned plain = choose(v, n);
        struct bits b = {.put = put};
        afz_put_byte(put, (unsigned char)plain);
        for (size_t i = 0; i < n; i++) {
                uint64_t ones = v[i] >> plain;
                if (ones < ESCAPE) {
                        put_bits(&b, (UINT64_C(1) << ones) - 1, (unsigned)ones + 1);
                        put_bits(&b, v[i] & ((UINT64_C(1) << plain) - 1), plain);
                } else {
                        put_bits(&b, (UINT64_C(1) << ESCAPE) - 1, ESCAPE);
                        put_bits(&b, v[i] & UINT32_MAX, 32);
                        put_bits(&b, v[i] >> 32, 32);
                }
        }
        if (b.n)
                afz_put_byte(put, (unsigned char)b.word);
}

void afz_stream_put(struct afz_put *put, const uint64_t *v, size_t n)
{
        for (size_t at = 0; at < n; at += AFZ_STREAM_CHUNK)
                put_chunk(put, v + at, n - at < AFZ_STREAM_CHUNK ? n - at : AFZ_STREAM_CHUNK);
}

/* ---- reading ---- */

/* At least 57 bits from there on; zeros behind the end. */
static uint64_t peek(const struct afz_take *take, size_t bit)
{
        size_t at = bit >> 3;
        uint64_t word = 0;
        if (at + 8 <= take->n) {
                memcpy(&word, take->p + at, 8);
                word = le64toh(word);
        } else {
                for (unsigned i = 0; at + i < take->n && i < 8; i++)
                        word |= (uint64_t)take->p[at + i] << 8 * i;
        }
        return word >> (bit & 7);
}

static bool take_chunk(struct afz_take *take, uint64_t *v, size_t n)
{
        unsigned char plain;
        if (!afz_take_byte(take, &plain))
                return false;
        if (plain == SAME) {
                uint64_t value;
                if (!afz_take_number(take, &value))
                        return false;
                for (size_t i = 0; i < n; i++)
                        v[i] = value;
                return true;
        }
        if (plain > PLAIN_MAX)
                return false;
        size_t bit = 0;
        for (size_t i = 0; i < n; i++) {
                uint64_t word = peek(take, bit);
                unsigned ones = (unsigned)__builtin_ctzll(~word | UINT64_C(1) << ESCAPE);
                if (ones < ESCAPE) {
                        /* One look has 57 bits. */
                        uint64_t rest = ones + 1 + plain <= 57 ? word >> (ones + 1)
                                                               : peek(take, bit + ones + 1);
                        v[i] = (uint64_t)ones << plain | (rest & ((UINT64_C(1) << plain) - 1));
                        bit += ones + 1 + plain;
                } else {
                        v[i] = (peek(take, bit + ESCAPE) & UINT32_MAX) |
                               (peek(take, bit + ESCAPE + 32) & UINT32_MAX) << 32;
                        bit += ESCAPE + 64;
                }
        }
        size_t bytes = (bit + 7) / 8;
        if (bytes > take->n)
                return false;
        *take = (struct afz_take){take->p + bytes, take->n - bytes};
        return true;
}

bool afz_stream_take(struct afz_take *take, uint64_t *v, size_t n)
{
        for (size_t at = 0; at < n; at += AFZ_STREAM_CHUNK)
                if (!take_chunk(take, v + at,
                                n - at < AFZ_STREAM_CHUNK ? n - at : AFZ_STREAM_CHUNK))
                        return false;
        return true;
}
