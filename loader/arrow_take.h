#ifndef AFZ_ARROW_TAKE_H
#define AFZ_ARROW_TAKE_H
/* Rows of an Arrow batch into a load's fields: what the batch says of itself is checked against the
 * source's columns and itself first, then numbers are copied, and made wider where the field's are.
 * Nothing is kept of a batch, and nothing of it is written to. */
#include "arrow_abi.h"
#include "format.h"

/* A column of the source, as found in a stream's schema. */
struct afz_arrow_column {
        const struct afz_source_column *told;
        const struct afz_field *field;
        int64_t child; /* of the batch */
        enum afz_dtype dtype;
        uint32_t levels; /* of fixed-size lists around the numbers */
        uint64_t size[AFZ_DIMENSIONS_MAX];
};

/* Looks for all columns of the source, whose fields are `field` with their bytes; `ret` has room
 * for them. -EBADMSG: one is not there, or is something else; why begins with `name`. */
int afz_arrow_find(const struct afz_arrow_schema *schema, const struct afz_source *source,
                   const struct afz_field *field, const char *name, struct afz_arrow_column *ret,
                   char why[AFZ_WHY_MAX]);

/* Whether the batch holds together, with `columns` as they were found. A sentence's end, or NULL.
 */
const char *afz_arrow_check(const struct afz_arrow_array *batch,
                            const struct afz_arrow_column *column, uint32_t columns);

/* Copies `count` rows from row `from` of a batch that was checked, to row `to` of the load on. Rows
 * in which something is absent are set bad; that is told of the first, as a row of the batch. */
struct afz_arrow_absent {
        uint64_t row;
        const char *column; /* NULL: none */
};
void afz_arrow_take(const struct afz_arrow_array *batch, const struct afz_arrow_column *column,
                    uint32_t columns, bool is_null_nan, uint64_t from, const struct afz_load *load,
                    uint64_t to, uint64_t count, struct afz_arrow_absent *absent);

/* Numbers, one behind the other or as bits from a place on, into rows of `stride` bytes. */
struct afz_arrow_run {
        enum afz_dtype from_dtype, to_dtype; /* afz_arrow_holds() */
        const uint8_t *from;
        uint64_t first; /* number of `from` that comes first */
        uint8_t *to;
        uint64_t stride, rows, numbers; /* numbers: of a row */
};
bool afz_arrow_holds(enum afz_dtype to, enum afz_dtype from);
void afz_arrow_copy(const struct afz_arrow_run *run);

#endif
