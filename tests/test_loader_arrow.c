/* Arrow streams as a source of samples, from parts of different sizes, by threads, and by such as
 * fail; all that came is released. */
#include <pthread.h>

#include "arrow_parts.h"
#include "arrow_tables.h"

/* ---- a source of them: parts in batches, with what can go wrong ---- */

struct part_stream {
        struct program *of;
        struct table table;
        uint64_t part, at;
};

struct program {
        uint64_t rows[8], parts;
        uint64_t batch; /* rows of one */
        uint64_t fails_part, fails_next, short_part, long_part;
        int opened, released, batches, schemas;
        const char *says;
        bool is_empty, has_absent;
        pthread_mutex_t lock;
};

static void count(struct program *p, int *what, int by)
{
        pthread_mutex_lock(&p->lock);
        *what += by;
        pthread_mutex_unlock(&p->lock);
}

static void schema_release(struct afz_arrow_schema *schema)
{
        count(schema->private_data, &((struct program *)schema->private_data)->schemas, -1);
        schema->release = NULL;
}

static void array_release(struct afz_arrow_array *array)
{
        count(array->private_data, &((struct program *)array->private_data)->batches, -1);
        array->release = NULL;
}

static int stream_schema(struct afz_arrow_stream *stream, struct afz_arrow_schema *ret)
{
        struct part_stream *s = stream->private_data;
        *ret = s->table.top.schema;
        ret->release = schema_release;
        ret->private_data = s->of;
        count(s->of, &s->of->schemas, 1);
        return 0;
}

static int stream_next(struct afz_arrow_stream *stream, struct afz_arrow_array *ret)
{
        struct part_stream *s = stream->private_data;
        struct program *p = s->of;
        uint64_t rows = p->rows[s->part] + (p->long_part == s->part) - (p->short_part == s->part);
        if (p->fails_next == s->part)
                return EIO;
        *ret = (struct afz_arrow_array){0};
        if (s->at >= rows)
                return 0;
        uint64_t n = rows - s->at < p->batch ? rows - s->at : p->batch;
        for (uint64_t i = 0; i < n; i++) /* a's number says where it is from */
                s->table.floats[i] = (float)(1000 * s->part + s->at + i);
        s->table.valid[0] = p->has_absent && s->at == 0 ? 0xfe : 0xff;
        s->table.a.buffers[0] = s->table.valid;
        s->table.a.array.null_count = -1;
        *ret = s->table.top.array;
        ret->length = p->is_empty ? 0 : (int64_t)n;
        ret->release = array_release;
        ret->private_data = p;
        count(p, &p->batches, 1);
        s->at += n;
        return 0;
}

static const char *stream_says(struct afz_arrow_stream *stream)
{
        return ((struct part_stream *)stream->private_data)->of->says;
}

static void stream_release(struct afz_arrow_stream *stream)
{
        struct part_stream *s = stream->private_data;
        count(s->of, &s->of->released, 1);
        free(s);
        stream->release = NULL;
}

static int program_open(void *own, uint64_t part, void *ret, char words[AFZ_WHY_MAX])
{
        struct program *p = own;
        struct afz_arrow_stream *stream = ret;
        if (part == p->fails_part)
                return afz_why(words, -ENOENT, "part %d is gone", (int)part);
        struct part_stream *s = calloc(1, sizeof *s);
        s->of = p, s->part = part;
        table_init(&s->table);
        *stream = (struct afz_arrow_stream){stream_schema, stream_next, stream_says, stream_release,
                                            s};
        snprintf(words, AFZ_WHY_MAX, "f.parquet, row group %d", (int)part);
        count(p, &p->opened, 1);
        return 0;
}

enum { NEVER = 99 };

static struct program program_of(uint64_t parts, const uint64_t *rows)
{
        struct program p = {.parts = parts,
                            .batch = 4,
                            .fails_part = NEVER,
                            .fails_next = NEVER,
                            .short_part = NEVER,
                            .long_part = NEVER};
        memcpy(p.rows, rows, parts * sizeof *rows);
        pthread_mutex_init(&p.lock, NULL);
        return p;
}

static struct afz_source source_of(struct program *p)
{
        return (struct afz_source){
                .own = p,
                .open = program_open,
                .parts = p->parts,
                .part_rows = p->rows,
                .fields = 3,
                .columns = COLUMNS,
                .field = table_fields,
                .column = table_columns,
        };
}

static void all_is_released(const struct program *p)
{
        assert_int_equal(p->opened, p->released);
        assert_int_equal(p->batches, 0);
        assert_int_equal(p->schemas, 0);
}

static double a_of(const struct loaded *l, uint64_t sample)
{
        return ((const double *)(const void *)l->field[0])[2 * sample + 1];
}

/* ---- parts ---- */

