#include "arrow_take.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
        CHILDREN_MAX = 1 << 20, /* columns of a table: more are no table */
        BLOCK_ROWS = 256,       /* taken of all columns before the next: the cache has them then */
};

/* ---- what a stream says it has ---- */

static bool dtype_of(const char *format, enum afz_dtype *ret)
{
        static const char letters[AFZ_DTYPE_COUNT] = {
                [AFZ_U8] = 'C',  [AFZ_I8] = 'c',  [AFZ_U16] = 'S', [AFZ_I16] = 's',
                [AFZ_U32] = 'I', [AFZ_I32] = 'i', [AFZ_U64] = 'L', [AFZ_I64] = 'l',
                [AFZ_F16] = 'e', [AFZ_F32] = 'f', [AFZ_F64] = 'g', [AFZ_BOOL] = 'b',
        };
        if (!format || format[0] == '\0' || format[1] != '\0')
                return false;
        for (unsigned i = 0; i < AFZ_DTYPE_COUNT; i++)
                if (letters[i] == format[0]) {
                        *ret = (enum afz_dtype)i;
                        return true;
                }
        return false;
}

/* "+w:128" */
static bool list_of(const char *format, uint64_t *ret)
{
        if (!format || strncmp(format, "+w:", 3) != 0 || format[3] < '0' || format[3] > '9')
                return false;
        char *end;
        errno = 0;
        unsigned long long size = strtoull(format + 3, &end, 10);
        if (*end || errno || size == 0 || size > INT64_MAX)
                return false;
        *ret = size;
        return true;
}

static bool has_children(const struct afz_arrow_schema *schema, int64_t count)
{
        if (schema->n_children != count || (count && !schema->children))
                return false;
        for (int64_t i = 0; i < count; i++)
                if (!schema->children[i])
                        return false;
        return true;
}

/* Numbers, inside as many fixed-size lists as there may be. */
static bool understand(const struct afz_arrow_schema *schema, struct afz_arrow_column *column)
{
        uint64_t numbers = 1;
        for (column->levels = 0; !schema->dictionary; column->levels++) {
                if (dtype_of(schema->format, &column->dtype))
                        return has_children(schema, 0) && numbers == column->told->numbers;
                if (column->levels == AFZ_DIMENSIONS_MAX ||
                    !list_of(schema->format, &column->size[column->levels]) ||
                    !has_children(schema, 1) ||
                    __builtin_mul_overflow(numbers, column->size[column->levels], &numbers))
                        return false;
                schema = schema->children[0];
        }
        return false;
}

static int64_t child_named(const struct afz_arrow_schema *schema, const char *name, int64_t guess)
{
        const char *other = guess < schema->n_children ? schema->children[guess]->name : NULL;
        if (other && strcmp(other, name) == 0)
                return guess;
        for (int64_t i = 0; i < schema->n_children; i++) {
                other = schema->children[i]->name;
                if (other && strcmp(other, name) == 0)
                        return i;
        }
        return -1;
}

int afz_arrow_find(const struct afz_arrow_schema *schema, const struct afz_source *source,
                   const struct afz_field *field, const char *name, struct afz_arrow_column *ret,
                   char why[AFZ_WHY_MAX])
{
        if (!schema->format || strcmp(schema->format, "+s") != 0 || schema->n_children < 0 ||
            schema->n_children > CHILDREN_MAX || !has_children(schema, schema->n_children))
                return afz_why(why, -EBADMSG, "%.300s: what came is no table", name);
        for (uint32_t i = 0; i < source->columns; i++) {
                const struct afz_source_column *told = &source->column[i];
                struct afz_arrow_column column = {
                        .told = told,
                        .field = &field[told->field],
                        .child = child_named(schema, told->name, i),
                };
                if (column.child < 0)
                        return afz_why(why, -EBADMSG, "%.300s has no column %.100s", name,
                                       told->name);
                if (!understand(schema->children[column.child], &column) ||
                    !afz_arrow_holds(column.field->dtype, column.dtype))
                        return afz_why(why, -EBADMSG,
                                       "%.300s: column %.100s is not of the numbers it was of when "
                                       "the data were opened",
                                       name, told->name);
                ret[i] = column;
        }
        return 0;
}

/* ---- what a batch says it has ---- */

static bool counts_hold(const struct afz_arrow_array *array, int64_t buffers, int64_t children,
                        uint64_t least)
{
        int64_t end;
        if (array->length < 0 || array->offset < 0 || array->null_count < -1 ||
            array->null_count > array->length || array->dictionary || !array->buffers ||
            array->n_buffers != buffers || array->n_children != children ||
            (children && !array->children))
                return false;
        if (__builtin_add_overflow(array->length, array->offset, &end) ||
            (uint64_t)array->length < least)
                return false;
        return array->null_count == 0 || array->length == 0 || array->buffers[0];
}

/* From the column down to its numbers, each long enough for what holds it. */
static bool column_holds(const struct afz_arrow_array *array, const struct afz_arrow_column *column,
                         uint64_t least)
{
        for (uint32_t i = 0; i < column->levels; i++) {
                if (!counts_hold(array, 1, 1, least) || !array->children[0])
                        return false;
                if (__builtin_add_overflow((uint64_t)array->offset, least, &least) ||
                    __builtin_mul_overflow(least, column->size[i], &least))
                        return false;
                array = array->children[0];
        }
        uint64_t bytes;
        return counts_hold(array, 2, 0, least) && (least == 0 || array->buffers[1]) &&
               !__builtin_mul_overflow((uint64_t)(array->offset + array->length), 8, &bytes);
}

