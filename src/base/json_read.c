#include "json_read.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "utf8.h"

/* ---- the first look: is it sound? Each eats what it knows and says whether that was whole ---- */

static void eat(struct afz_span *s, size_t n)
{
        s->p += n;
        s->n -= n;
}

static bool eat_char(struct afz_span *s, char c)
{
        if (s->n == 0 || *s->p != c)
                return false;
        eat(s, 1);
        return true;
}

static void eat_blanks(struct afz_span *s)
{
        while (s->n > 0 && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
                eat(s, 1);
}

static size_t eat_digits(struct afz_span *s)
{
        size_t n = 0;
        for (; s->n > 0 && afz_is_digit(*s->p); n++)
                eat(s, 1);
        return n;
}

static bool eat_number(struct afz_span *s)
{
        eat_char(s, '-');
        if (!eat_char(s, '0') && eat_digits(s) == 0)
                return false;
        if (eat_char(s, '.') && eat_digits(s) == 0)
                return false;
        if (!eat_char(s, 'e') && !eat_char(s, 'E'))
                return true;
        if (!eat_char(s, '+'))
                eat_char(s, '-');
        return eat_digits(s) > 0;
}

static bool hex_digit(char c, uint32_t *ret)
{
        if (afz_is_digit(c))
                *ret = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
                *ret = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
                *ret = (uint32_t)(c - 'A' + 10);
        else
                return false;
        return true;
}

/* Four digits behind a \u. */
static bool eat_hex4(struct afz_span *s, uint32_t *ret)
{
        uint32_t code = 0, digit;
        for (size_t i = 0; i < 4; i++) {
                if (s->n <= i || !hex_digit(s->p[i], &digit))
                        return false;
                code = code << 4 | digit;
        }
        eat(s, 4);
        *ret = code;
        return true;
}

/* One escape, behind its backslash, as the character that it stands for. */
static bool eat_escape(struct afz_span *s, uint32_t *ret)
{
        static const char letter[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
        uint32_t high, low;
        if (s->n == 0)
                return false;
        char c = *s->p;
        const char *at = c ? strchr(letter, c) : NULL;
        eat(s, 1);
        if (at) {
                *ret = (unsigned char)meant[at - letter];
                return true;
        }
        if (c != 'u' || !eat_hex4(s, &high) || (high >= 0xdc00 && high <= 0xdfff))
                return false;
        if (high < 0xd800 || high > 0xdbff) {
                *ret = high;
                return true;
        }
        if (!eat_char(s, '\\') || !eat_char(s, 'u') || !eat_hex4(s, &low) || low < 0xdc00 ||
            low > 0xdfff)
                return false;
        *ret = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return true;
}

static bool eat_string(struct afz_span *s)
{
        uint32_t code;
        if (!eat_char(s, '"'))
                return false;
        while (s->n > 0) {
                unsigned char c = (unsigned char)*s->p;
                if (c == '"')
                        return eat_char(s, '"');
                if (c == '\\') {
                        eat(s, 1);
                        if (!eat_escape(s, &code))
                                return false;
                        continue;
                }
                size_t n = c < 0x20 ? 0 : c < 0x80 ? 1 : afz_utf8_length(s->p, s->n);
                if (n == 0)
                        return false;
                eat(s, n);
        }
        return false;
}

static bool eat_word(struct afz_span *s, const char *word)
{
        return afz_span_take_prefix(s, word) == 0;
}

static enum afz_json_type type_of(struct afz_span s)
{
        switch (s.n > 0 ? *s.p : '\0') {
        case '{':
                return AFZ_JSON_OBJECT;
        case '[':
                return AFZ_JSON_ARRAY;
        case '"':
                return AFZ_JSON_STRING;
        case 't':
        case 'f':
                return AFZ_JSON_BOOL;
        case 'n':
                return AFZ_JSON_NULL;
        default:
                return s.n > 0 && (*s.p == '-' || afz_is_digit(*s.p)) ? AFZ_JSON_NUMBER
                                                                      : AFZ_JSON_NONE;
        }
}

static bool eat_scalar(struct afz_span *s)
{
        switch (type_of(*s)) {
        case AFZ_JSON_STRING:
                return eat_string(s);
        case AFZ_JSON_NUMBER:
                return eat_number(s);
        case AFZ_JSON_BOOL:
                return eat_word(s, "true") || eat_word(s, "false");
        case AFZ_JSON_NULL:
                return eat_word(s, "null");
        default:
                return false;
        }
}

/* A member's key and colon. */
static bool eat_key(struct afz_span *s)
{
        eat_blanks(s);
        if (!eat_string(s))
                return false;
        eat_blanks(s);
        bool colon = eat_char(s, ':');
        eat_blanks(s);
        return colon;
}

/* The containers that are open at some place in a text. */
struct nest {
        unsigned depth;
        char closing[AFZ_JSON_DEPTH];
};

/* A scalar, or an opening bracket up to its first value. `ret_ended`: the value is over. */
static bool begin_value(struct afz_span *s, struct nest *nest, bool *ret_ended)
{
        char c = s->n > 0 ? *s->p : '\0';
        *ret_ended = true;
        if (c != '{' && c != '[')
                return eat_scalar(s);
        if (nest->depth == AFZ_JSON_DEPTH)
                return false;
        char end = c == '{' ? '}' : ']';
        eat(s, 1);
        eat_blanks(s);
        if (eat_char(s, end))
                return true;
        *ret_ended = false;
        nest->closing[nest->depth++] = end;
        return end == ']' || eat_key(s);
}

/* A value of any kind, without recursion: a file shall not say how deep our stack goes. */
static bool eat_value(struct afz_span *s)
{
        struct nest nest = {0};
        bool ended;
        for (;;) {
                if (!begin_value(s, &nest, &ended))
                        return false;
                if (!ended)
                        continue;
                /* What it is in may end with it. */
                for (; nest.depth > 0; nest.depth--) {
                        eat_blanks(s);
                        if (!eat_char(s, nest.closing[nest.depth - 1]))
                                break;
                }
                if (nest.depth == 0)
                        return true;
                if (!eat_char(s, ','))
                        return false;
                eat_blanks(s);
                if (nest.closing[nest.depth - 1] == '}' && !eat_key(s))
                        return false;
        }
}

int afz_json_read(struct afz_span text, struct afz_json_value *ret)
{
        eat_blanks(&text);
        struct afz_span all = text;
        enum afz_json_type type = type_of(text);
        if (!eat_value(&text))
                return -EBADMSG;
        all.n -= text.n;
        eat_blanks(&text);
        if (text.n > 0)
                return -EBADMSG;
        *ret = (struct afz_json_value){type, all};
        return 0;
}

/* ---- walking through what is known to be sound ---- */

struct afz_json_walk afz_json_into(struct afz_json_value container)
{
        struct afz_json_walk walk = {.object = container.type == AFZ_JSON_OBJECT};
        if (container.type == AFZ_JSON_OBJECT || container.type == AFZ_JSON_ARRAY) {
                walk.rest = container.raw;
                eat(&walk.rest, 1);
                walk.rest.n--; /* the closing bracket */
        }
        return walk;
}

static bool ends_value(char c)
{
        return c == ',' || c == ':' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Behind the end of a sound value: quotes and brackets are all that counts. */
static void skip_value(struct afz_span *s)
{
        unsigned depth = 0;
        bool quoted = false;
        for (; s->n > 0; eat(s, 1)) {
                char c = *s->p;
                if (quoted) {
                        if (c == '\\')
                                eat(s, 1);
                        quoted = c != '"';
                } else if (c == '"') {
                        quoted = true;
                } else if (c == '{' || c == '[') {
                        depth++;
                } else if (c == '}' || c == ']') {
                        depth--;
                } else if (depth == 0 && ends_value(c)) {
                        return;
                }
        }
}

static struct afz_json_value take(struct afz_span *s)
{
        struct afz_json_value value = {type_of(*s), *s};
        skip_value(s);
        value.raw.n -= s->n;
        return value;
}

bool afz_json_next(struct afz_json_walk *walk, struct afz_json_value *key,
                   struct afz_json_value *value)
{
        struct afz_json_value name = {0};
        struct afz_span *s = &walk->rest;
        eat_blanks(s);
        if (s->n == 0)
                return false;
        if (walk->object) {
                name = take(s);
                eat_blanks(s);
                eat_char(s, ':');
                eat_blanks(s);
        }
        *value = take(s);
        eat_blanks(s);
        eat_char(s, ',');
        if (key)
                *key = name;
        return true;
}

bool afz_json_member(struct afz_json_value object, const char *name, struct afz_json_value *ret)
{
        struct afz_json_value key, value;
        if (object.type != AFZ_JSON_OBJECT)
                return false;
        for (struct afz_json_walk walk = afz_json_into(object); afz_json_next(&walk, &key, &value);)
                if (afz_json_is(key, name)) {
                        *ret = value;
                        return true;
                }
        return false;
}

/* ---- what a value says ---- */

static size_t encode(uint32_t code, char ret[4])
{
        if (code < 0x80) {
                ret[0] = code ? (char)code : '?';
                return 1;
        }
        size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        for (size_t i = n; i-- > 1; code >>= 6)
                ret[i] = (char)(0x80 | (code & 0x3f));
        ret[0] = (char)((n == 2 ? 0xc0U : n == 3 ? 0xe0U : 0xf0U) | code);
        return n;
}

/* The next character of a string's inside, as UTF-8; 0 at its end. */
static size_t next_char(struct afz_span *s, char ret[4])
{
        uint32_t code;
        if (s->n == 0)
                return 0;
        if (*s->p == '\\') {
                eat(s, 1);
                return eat_escape(s, &code) ? encode(code, ret) : 0;
        }
        size_t n = afz_utf8_length(s->p, s->n);
        memcpy(ret, s->p, n);
        eat(s, n);
        return n;
}

static bool inside(struct afz_json_value value, struct afz_span *ret)
{
        if (value.type != AFZ_JSON_STRING || value.raw.n < 2)
                return false;
        *ret = (struct afz_span){value.raw.p + 1, value.raw.n - 2};
        return true;
}

bool afz_json_is(struct afz_json_value value, const char *text)
{
        struct afz_span s;
        char c[4];
        size_t n;
        if (!inside(value, &s))
                return false;
        for (; (n = next_char(&s, c)) > 0; text += n)
                if (strncmp(text, c, n) != 0)
                        return false;
        return *text == '\0';
}

bool afz_json_get_text(struct afz_json_value value, char *buf, size_t cap)
{
        struct afz_span s;
        char c[4];
        size_t n, at = 0;
        if (!inside(value, &s) || cap == 0)
                return false;
        for (; (n = next_char(&s, c)) > 0 && at + n < cap; at += n)
                memcpy(buf + at, c, n);
        buf[at] = '\0';
        return true;
}

bool afz_json_get_u64(struct afz_json_value value, uint64_t *ret)
{
        return value.type == AFZ_JSON_NUMBER && afz_span_u64(value.raw, ret) == 0;
}

bool afz_json_get_i64(struct afz_json_value value, int64_t *ret)
{
        return value.type == AFZ_JSON_NUMBER && afz_span_i64(value.raw, ret) == 0;
}

bool afz_json_get_bool(struct afz_json_value value, bool *ret)
{
        if (value.type != AFZ_JSON_BOOL)
                return false;
        *ret = *value.raw.p == 't';
        return true;
}

/* An exponent with its sign, or 0; beyond what a double has it no longer matters how far. */
static long exponent_of(struct afz_span *s)
{
        const long beyond = 1000000;
        long exponent = 0;
        if (!eat_char(s, 'e') && !eat_char(s, 'E'))
                return 0;
        bool minus = eat_char(s, '-');
        eat_char(s, '+');
        for (; s->n > 0; eat(s, 1))
                if (exponent < beyond)
                        exponent = exponent * 10 + (*s->p - '0');
        return minus ? -exponent : exponent;
}

/* By hand: pow() would be the only thing here that needs more than libc. */
static double scaled(uint64_t digits, long scale)
{
        long double v = digits;
        for (; scale > 0 && digits > 0 && v < 1e320L; scale--)
                v *= 10;
        for (; scale < 0 && v > 1e-340L; scale++)
                v /= 10;
        return (double)v;
}

/* strtod() would ask the locale what a decimal point is. */
bool afz_json_get_double(struct afz_json_value value, double *ret)
{
        struct afz_span s = value.raw;
        uint64_t digits = 0;
        long scale = 0;
        if (value.type != AFZ_JSON_NUMBER)
                return false;
        bool minus = eat_char(&s, '-'), fraction = false;
        for (; s.n > 0 && (*s.p == '.' || afz_is_digit(*s.p)); eat(&s, 1)) {
                if (*s.p == '.') {
                        fraction = true;
                } else if (digits < UINT64_MAX / 10 - 1) {
                        digits = digits * 10 + (uint64_t)(*s.p - '0');
                        scale -= fraction;
                } else {
                        scale += !fraction; /* more than a double can hold */
                }
        }
        double v = scaled(digits, scale + exponent_of(&s));
        if (!isfinite(v))
                return false;
        *ret = minus ? -v : v;
        return true;
}
