#ifndef AFZ_JSON_READ_H
#define AFZ_JSON_READ_H
/* Reads JSON (RFC 8259) where it lies: nothing is copied and nothing is allocated. A text is first
 * looked at as a whole, strictly; the values handed out are pieces of it that are known to be
 * sound, and are walked from there.
 *
 *      struct afz_json_value doc, key, value;
 *      if (afz_json_read(text, &doc) < 0)
 *              return -EBADMSG;
 *      for (struct afz_json_walk walk = afz_json_into(doc); afz_json_next(&walk, &key, &value);)
 *              if (afz_json_is(key, "duration_s"))
 *                      ok = afz_json_get_double(value, &seconds);
 *
 * Refused: anything after the value, commas too many, single quotes, comments, NaN, "01", "+1",
 * control characters in a string, what is no UTF-8, half a surrogate pair, and more than
 * AFZ_JSON_DEPTH containers in one another. A number is kept as it was written and is looked at
 * when it is asked for; one that does not fit is not given. Keys that come twice are both handed
 * out: what that means is for the caller to say.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "span.h"

enum { AFZ_JSON_DEPTH = 32 };

enum afz_json_type {
        AFZ_JSON_NONE, /* no value at all: the key of an array's element */
        AFZ_JSON_NULL,
        AFZ_JSON_BOOL,
        AFZ_JSON_NUMBER,
        AFZ_JSON_STRING,
        AFZ_JSON_ARRAY,
        AFZ_JSON_OBJECT,
};

/* A value in a text that was found sound; the text must stay. */
struct afz_json_value {
        enum afz_json_type type;
        struct afz_span raw; /* as it stands there, quotes and brackets with it */
};

/* The whole text is one value, blanks around it aside. -EBADMSG: it is not. */
int afz_json_read(struct afz_span text, struct afz_json_value *ret);

/* The members of an object or the elements of an array, one after the other; of anything else there
 * are none. */
struct afz_json_walk {
        bool object;
        struct afz_span rest;
};
struct afz_json_walk afz_json_into(struct afz_json_value container);
/* `key` is a string, or of type NONE in an array; NULL: it does not matter. */
bool afz_json_next(struct afz_json_walk *walk, struct afz_json_value *key,
                   struct afz_json_value *value);

/* The first member of that name; false when there is none, or it is no object. */
bool afz_json_member(struct afz_json_value object, const char *name, struct afz_json_value *ret);

/* Whether it is a string and says just this. A NUL in it (\u0000) reads as '?'. */
bool afz_json_is(struct afz_json_value value, const char *text);

/* What it says, if it says that: whole numbers without point and exponent, in range. */
bool afz_json_get_u64(struct afz_json_value value, uint64_t *ret);
bool afz_json_get_i64(struct afz_json_value value, int64_t *ret);
bool afz_json_get_double(struct afz_json_value value, double *ret); /* finite */
bool afz_json_get_bool(struct afz_json_value value, bool *ret);

/* A string without its escapes, ended by a NUL, in `buf`. What does not fit is cut, between two
 * characters. False: it is no string. */
bool afz_json_get_text(struct afz_json_value value, char *buf, size_t cap);

#endif