const char *afz_arrow_check(const struct afz_arrow_array *batch,
                            const struct afz_arrow_column *column, uint32_t columns)
{
        if (batch->n_children < 0 || batch->n_children > CHILDREN_MAX || batch->null_count > 0 ||
            !counts_hold(batch, 1, batch->n_children, 0))
                return "a batch that does not hold together";
        uint64_t least = (uint64_t)(batch->offset + batch->length);
        for (uint32_t i = 0; i < columns; i++) {
                if (column[i].child >= batch->n_children || !batch->children[column[i].child])
                        return "a batch with fewer columns than were told";
                if (!column_holds(batch->children[column[i].child], &column[i], least))
                        return "a column that does not hold together";
        }
        return NULL;
}

/* ---- what it has ---- */

/* A stretch of one level of a column: entries of an array, as many for each row. */
struct stretch {
        const struct afz_arrow_array *array;
        uint64_t first;   /* with the array's offset in it */
        uint64_t each;    /* entries of a row */
        uint64_t numbers; /* of an entry */
};

struct to {
        const struct afz_load *load;
        const struct afz_arrow_column *column;
        uint8_t *at;
        uint64_t row, count;
        bool is_null_nan;
};

static void put_nan(const struct to *to, uint64_t row, uint64_t number, uint64_t count)
{
        const bool is_double = to->column->field->dtype == AFZ_F64;
        const double wide = NAN;
        const float narrow = NAN;
        const uint64_t bytes = is_double ? sizeof wide : sizeof narrow;
        uint8_t *at = to->at + row * to->column->field->bytes + number * bytes;
        for (uint64_t i = 0; i < count; i++)
                memcpy(at + i * bytes, is_double ? (const void *)&wide : &narrow, bytes);
}

static bool can_be_nan(const struct to *to)
{
        enum afz_dtype dtype = to->column->field->dtype;
        return to->is_null_nan && (dtype == AFZ_F32 || dtype == AFZ_F64);
}

static void look_for_absent(const struct stretch *s, const struct to *to,
                            struct afz_arrow_absent *absent, uint64_t from)
{
        const uint8_t *valid = s->array->buffers[0];
        if (!valid || s->array->null_count == 0)
                return;
        for (uint64_t i = 0; i < to->count * s->each; i++) {
                uint64_t bit = s->first + i, row = i / s->each;
                if (valid[bit >> 3] >> (bit & 7) & 1)
                        continue;
                if (can_be_nan(to)) {
                        put_nan(to, row, i % s->each * s->numbers, s->numbers);
                        continue;
                }
                to->load->bad[to->row + row] = 1;
                if (!absent->column || from + row < absent->row)
                        *absent = (struct afz_arrow_absent){from + row, to->column->told->name};
        }
}

static void take_column(const struct afz_arrow_array *array, uint64_t first, const struct to *to,
                        struct afz_arrow_absent *absent, uint64_t from)
{
        const struct afz_arrow_column *column = to->column;
        struct stretch level[AFZ_DIMENSIONS_MAX + 1];
        struct stretch s = {
                .array = array,
                .first = first + (uint64_t)array->offset,
                .each = 1,
                .numbers = column->told->numbers,
        };
        for (uint32_t i = 0; i < column->levels; i++) {
                level[i] = s;
                s.array = s.array->children[0];
                s.first = s.first * column->size[i] + (uint64_t)s.array->offset;
                s.each *= column->size[i];
                s.numbers /= column->size[i];
        }
        level[column->levels] = s;
        afz_arrow_copy(&(struct afz_arrow_run){
                .from_dtype = column->dtype,
                .to_dtype = column->field->dtype,
                .from = s.array->buffers[1],
                .first = s.first,
                .to = to->at,
                .stride = column->field->bytes,
                .rows = to->count,
                .numbers = column->told->numbers,
        });
        for (uint32_t i = 0; i <= column->levels; i++)
                look_for_absent(&level[i], to, absent, from);
}

static void take_block(const struct afz_arrow_array *batch, const struct afz_arrow_column *column,
                       uint32_t columns, struct to to, uint64_t from,
                       struct afz_arrow_absent *absent)
{
        for (uint32_t i = 0; i < columns; i++) {
                const struct afz_source_column *told = column[i].told;
                to.column = &column[i];
                to.at = to.load->field[told->field] + to.row * column[i].field->bytes +
                        told->at * afz_dtype_bytes(column[i].field->dtype);
                take_column(batch->children[column[i].child], (uint64_t)batch->offset + from, &to,
                            absent, from);
        }
}

void afz_arrow_take(const struct afz_arrow_array *batch, const struct afz_arrow_column *column,
                    uint32_t columns, bool is_null_nan, uint64_t from, const struct afz_load *load,
                    uint64_t to, uint64_t count, struct afz_arrow_absent *absent)
{
        for (uint64_t done = 0; done < count; done += BLOCK_ROWS) {
                const struct to where = {
                        .load = load,
                        .row = to + done,
                        .count = count - done < BLOCK_ROWS ? count - done : BLOCK_ROWS,
                        .is_null_nan = is_null_nan,
                };
                take_block(batch, column, columns, where, from + done, absent);
        }
}