static void test_parts(void **state)
{
        (void)state;
        static const struct {
                uint64_t rows[6], parts, common;
                uint64_t numbers[6]; /* parts as they are counted */
        } cases[] = {
                {{5, 5, 5}, 3, 5, {0, 1, 2}},
                {{5, 5, 2, 5, 5, 3}, 6, 5, {0, 1, 3, 4, 2, 5}},
                {{1, 5, 9, 5, 5}, 5, 5, {1, 3, 4, 0, 2}},
                {{4, 5}, 2, 0, {0, 1}},
                {{4, 5, 4, 5}, 4, 0, {0, 1, 2, 3}},
                {{7}, 1, 7, {0}},
        };
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
                struct afz_arrow_part part[6];
                uint64_t samples, at = 0;
                assert_int_equal(afz_arrow_common(cases[c].rows, cases[c].parts), cases[c].common);
                assert_int_equal(afz_arrow_parts_make(cases[c].rows, cases[c].parts,
                                                      cases[c].common, part, &samples),
                                 0);
                for (uint64_t i = 0; i < cases[c].parts; i++) {
                        assert_int_equal(part[i].number, cases[c].numbers[i]);
                        assert_int_equal(part[i].first, at);
                        for (uint64_t k = 0; k < part[i].rows; k++)
                                assert_ptr_equal(afz_arrow_part_of(part, cases[c].parts, at + k),
                                                 &part[i]);
                        at += part[i].rows;
                }
                assert_int_equal(samples, at);
        }
        struct afz_arrow_part part[2];
        uint64_t samples;
        assert_int_equal(afz_arrow_parts_make((uint64_t[]){3, 0}, 2, 0, part, &samples), -EBADMSG);
        assert_int_equal(afz_arrow_parts_make((uint64_t[]){INT64_MAX, 1}, 2, 0, part, &samples),
                         -EOVERFLOW);
}

/* ---- as a format ---- */

static struct loaded *opened(const struct files *f, const struct afz_source *source,
                             enum afz_shuffle shuffle)
{
        return loaded_open(f, "f.parquet",
                           &(struct afz_loader_options){
                                   .format = "arrow", .source = source, .shuffle = shuffle});
}

static void test_loads(void **state)
{
        (void)state;
        struct files f = files_new();
        files_text(&f, "f.parquet", "PAR1");
        for (int is_shuffled = 0; is_shuffled < 2; is_shuffled++)
                for (uint64_t part = 0; part < 9; part += 4) {
                        struct program p = program_of(4, (uint64_t[]){6, 2, 6, 6});
                        struct afz_source source = source_of(&p);
                        struct loaded *l = opened(
                                &f, &source, is_shuffled ? AFZ_SHUFFLE_WINDOW : AFZ_SHUFFLE_NONE);
                        static const int order[2][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}};
                        assert_int_equal(l->dataset.samples, 20);
                        loaded_fill(l, part, 1);
                        uint64_t sample = 0;
                        for (int i = 0; i < 4; i++) {
                                int number = order[is_shuffled][i];
                                for (uint64_t row = 0; row < p.rows[number]; row++)
                                        assert_true(a_of(l, sample++) ==
                                                    1000 * number + (double)row);
                        }
                        assert_int_equal(l->bads, 0);
                        all_is_released(&p);
                        loaded_free(l);
                }
        files_free(&f);
}

static void test_what_goes_wrong(void **state)
{
        (void)state;
        static const char *const says[] = {"part 1 is gone",
                                           "f.parquet, row group 1: torn",
                                           "f.parquet, row group 1: it has fewer rows",
                                           "f.parquet, row group 1: it has more rows",
                                           "f.parquet, row group 0: it has fewer rows",
                                           "f.parquet, row group 0: row 0 has nothing"};
        static const uint64_t bads[] = {6, 6, 6, 6, 18, 3};
        struct files f = files_new();
        files_text(&f, "f.parquet", "PAR1");
        for (int i = 0; i < 6; i++) {
                struct program p = program_of(3, (uint64_t[]){6, 6, 6});
                p.says = "IOError: f.parquet, row group 1: torn. Detail: Python\nand more";
                p.fails_part = i == 0 ? 1 : NEVER;
                p.fails_next = i == 1 ? 1 : NEVER;
                p.short_part = i == 2 ? 1 : NEVER;
                p.long_part = i == 3 ? 1 : NEVER;
                p.is_empty = i == 4;
                p.has_absent = i == 5;
                struct afz_source source = source_of(&p);
                struct loaded *l = opened(&f, &source, AFZ_SHUFFLE_WINDOW);
                loaded_fill(l, 0, 1);
                assert_int_equal(l->bads, bads[i]);
                if (!strstr(l->why, says[i]) || strstr(l->why, "Detail"))
                        fail_msg("%d: \"%s\"", i, l->why);
                all_is_released(&p);
                loaded_free(l);
        }
        files_free(&f);
}

