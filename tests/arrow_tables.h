#ifndef AFZ_ARROW_TABLES_H
#define AFZ_ARROW_TABLES_H
/* A table as Arrow's C data interface has it, made by hand, for tests to take and to spoil. */
#include "arrow_abi.h"
#include "arrow_take.h"
#include "loader_files.h"

enum { CHILDREN = 4 };

struct made {
        struct afz_arrow_schema schema;
        struct afz_arrow_array array;
        const void *buffers[3];
        struct afz_arrow_schema *schemas[CHILDREN];
        struct afz_arrow_array *arrays[CHILDREN];
};

static inline void made_child(struct made *of, struct made *child)
{
        of->schemas[of->schema.n_children++] = &child->schema;
        of->arrays[of->array.n_children++] = &child->array;
        of->schema.children = of->schemas;
        of->array.children = of->arrays;
}

static inline void made_init(struct made *m, const char *format, const char *name, int64_t length,
                             const void *valid, const void *data)
{
        *m = (struct made){0};
        m->schema.format = format, m->schema.name = name;
        m->buffers[0] = valid, m->buffers[1] = data;
        m->array.length = length;
        m->array.null_count = valid ? -1 : 0;
        m->array.n_buffers = format[0] == '+' ? 1 : 2;
        m->array.buffers = m->buffers;
}

/* A table of 10 rows: a (floats, row 3 absent where told), n (shorts), l (lists of two bytes), b
 * (bits). */
struct table {
        struct made top, a, n, l, of_l, b;
        float floats[10];
        int16_t shorts[10];
        int8_t bytes[20];
        uint8_t bits[2], valid[3];
};

static inline void table_init(struct table *t)
{
        for (int i = 0; i < 10; i++) {
                t->floats[i] = (float)i / 4;
                t->shorts[i] = (int16_t)(-100 * i);
                t->bytes[2 * i] = (int8_t)i, t->bytes[2 * i + 1] = (int8_t)-i;
        }
        t->bits[0] = 0x55, t->bits[1] = 0x01;
        memset(t->valid, 0xff, sizeof t->valid);
        made_init(&t->top, "+s", "", 10, NULL, NULL);
        made_init(&t->a, "f", "a", 10, NULL, t->floats);
        made_init(&t->n, "s", "n", 10, NULL, t->shorts);
        made_init(&t->l, "+w:2", "l", 10, NULL, NULL);
        made_init(&t->of_l, "c", "item", 20, NULL, t->bytes);
        made_init(&t->b, "b", "b", 10, NULL, t->bits);
        made_child(&t->l, &t->of_l);
        made_child(&t->top, &t->a), made_child(&t->top, &t->n);
        made_child(&t->top, &t->l), made_child(&t->top, &t->b);
}

/* x: [n, a] as doubles, then l and b as they are. */
static const struct afz_field table_fields[] = {
        {.name = "x", .dtype = AFZ_F64, .dimensions = 1, .shape = {2}, .bytes = 16},
        {.name = "l", .dtype = AFZ_I8, .dimensions = 1, .shape = {2}, .bytes = 2},
        {.name = "b", .dtype = AFZ_BOOL, .bytes = 1},
};
static const struct afz_source_column table_columns[] = {
        {.name = "n", .field = 0, .at = 0, .numbers = 1},
        {.name = "a", .field = 0, .at = 1, .numbers = 1},
        {.name = "l", .field = 1, .at = 0, .numbers = 2},
        {.name = "b", .field = 2, .at = 0, .numbers = 1},
};
enum { COLUMNS = sizeof table_columns / sizeof *table_columns };

/* A word of memory that is something else: a count, or a pointer that is NULL. */
struct spoilt {
        void *at;
        int64_t value;
        uint32_t bytes; /* 0: 8 */
};

static inline void spoil(const struct spoilt *spoilt)
{
        memcpy(spoilt->at, &spoilt->value, spoilt->bytes ? spoilt->bytes : sizeof spoilt->value);
}

#endif
