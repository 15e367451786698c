/* Numbers out of Arrow batches: hand-made ones, good and such as no library should make. */
#include <math.h>

#include "arrow_tables.h"

/* ---- numbers ---- */

static void test_holds(void **state)
{
        (void)state;
        static const struct {
                enum afz_dtype to, from;
                bool holds;
        } rows[] = {
                {AFZ_F32, AFZ_F64, true},   {AFZ_F32, AFZ_I64, true},  {AFZ_F64, AFZ_BOOL, true},
                {AFZ_I64, AFZ_U32, true},   {AFZ_I64, AFZ_U64, false}, {AFZ_U64, AFZ_I8, false},
                {AFZ_U16, AFZ_U8, true},    {AFZ_U8, AFZ_U16, false},  {AFZ_I32, AFZ_F32, false},
                {AFZ_BOOL, AFZ_U8, false},  {AFZ_I8, AFZ_BOOL, true},  {AFZ_F16, AFZ_F16, true},
                {AFZ_F32, AFZ_F16, false},  {AFZ_F16, AFZ_F32, false}, {AFZ_I8, AFZ_U8, false},
                {AFZ_BOOL, AFZ_BOOL, true}, {AFZ_I16, AFZ_I8, true},   {AFZ_I16, AFZ_U16, false},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                if (afz_arrow_holds(rows[i].to, rows[i].from) != rows[i].holds)
                        fail_msg("row %zu", i);
}

static double number_at(enum afz_dtype dtype, const uint8_t *at)
{
        switch (dtype) {
#define NUMBER(name, type)                                                                         \
        case name: {                                                                               \
                type number;                                                                       \
                memcpy(&number, at, sizeof number);                                                \
                return (double)number;                                                             \
        }
                NUMBER(AFZ_U8, uint8_t)
                NUMBER(AFZ_I8, int8_t)
                NUMBER(AFZ_U16, uint16_t)
                NUMBER(AFZ_F16, uint16_t) /* its bits */
                NUMBER(AFZ_I16, int16_t)
                NUMBER(AFZ_U32, uint32_t)
                NUMBER(AFZ_I32, int32_t)
                NUMBER(AFZ_U64, uint64_t)
                NUMBER(AFZ_I64, int64_t)
                NUMBER(AFZ_F32, float)
                NUMBER(AFZ_F64, double)
                NUMBER(AFZ_BOOL, uint8_t)
        default:
                return NAN;
        }
}

/* Of each kind to each that holds it, at any address, side by side with others. */
static void test_copies(void **state)
{
        (void)state;
        uint8_t from[8 * 8 + 1], to[5 * 3 * 8 + 1];
        for (size_t i = 0; i < sizeof from; i++)
                from[i] = (uint8_t)(37 * i + 11);
        for (unsigned f = 0; f < AFZ_DTYPE_COUNT; f++)
                for (unsigned t = 0; t < AFZ_DTYPE_COUNT; t++) {
                        uint64_t each = afz_dtype_bytes((enum afz_dtype)t), read;
                        if (!afz_arrow_holds((enum afz_dtype)t, (enum afz_dtype)f))
                                continue;
                        memset(to, 0xee, sizeof to);
                        afz_arrow_copy(&(struct afz_arrow_run){
                                .from_dtype = (enum afz_dtype)f,
                                .to_dtype = (enum afz_dtype)t,
                                .from = from + 1,
                                .first = 2,
                                .to = to + each,
                                .stride = 3 * each,
                                .rows = 3,
                                .numbers = 2,
                        });
                        for (uint64_t i = 0; i < 6; i++) {
                                read = afz_dtype_bytes((enum afz_dtype)f) * (2 + i);
                                double want = f == AFZ_BOOL ? from[1] >> (2 + i) & 1
                                                            : number_at((enum afz_dtype)f,
                                                                        from + 1 + read);
                                double got = number_at((enum afz_dtype)t,
                                                       to + each * (1 + 3 * (i / 2) + i % 2));
                                if (t == AFZ_F32)
                                        want = (double)(float)want;
                                if (want != got && !(isnan(want) && isnan(got)))
                                        fail_msg("%u to %u: %g is %g", f, t, want, got);
                        }
                        for (uint64_t i = 0; i < each; i++) /* beside them */
                                assert_true(to[i] == 0xee && to[3 * each + i] == 0xee &&
                                            to[9 * each + i] == 0xee);
                }
}

/* ---- batches ---- */

static struct afz_source only_columns(void)
{
        return (struct afz_source){
                .fields = 3, .columns = COLUMNS, .field = table_fields, .column = table_columns};
}

static int find(const struct table *t, const struct afz_source *source,
                struct afz_arrow_column *ret, char why[AFZ_WHY_MAX])
{
        *why = '\0';
        return afz_arrow_find(&t->top.schema, source, table_fields, "f", ret, why);
}

static void test_takes_rows(void **state)
{
        (void)state;
        struct table t;
        struct afz_source source = only_columns();
        struct afz_arrow_column found[COLUMNS];
        char why[AFZ_WHY_MAX] = "";
        table_init(&t);
        t.top.array.offset = 1, t.top.array.length = 7; /* a slice of a slice */
        t.a.array.offset = 1, t.a.array.length = 9;
        t.of_l.array.offset = 2, t.of_l.array.length = 18;
        assert_int_equal(find(&t, &source, found, why), 0);
        assert_null(afz_arrow_check(&t.top.array, found, COLUMNS));
        double x[2 * 3];
        int8_t l[2 * 3];
        uint8_t b[3], bad[3] = {0};
        struct afz_load load = {.count = 3, .field = {(uint8_t *)x, (uint8_t *)l, b}, .bad = bad};
        struct afz_arrow_absent absent = {0};
        afz_arrow_take(&t.top.array, found, COLUMNS, false, 4, &load, 0, 3, &absent);
        assert_null(absent.column);
        for (int i = 0; i < 3; i++) {
                int row = 1 + 4 + i;
                assert_true(x[2 * i] == -100.0 * row && x[2 * i + 1] == (row + 1) / 4.0);
                assert_true(l[2 * i] == row + 1 && l[2 * i + 1] == -(row + 1));
                assert_int_equal(b[i], row % 2 == 0);
        }
}

static void test_absent(void **state)
{
        (void)state;
        struct table t;
        struct afz_source source = only_columns();
        struct afz_arrow_column found[COLUMNS];
        char why[AFZ_WHY_MAX] = "";
        double x[20];
        int8_t l[20];
        uint8_t b[10], bad[10] = {0};
        struct afz_load load = {.count = 10, .field = {(uint8_t *)x, (uint8_t *)l, b}, .bad = bad};
        struct afz_arrow_absent absent = {0};
        table_init(&t);
        uint8_t of_a[2] = {0xf7, 0xff}, of_l[2] = {0xff, 0xfe}, of_items[3] = {0xff, 0xdf, 0xff};
        t.a.buffers[0] = of_a, t.a.array.null_count = 1;
        assert_int_equal(find(&t, &source, found, why), 0);
        afz_arrow_take(&t.top.array, found, COLUMNS, true, 0, &load, 0, 10, &absent);
        assert_null(absent.column); /* a number with a point can be NaN */
        assert_true(isnan(x[2 * 3 + 1]) && x[2 * 3] == -300 && x[2 * 4 + 1] == 1.0);
        afz_arrow_take(&t.top.array, found, COLUMNS, false, 0, &load, 0, 10, &absent);
        assert_string_equal(absent.column, "a");
        assert_int_equal(absent.row, 3);
        assert_int_equal(bad[3], 1);
        /* Bytes cannot: neither a list as a whole nor one of its numbers. */
        t.a.buffers[0] = NULL, t.a.array.null_count = 0;
        t.l.buffers[0] = of_l, t.l.array.null_count = -1;
        t.of_l.buffers[0] = of_items, t.of_l.array.null_count = 1;
        memset(bad, 0, sizeof bad);
        absent = (struct afz_arrow_absent){0};
        afz_arrow_take(&t.top.array, found, COLUMNS, true, 0, &load, 0, 10, &absent);
        assert_string_equal(absent.column, "l");
        assert_int_equal(absent.row, 6);
        for (int i = 0; i < 10; i++)
                assert_int_equal(bad[i], i == 6 || i == 8);
}

static void test_hostile_schemas(void **state)
{
        (void)state;
        static const char *const formats[] = {
                "",  "+w:", "+w:0", "+w:3", "+w:-2", "+w:2x", "w:2",
                "u", "+l",  "tsu:", "+s",   "ff",    "+w: 2", "+w:99999999999999999999999"};
        struct afz_source source = only_columns();
        struct afz_arrow_column found[COLUMNS];
        struct table t;
        char why[AFZ_WHY_MAX];
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
                table_init(&t);
                t.l.schema.format = formats[i];
                assert_int_equal(find(&t, &source, found, why), -EBADMSG);
                assert_non_null(strstr(why, "column l"));
        }
        struct afz_arrow_schema *s = &t.top.schema;
        const struct spoilt rows[] = {
                {&s->format, 0},
                {&s->format, (intptr_t) "+l"},
                {&s->n_children, -1},
                {&s->n_children, INT64_MAX},
                {&s->children, 0},
                {&t.top.schemas[2], 0},
                {&t.a.schema.name, 0},
                {&t.a.schema.n_children, 1},
                {&t.a.schema.dictionary, (intptr_t)s},
                {&t.l.schema.children, 0},
                {&t.l.schema.n_children, 2},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                table_init(&t);
                spoil(&rows[i]);
                if (find(&t, &source, found, why) != -EBADMSG || !*why)
                        fail_msg("row %zu is taken", i);
        }
}

