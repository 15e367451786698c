#include "py_line.h"

#include <errno.h>
#include <limits.h>

#define MOST_TABLE (1 << 20) /* bytes; a module of 100,000 lines has less */

/* The table, read piece by piece: it may be long, and the line is often near its start. */
struct bytes {
        const struct afz_py_memory *m;
        uint64_t at, left; /* what isn't read yet */
        unsigned next, have;
        int error;
        unsigned char piece[1024];
};

static int open_bytes(const struct afz_py_memory *m, const struct afz_py_layout *l, uint64_t object,
                      struct bytes *b)
{
        b->m = m;
        b->at = object + l->at[AFZ_PY_BYTES_DATA];
        b->next = b->have = 0;
        b->error = 0;
        int r = afz_py_read_u64(m, object + l->at[AFZ_PY_BYTES_SIZE], &b->left);
        return r < 0 ? r : b->left > MOST_TABLE ? -EBADMSG : 0;
}

/* 0 to 255; -1: at its end, or unreadable (then `error` says why). */
static int take(struct bytes *b)
{
        if (b->next == b->have) {
                unsigned n = b->left < sizeof b->piece ? (unsigned)b->left : sizeof b->piece;
                if (n == 0 || b->error != 0)
                        return -1;
                b->error = afz_py_read(b->m, b->at, b->piece, n);
                if (b->error < 0)
                        return -1;
                b->at += n;
                b->left -= n;
                b->next = 0;
                b->have = n;
        }
        return b->piece[b->next++];
}

/* 3.9: pairs of a step in bytes and a step in lines; a line begins where its step ends. */
static int64_t by_lnotab(struct bytes *b, int64_t line, int64_t at)
{
        int64_t reached = 0;
        for (;;) {
                int step = take(b), lines = take(b);
                if (step < 0 || lines < 0)
                        return line;
                reached += step;
                if (reached > at)
                        return line;
                line += (int8_t)lines;
        }
}

/* 3.10: pairs of a length in bytes and a step in lines, -128 for a stretch without a line. */
static int64_t by_ranges(struct bytes *b, int64_t line, int64_t at)
{
        int64_t end = 0;
        for (;;) {
                int length = take(b), lines = take(b);
                if (length < 0 || lines < 0)
                        return 0;
                bool has_line = (int8_t)lines != INT8_MIN;
                line += has_line ? (int8_t)lines : 0;
                end += length;
                if (end > at)
                        return has_line ? line : 0;
        }
}

/* Six bits a byte, least first, bit 6 for "more"; false: broken. */
static bool take_varint(struct bytes *b, uint64_t *ret)
{
        uint64_t v = 0;
        for (unsigned shift = 0; shift < 36; shift += 6) {
                int c = take(b);
                if (c < 0)
                        return false;
                v |= (uint64_t)(c & 63) << shift;
                if ((c & 64) == 0) {
                        *ret = v;
                        return true;
                }
        }
        return false;
}

static bool take_signed(struct bytes *b, int64_t *ret)
{
        uint64_t v;
        if (!take_varint(b, &v))
                return false;
        *ret = v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
        return true;
}

static bool skip(struct bytes *b, int n)
{
        while (n-- > 0)
                if (take(b) < 0)
                        return false;
        return true;
}

static bool skip_varints(struct bytes *b, int n)
{
        uint64_t v;
        while (n-- > 0)
                if (!take_varint(b, &v))
                        return false;
        return true;
}

/* 3.11: a head byte with the form and the length in code units of two bytes, then what that form
 * has. */
static bool take_location(struct bytes *b, int form, int64_t *ret_lines)
{
        enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };
        *ret_lines = 0;
        if (form == NO_LINE)
                return true;
        if (form == LONG)
                return take_signed(b, ret_lines) && skip_varints(b, 3);
        if (form == NO_COLUMNS)
                return take_signed(b, ret_lines);
        if (form < ONE_LINE)
                return skip(b, 1);
        *ret_lines = form - ONE_LINE;
        return skip(b, 2);
}

static int64_t by_locations(struct bytes *b, int64_t line, int64_t at)
{
        int64_t end = 0, lines;
        for (;;) {
                int head = take(b);
                int form = head >> 3 & 15;
                if (head < 128 || !take_location(b, form, &lines))
                        return 0;
                line += lines;
                end += ((head & 7) + 1) * 2;
                if (end > at)
                        return form == 15 ? 0 : line;
        }
}

int afz_py_line(const struct afz_py_memory *m, const struct afz_py_layout *l, uint64_t table,
                int32_t first, int64_t at)
{
        static int64_t (*const ways[])(struct bytes *, int64_t, int64_t) = {
                [AFZ_PY_LINES_LNOTAB] = by_lnotab,
                [AFZ_PY_LINES_RANGES] = by_ranges,
                [AFZ_PY_LINES_LOCATIONS] = by_locations,
        };
        struct bytes b;
        if (at < 0)
                return first > 0 ? first : 0;
        int r = open_bytes(m, l, table, &b);
        if (r < 0)
                return r == -EBADMSG ? 0 : r;
        int64_t line = ways[l->lines](&b, first, at);
        if (b.error < 0)
                return b.error;
        return line > 0 && line <= INT_MAX ? (int)line : 0;
}
