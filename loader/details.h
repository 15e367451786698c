#ifndef AFZ_DETAILS_H
#define AFZ_DETAILS_H
/* What a file of bytes does not say of itself, as a few words of JSON:
 *
 *   {"dtype": "f4", "shape": [3, 224, 224]}                       a record is one thing
 *   {"fields": [{"name": "label", "dtype": "u1"},
 *               {"name": "image", "dtype": "u1", "shape": [3, 32, 32]}]}    or several
 *   {"dtype": "u2", "length": 1024, "overlap": 1}                 tokens
 *
 * and "skip": bytes before the first record. A word that is not known, or comes twice, is an error.
 */
#include "format.h"

struct afz_details {
        uint32_t fields;
        struct afz_field field[AFZ_FIELDS_MAX]; /* name, dtype, shape */
        bool is_swapped;                        /* all of them, or none */
        uint64_t skip, length, overlap;         /* 0: not said */
};

/* -EINVAL, with why. */
int afz_details_parse(const char *text, struct afz_details *ret, char why[AFZ_WHY_MAX]);

#endif