static void test_hostile_batches(void **state)
{
        (void)state;
        struct afz_source source = only_columns();
        struct afz_arrow_column found[COLUMNS];
        char why[AFZ_WHY_MAX];
        struct table t;
        table_init(&t);
        assert_int_equal(find(&t, &source, found, why), 0);
        assert_null(afz_arrow_check(&t.top.array, found, COLUMNS));
        struct afz_arrow_array *top = &t.top.array, *a = &t.a.array, *l = &t.l.array;
        const struct spoilt rows[] = {
                {&top->length, -1},
                {&top->length, 11},
                {&top->offset, -1},
                {&top->offset, 1},
                {&top->offset, INT64_MAX},
                {&top->n_children, 3},
                {&top->n_children, -1},
                {&top->children, 0},
                {&t.top.arrays[1], 0},
                {&top->null_count, 1},
                {&top->n_buffers, 2},
                {&top->buffers, 0},
                {&a->n_buffers, 3},
                {&t.a.buffers[1], 0},
                {&a->null_count, 2}, /* and no bits that say which */
                {&a->null_count, -2},
                {&a->null_count, 11},
                {&a->dictionary, (intptr_t)top},
                {&a->n_children, 1},
                {&a->length, 9},
                {&l->children, 0},
                {&l->offset, INT64_MAX / 2},
                {&t.of_l.array.length, 19},
                {&t.l.arrays[0], 0},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                table_init(&t);
                spoil(&rows[i]);
                if (!afz_arrow_check(top, found, COLUMNS))
                        fail_msg("row %zu is taken", i);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_holds),           cmocka_unit_test(test_copies),
                cmocka_unit_test(test_takes_rows),      cmocka_unit_test(test_absent),
                cmocka_unit_test(test_hostile_schemas), cmocka_unit_test(test_hostile_batches),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
