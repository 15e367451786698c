#ifndef AFZ_JSON_H
#define AFZ_JSON_H
/* Writes JSON onto an afz_out: commas and quoting are its business, shape is the caller's.
 *
 *      struct afz_json j = {.out = &out};
 *      afz_json_open(&j, '{');
 *      afz_json_key(&j, "pid"), afz_json_u64(&j, 12);
 *      afz_json_close(&j, '}');
 *
 * Strings are taken as UTF-8; bytes that are not become U+FFFD, so the output is always valid JSON.
 * Numbers that JSON cannot say (NaN, infinities) are written as null. Compact, on one line.
 */
#include <stdbool.h>
#include <stdint.h>

#include "out.h"

struct afz_json {
        struct afz_out *out;
        bool comma; /* the next value or key is not the first in its container */
};

void afz_json_open(struct afz_json *j, char bracket);
void afz_json_close(struct afz_json *j, char bracket);
void afz_json_key(struct afz_json *j, const char *key);
void afz_json_str(struct afz_json *j, const char *s); /* NULL is null */
void afz_json_u64(struct afz_json *j, uint64_t v);
void afz_json_known_u64(struct afz_json *j, uint64_t v); /* UINT64_MAX is "not known": null */
void afz_json_i64(struct afz_json *j, int64_t v);
void afz_json_double(struct afz_json *j, double v, int decimals);
void afz_json_bool(struct afz_json *j, bool v);
void afz_json_null(struct afz_json *j);

#endif