static void test_refuses(void **state)
{
        (void)state;
        struct files f = files_new();
        struct program p = program_of(1, (uint64_t[]){6});
        struct afz_source good = source_of(&p);
        files_text(&f, "f.parquet", "PAR1");
        refused(&f, "f.parquet", NULL, -EINVAL, "pyarrow"); /* C alone cannot */
        struct afz_field large[3];
        memcpy(large, table_fields, sizeof large);
        large[1].shape[0] = large[1].shape[1] = UINT64_C(1) << 40, large[1].dimensions = 2;
        struct afz_source bad;
        struct afz_source_column c[COLUMNS];
        const struct spoilt rows[] = {
                {&bad.open, 0},
                {&bad.parts, 0},
                {&bad.part_rows, 0},
                {&bad.fields, 0, 4},
                {&bad.fields, AFZ_FIELDS_MAX + 1, 4},
                {&bad.columns, 0, 4},
                {&bad.columns, 3, 4}, /* nothing fills b */
                {&bad.field, (intptr_t)large},
                {&c[1].field, 3, 4},
                {&c[1].at, -1},
                {&c[0].numbers, 2},
                {&c[2].name, 0},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                bad = good;
                memcpy(c, table_columns, sizeof c);
                bad.column = c;
                spoil(&rows[i]);
                refused(&f, "f.parquet",
                        &(struct afz_loader_options){.format = "arrow", .source = &bad}, -EINVAL,
                        "does not hold together");
        }
        p.rows[0] = 0;
        refused(&f, "f.parquet", &(struct afz_loader_options){.format = "arrow", .source = &good},
                -EBADMSG, "no rows");
        p.rows[0] = 6;
        refused(&f, "f.parquet",
                &(struct afz_loader_options){
                        .format = "arrow", .source = &good, .budget_bytes = 64},
                -ENOSPC, "budget");
        files_free(&f);
}

/* ---- as a loader ---- */

static struct afz_loader *open_loader(const struct files *f, const struct afz_source *source,
                                      uint32_t threads)
{
        struct afz_loader *loader;
        char why[AFZ_WHY_MAX];
        const char *path = files_path(f, "f.parquet");
        struct afz_loader_options o = {.paths = &path,
                                       .path_count = 1,
                                       .format = "arrow",
                                       .source = source,
                                       .budget_bytes = 1 << 20,
                                       .batch = 5,
                                       .threads = threads};
        if (afz_loader_open(&o, &loader, why) < 0)
                fail_msg("%s", why);
        return loader;
}

static void test_through_threads(void **state)
{
        (void)state;
        struct files f = files_new();
        files_text(&f, "f.parquet", "PAR1");
        struct program p = program_of(8, (uint64_t[]){6, 2, 6, 6, 6, 6, 6, 1});
        struct afz_source source = source_of(&p);
        struct afz_loader *loader = open_loader(&f, &source, 3);
        struct afz_batch batch;
        char why[AFZ_WHY_MAX];
        double sum = 0, want = 0;
        uint64_t count_all = 0;
        for (int i = 0; i < 8; i++)
                for (uint64_t k = 0; k < p.rows[i]; k++)
                        want += 1000.0 * i + (double)k;
        while (afz_loader_next(loader, &batch, why) == 1) {
                for (uint32_t i = 0; i < batch.count; i++)
                        sum += ((double *)batch.data[0])[2 * i + 1];
                count_all += batch.count;
                afz_loader_release(loader, batch.lease);
        }
        assert_int_equal(count_all, 39);
        assert_true(sum == want);
        afz_loader_close(loader);
        all_is_released(&p);
        files_free(&f);
}

static void test_detached(void **state)
{
        (void)state;
        struct files f = files_new();
        files_text(&f, "f.parquet", "PAR1");
        for (uint32_t i = 0; i < 20; i++) {
                struct program p = program_of(8, (uint64_t[]){6, 6, 6, 6, 6, 6, 6, 6});
                struct afz_source source = source_of(&p);
                struct afz_loader *loader = open_loader(&f, &source, 1 + i % 3);
                afz_loader_detach(loader);
                all_is_released(&p); /* and nothing is called from here on */
                int opened_then = p.opened;
                struct afz_batch batch;
                char why[AFZ_WHY_MAX] = "";
                int r;
                while ((r = afz_loader_next(loader, &batch, why)) == 1)
                        afz_loader_release(loader, batch.lease);
                assert_int_equal(p.opened, opened_then);
                assert_true(r == 0 || (r == -ESHUTDOWN && strstr(why, "ends")));
                afz_loader_close(loader);
        }
        afz_loader_detach(NULL);
        files_free(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parts),           cmocka_unit_test(test_loads),
                cmocka_unit_test(test_what_goes_wrong), cmocka_unit_test(test_refuses),
                cmocka_unit_test(test_through_threads), cmocka_unit_test(test_detached),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
