#ifndef AFZ_FLIGHT_BYTES_H
#define AFZ_FLIGHT_BYTES_H
/* The small change of the recording's format: numbers of seven bits a byte, least first, the top
 * bit saying that more follow (a number that fits 64 bits takes at most ten); signed ones folded so
 * that small ones stay small (0, -1, 1, -2, ...); texts with their length before them.
 *
 * Who puts beyond the end puts nothing and is `full`; who takes what is not there gets false. So
 * both sides ask once, at the end of a record.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "span.h"

struct afz_put {
        unsigned char *p;
        size_t len, cap;
        bool full;
};

struct afz_take {
        const unsigned char *p;
        size_t n;
};

enum { AFZ_VARINT_MAX = 10, AFZ_TEXT_CAP = 4096 };

static inline uint64_t afz_zigzag(int64_t v)
{
        return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

static inline int64_t afz_unzigzag(uint64_t z)
{
        return (int64_t)(z >> 1 ^ (z & 1 ? UINT64_MAX : 0));
}

static inline void afz_put_byte(struct afz_put *put, unsigned char byte)
{
        if (put->len < put->cap)
                put->p[put->len++] = byte;
        else
                put->full = true;
}

static inline void afz_put_bytes(struct afz_put *put, const void *bytes, size_t n)
{
        if (put->full || n > put->cap - put->len) {
                put->full = true;
                return;
        }
        if (n)
                memcpy(put->p + put->len, bytes, n);
        put->len += n;
}

static inline void afz_put_number(struct afz_put *put, uint64_t v)
{
        for (; v >= 0x80; v >>= 7)
                afz_put_byte(put, (unsigned char)(v | 0x80));
        afz_put_byte(put, (unsigned char)v);
}

static inline void afz_put_signed(struct afz_put *put, int64_t v)
{
        afz_put_number(put, afz_zigzag(v));
}

/* Made safe for a terminal, as afz_span_copy() does; with `lines`, the ends of lines stay. */
static inline size_t afz_text_copy(struct afz_span text, bool lines, char *buf, size_t cap)
{
        size_t n = afz_span_copy(text, buf, cap);
        for (size_t i = 0; lines && i < n; i++)
                if (text.p[i] == '\n')
                        buf[i] = '\n';
        return n;
}

/* At most cap - 1 bytes of it (AFZ_TEXT_CAP at most), never half a character, made safe for a
 * terminal. NULL is "". */
static inline void afz_put_lines(struct afz_put *put, const char *text, bool lines, size_t cap)
{
        char safe[AFZ_TEXT_CAP];
        size_t n = text ? strnlen(text, cap < sizeof safe ? cap : sizeof safe) : 0;
        if (n >= (cap < sizeof safe ? cap : sizeof safe)) {
                n--;
                while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
                        n--;
        }
        n = afz_text_copy((struct afz_span){text, n}, lines, safe, sizeof safe);
        afz_put_number(put, n);
        afz_put_bytes(put, safe, n);
}

static inline void afz_put_text(struct afz_put *put, const char *text, size_t cap)
{
        afz_put_lines(put, text, false, cap);
}

static inline bool afz_take_byte(struct afz_take *take, unsigned char *ret)
{
        if (take->n == 0)
                return false;
        *ret = *take->p++;
        take->n--;
        return true;
}

static inline bool afz_take_number(struct afz_take *take, uint64_t *ret)
{
        uint64_t v = 0;
        for (unsigned i = 0; i < AFZ_VARINT_MAX && i < take->n; i++) {
                unsigned char byte = take->p[i];
                if (i == AFZ_VARINT_MAX - 1 && byte > 1)
                        return false;
                v |= (uint64_t)(byte & 0x7f) << (7 * i);
                if (byte < 0x80) {
                        take->p += i + 1;
                        take->n -= i + 1;
                        *ret = v;
                        return true;
                }
        }
        return false;
}

static inline bool afz_take_u32(struct afz_take *take, uint32_t *ret)
{
        uint64_t v;
        if (!afz_take_number(take, &v) || v > UINT32_MAX)
                return false;
        *ret = (uint32_t)v;
        return true;
}

static inline bool afz_take_signed(struct afz_take *take, int64_t *ret)
{
        uint64_t z;
        if (!afz_take_number(take, &z))
                return false;
        *ret = afz_unzigzag(z);
        return true;
}

/* A piece of so many bytes as its length says. */
static inline bool afz_take_piece(struct afz_take *take, struct afz_take *ret)
{
        struct afz_take t = *take;
        uint64_t n;
        if (!afz_take_number(&t, &n) || n > t.n)
                return false;
        *ret = (struct afz_take){t.p, (size_t)n};
        *take = (struct afz_take){t.p + n, t.n - (size_t)n};
        return true;
}

/* What is longer than the buffer is cut; what could speak to a terminal becomes '?', for a file may
 * come from anywhere. */
static inline bool afz_take_lines(struct afz_take *take, bool lines, char *buf, size_t cap)
{
        struct afz_take piece;
        if (!afz_take_piece(take, &piece))
                return false;
        afz_text_copy((struct afz_span){(const char *)piece.p, piece.n}, lines, buf, cap);
        return true;
}

static inline bool afz_take_text(struct afz_take *take, char *buf, size_t cap)
{
        return afz_take_lines(take, false, buf, cap);
}

#endif
