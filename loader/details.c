#include "details.h"

#include <errno.h>
#include <string.h>

#include "flat.h"

struct reader {
        const char *at;
        struct afz_details *to;
        bool has_swapped, has_straight;
        unsigned has; /* words of the outermost level */
};

static bool take(struct reader *r, char c)
{
        r->at += strspn(r->at, " \t\r\n");
        if (*r->at != c)
                return false;
        r->at++;
        return true;
}

/* Names and dtypes have no letters that JSON would write in another way. */
static bool take_word(struct reader *r, const char **ret, size_t *ret_len)
{
        if (!take(r, '"'))
                return false;
        size_t n = strcspn(r->at, "\"\\\n");
        if (r->at[n] != '"')
                return false;
        *ret = r->at;
        *ret_len = n;
        r->at += n + 1;
        return true;
}

static bool take_number(struct reader *r, uint64_t *ret)
{
        uint64_t value = 0;
        r->at += strspn(r->at, " \t\r\n");
        size_t digits = strspn(r->at, "0123456789");
        for (size_t i = 0; i < digits; i++)
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(r->at[i] - '0'), &value))
                        return false;
        r->at += digits;
        *ret = value;
        return digits > 0 && value <= INT64_MAX;
}

static bool take_shape(struct reader *r, struct afz_field *field)
{
        if (!take(r, '['))
                return false;
        field->dimensions = 0;
        if (take(r, ']'))
                return true;
        do {
                if (field->dimensions == AFZ_DIMENSIONS_MAX ||
                    !take_number(r, &field->shape[field->dimensions]))
                        return false;
                field->dimensions++;
        } while (take(r, ','));
        return take(r, ']');
}

static bool take_dtype(struct reader *r, struct afz_field *field)
{
        const char *word;
        size_t len;
        bool is_swapped;
        if (!take_word(r, &word, &len) ||
            afz_dtype_parse(word, len, &field->dtype, &is_swapped) < 0)
                return false;
        if (afz_dtype_bytes(field->dtype) > 1) {
                r->has_swapped |= is_swapped;
                r->has_straight |= !is_swapped;
        }
        return true;
}

static bool take_name(struct reader *r, struct afz_field *field)
{
        const char *word;
        size_t len;
        if (!take_word(r, &word, &len) || len == 0 || len >= sizeof field->name)
                return false;
        memcpy(field->name, word, len);
        field->name[len] = '\0';
        return true;
}

enum { DTYPE = 1, SHAPE = 2, NAME = 4, FIELDS = 8, SKIP = 16, LENGTH = 32, OVERLAP = 64 };

static unsigned which(const char *word, size_t len)
{
        static const struct {
                const char *word;
                unsigned is;
        } words[] = {{"dtype", DTYPE}, {"shape", SHAPE},   {"name", NAME},      {"fields", FIELDS},
                     {"skip", SKIP},   {"length", LENGTH}, {"overlap", OVERLAP}};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
                if (strlen(words[i].word) == len && memcmp(word, words[i].word, len) == 0)
                        return words[i].is;
        return 0;
}

static bool take_object(struct reader *r, struct afz_field *field, unsigned allowed,
                        unsigned *ret_has);

static bool take_fields(struct reader *r)
{
        struct afz_details *to = r->to;
        if (!take(r, '['))
                return false;
        do {
                unsigned has;
                if (to->fields == AFZ_FIELDS_MAX ||
                    !take_object(r, &to->field[to->fields], DTYPE | SHAPE | NAME, &has) ||
                    !(has & DTYPE))
                        return false;
                to->fields++;
        } while (take(r, ','));
        return take(r, ']');
}

static bool take_value(struct reader *r, struct afz_field *field, unsigned is)
{
        switch (is) {
        case DTYPE:
                return take_dtype(r, field);
        case SHAPE:
                return take_shape(r, field);
        case NAME:
                return take_name(r, field);
        case FIELDS:
                return take_fields(r);
        case SKIP:
                return take_number(r, &r->to->skip);
        case LENGTH:
                return take_number(r, &r->to->length);
        case OVERLAP:
                return take_number(r, &r->to->overlap);
        default:
                return false;
        }
}

static bool take_object(struct reader *r, struct afz_field *field, unsigned allowed,
                        unsigned *ret_has)
{
        unsigned has = 0;
        const char *word;
        size_t len;
        if (!take(r, '{'))
                return false;
        *ret_has = 0;
        if (take(r, '}'))
                return true;
        do {
                if (!take_word(r, &word, &len) || !take(r, ':'))
                        return false;
                unsigned is = which(word, len);
                if (is == 0 || !(allowed & is) || has & is)
                        return false;
                has |= is;
                if (!take_value(r, field, is))
                        return false;
        } while (take(r, ','));
        *ret_has = has;
        return take(r, '}');
}

int afz_details_parse(const char *text, struct afz_details *ret, char why[AFZ_WHY_MAX])
{
        struct afz_details details = {0};
        struct afz_field one = {0};
        struct reader r = {.at = text, .to = &details};
        unsigned has = 0;
        bool is_good = take_object(&r, &one,
                                   DTYPE | SHAPE | NAME | FIELDS | SKIP | LENGTH | OVERLAP, &has) &&
                       *(r.at + strspn(r.at, " \t\r\n")) == '\0';
        /* Either one thing or a list of them. */
        if (!is_good || !(has & DTYPE) == !(has & FIELDS) || (has & FIELDS && has & (SHAPE | NAME)))
                return afz_why(why, -EINVAL,
                               "what a record is has to be said as {\"dtype\": \"f4\", \"shape\": "
                               "[3, 224, 224]}; "
                               "this is not understood from here on: %.60s",
                               *r.at ? r.at : text);
        if (r.has_swapped && r.has_straight)
                return afz_why(why, -EINVAL,
                               "some fields of a record have their bytes the other way round "
                               "(\">\"), some not");
        if (has & DTYPE) {
                details.field[0] = one;
                details.fields = 1;
        }
        details.is_swapped = r.has_swapped;
        *ret = details;
        return 0;
}
