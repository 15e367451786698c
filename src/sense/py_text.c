#include "py_text.h"

#include <errno.h>
#include <string.h>

#define MOST_LENGTH 65536 /* characters; a str that claims more is no name and no path */
#define MOST_CHARS  256   /* as many as the longest text that is asked for has bytes */

static const char left_out[] = "...";

struct str {
        uint64_t chars, at; /* how many, and where the first stands */
        unsigned width;     /* bytes in each */
};

/* Length and state stand in the first 64 bytes of a str, and are read together. */
static int open_str(const struct afz_py_memory *m, const struct afz_py_layout *l, uint64_t address,
                    struct str *ret)
{
        unsigned char head[64];
        uint32_t length_at = l->at[AFZ_PY_TEXT_LENGTH], state_at = l->at[AFZ_PY_TEXT_STATE], state;
        struct str s;
        size_t bytes = length_at > state_at ? length_at + 8 : state_at + 4;
        if (length_at > sizeof head - 8 || state_at > sizeof head - 8)
                return -EBADMSG;
        int r = afz_py_read(m, address, head, bytes);
        if (r < 0)
                return r;
        memcpy(&s.chars, head + length_at, sizeof s.chars);
        memcpy(&state, head + state_at, sizeof state);
        s.width = state >> AFZ_PY_SHIFT_KIND & 7;
        bool ascii = state >> AFZ_PY_SHIFT_ASCII & 1;
        if ((state >> AFZ_PY_SHIFT_COMPACT & 1) == 0 || s.chars > MOST_LENGTH ||
            (s.width != 1 && s.width != 2 && s.width != 4) || (ascii && s.width != 1))
                return -EBADMSG;
        s.at = address + l->at[ascii ? AFZ_PY_TEXT_NARROW : AFZ_PY_TEXT_WIDE];
        *ret = s;
        return 0;
}

static uint32_t char_at(const unsigned char *raw, unsigned width, size_t i)
{
        uint16_t two;
        uint32_t four;
        switch (width) {
        case 1:
                return raw[i];
        case 2:
                memcpy(&two, raw + 2 * i, 2);
                return two;
        default:
                memcpy(&four, raw + 4 * i, 4);
                return four;
        }
}

static bool may_be_shown(uint32_t c)
{
        static const struct {
                uint32_t first, last;
        } never[] = {
                {0x00, 0x1f},     {0x7f, 0x9f},     /* controls */
                {0x200e, 0x200f}, {0x2028, 0x202e}, /* marks of direction, ends of lines */
                {0x2066, 0x2069},                   /* the same */
                {0xd800, 0xdfff},                   /* halves of characters */
                {0xfeff, 0xfeff}, {0xfffe, 0xffff}, {0x110000, UINT32_MAX},
        };
        for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
                if (c >= never[i].first && c <= never[i].last)
                        return false;
        }
        return true;
}

static size_t to_utf8(uint32_t c, char out[4])
{
        size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const unsigned char lead[] = {0x00, 0xc0, 0xe0, 0xf0};
        out[0] = (char)(lead[more] | c >> (6 * more));
        for (size_t i = 1; i <= more; i++)
                out[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
        return more + 1;
}

/* The bytes of `n` characters; `all` has room for four each. */
static size_t encode(const unsigned char *raw, unsigned width, size_t n, char *all)
{
        size_t len = 0;
        for (size_t i = 0; i < n; i++) {
                uint32_t c = char_at(raw, width, i);
                len += to_utf8(may_be_shown(c) ? c : '?', all + len);
        }
        return len;
}

static bool inside_char(char c)
{
        return ((unsigned char)c & 0xc0) == 0x80;
}

static void fit(const char *all, size_t len, bool whole, enum afz_py_keep keep, char *ret,
                size_t cap)
{
        if (whole && len < cap) {
                memcpy(ret, all, len);
                ret[len] = '\0';
                return;
        }
        size_t mark = sizeof left_out - 1, room = cap - 1 - mark, n = len < room ? len : room;
        if (keep == AFZ_PY_KEEP_START) {
                while (n > 0 && n < len && inside_char(all[n]))
                        n--;
                memcpy(ret, all, n);
                memcpy(ret + n, left_out, mark);
        } else {
                while (n > 0 && inside_char(all[len - n]))
                        n--;
                memcpy(ret, left_out, mark);
                memcpy(ret + mark, all + len - n, n);
        }
        ret[mark + n] = '\0';
}

int afz_py_text(const struct afz_py_memory *m, const struct afz_py_layout *l, uint64_t str,
                enum afz_py_keep keep, char *ret, size_t cap)
{
        unsigned char raw[4 * MOST_CHARS];
        char all[4 * MOST_CHARS];
        struct str s;
        int r = open_str(m, l, str, &s);
        if (r < 0)
                return r;
        size_t most = cap < MOST_CHARS ? cap : MOST_CHARS;
        size_t n = s.chars < most ? (size_t)s.chars : most;
        uint64_t first = keep == AFZ_PY_KEEP_END ? s.chars - n : 0;
        if (n > 0)
                r = afz_py_read(m, s.at + first * s.width, raw, n * s.width);
        if (r < 0)
                return r;
        fit(all, encode(raw, s.width, n, all), n == s.chars, keep, ret, cap);
        return 0;
}
