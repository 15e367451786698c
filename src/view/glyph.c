#include "glyph.h"

#include <stdint.h>
#include <string.h>

#include "count_of.h"

enum { BAD = 0xfffd };

/* Strict: overlong forms, surrogates and what is cut short are BAD, and one byte is taken. */
static uint32_t take_code(const char **text, const char *end)
{
        static const struct {
                unsigned char mask, lead;
                uint32_t least;
        } form[] = {
                {0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
        const unsigned char *p = (const unsigned char *)*text;
        size_t have = (size_t)(end - *text);

        for (size_t i = 0; i < AFZ_COUNT_OF(form); i++) {
                if ((*p & form[i].mask) != form[i].lead || have <= i)
                        continue;
                uint32_t code = *p & (uint32_t)(unsigned char)~form[i].mask;
                size_t k = 1;
                for (; k <= i && (p[k] & 0xc0) == 0x80; k++)
                        code = code << 6 | (p[k] & 0x3f);
                if (k <= i || code < form[i].least || code > 0x10ffff ||
                    (code >= 0xd800 && code <= 0xdfff))
                        break;
                *text += i + 1;
                return code;
        }
        (*text)++;
        return BAD;
}

struct range {
        uint32_t from, to;
        int columns;
};

/* What is known to be safe, in order; all else is '?'. */
static const struct range ranges[] = {
        {0x20, 0x7e, 1},       {0xa0, 0xac, 1},
        {0xad, 0xad, 0},                          /* soft hyphen */
        {0xae, 0x2ff, 1},                         /* Latin */
        {0x300, 0x36f, 0},                        /* combining marks */
        {0x370, 0x377, 1},                        /* Greek */
        {0x37a, 0x37f, 1},     {0x384, 0x482, 1}, /* Greek, Cyrillic */
        {0x483, 0x489, 0},     {0x48a, 0x52f, 1},
        {0x531, 0x556, 1},                          /* Armenian */
        {0x561, 0x587, 1},     {0x10a0, 0x10ff, 1}, /* Georgian */
        {0x1100, 0x115f, 2},                        /* Hangul Jamo */
        {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},
        {0x1e00, 0x1fff, 1},                        /* Latin and Greek, extended */
        {0x200b, 0x200f, 0},                        /* joiners and marks of direction */
        {0x2010, 0x2027, 1},   {0x2028, 0x202e, 0}, /* line separators, embeddings of direction */
        {0x2030, 0x205e, 1},   {0x2060, 0x206f, 0},
        {0x20a0, 0x20c0, 1}, /* currencies */
        {0x20d0, 0x20f0, 0},   {0x2100, 0x214f, 1},
        {0x2190, 0x2199, 1}, /* arrows */
        {0x2200, 0x22ff, 1}, /* mathematics */
        {0x2500, 0x25fc, 1}, /* boxes, blocks, shapes */
        {0x2800, 0x28ff, 1}, /* Braille */
        {0x2e80, 0x303e, 2}, /* CJK */
        {0x3041, 0x33ff, 2}, /* Kana and more */
        {0x3400, 0x4dbf, 2},   {0x4e00, 0x9fff, 2},
        {0xa000, 0xa4cf, 2},                        /* Yi */
        {0xac00, 0xd7a3, 2},                        /* Hangul */
        {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0}, /* variation selectors */
        {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6b, 2},
        {0xfeff, 0xfeff, 0},   {0xff01, 0xff60, 2}, /* full width */
        {0xffe0, 0xffe6, 2},   {0x20000, 0x3fffd, 2},
        {0xe0100, 0xe01ef, 0},
};

static int columns_of(uint32_t code)
{
        size_t low = 0, high = AFZ_COUNT_OF(ranges);
        while (low < high) {
                size_t mid = (low + high) / 2;
                if (code > ranges[mid].to)
                        low = mid + 1;
                else if (code < ranges[mid].from)
                        high = mid;
                else
                        return ranges[mid].columns;
        }
        return -1;
}

int afz_glyph_take(const char **text, const char *end, char ret[AFZ_GLYPH_BYTES])
{
        const char *start = *text;

        memset(ret, 0, AFZ_GLYPH_BYTES);
        if (*start >= 0x20 && *start < 0x7f) { /* most of them by far */
                ret[0] = *start;
                (*text)++;
                return 1;
        }
        int columns = columns_of(take_code(text, end));
        if (columns < 0) {
                ret[0] = '?';
                return 1;
        }
        memcpy(ret, start, (size_t)(*text - start));
        return columns;
}

int afz_glyph_columns(const char *text)
{
        const char *end = text + strlen(text);
        char glyph[AFZ_GLYPH_BYTES];
        int columns = 0;
        while (text < end)
                columns += afz_glyph_take(&text, end, glyph);
        return columns;
}

char afz_glyph_ascii(const char glyph[AFZ_GLYPH_BYTES])
{
        static const struct {
                char glyph[AFZ_GLYPH_BYTES], ascii;
        } table[] = {
                {"─", '-'}, {"│", '|'},  {"┃", '|'}, {"├", '|'}, {"└", '`'}, {"╭", '.'}, {"╮", '.'},
                {"╰", '`'}, {"╯", '\''}, {"▁", '_'}, {"▂", '.'}, {"▃", ':'}, {"▄", '-'}, {"▅", '='},
                {"▆", '+'}, {"▇", '*'},  {"█", '#'}, {"▉", '#'}, {"▊", '#'}, {"▋", '#'}, {"▌", '#'},
                {"▍", '#'}, {"▎", ' '},  {"▏", ' '}, {"▓", '='}, {"▒", '='}, {"░", '-'}, {"·", '.'},
                {"–", '-'}, {"…", '~'},  {"°", ' '}, {"●", '*'}, {"■", '#'}, {"↑", '^'}, {"↓", 'v'},
        };
        if (!((unsigned char)glyph[0] & 0x80))
                return glyph[0];
        for (size_t i = 0; i < AFZ_COUNT_OF(table); i++)
                if (memcmp(table[i].glyph, glyph, AFZ_GLYPH_BYTES) == 0)
                        return table[i].ascii;
        return '?';
}

bool afz_glyph_is_steady(const char glyph[AFZ_GLYPH_BYTES])
{
        unsigned char a = (unsigned char)glyph[0], b = (unsigned char)glyph[1];
        /* ASCII, Latin up to U+02FF, and U+2000 to U+2FFF of which only boxes and the like pass. */
        return a < 0x80 || (a >= 0xc2 && a <= 0xcb) || (a == 0xe2 && b < 0xb0);
}
