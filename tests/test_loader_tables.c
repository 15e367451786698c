/* Tables of numbers: CSV, and arrays in a .npz. */
#include <float.h>
#include <math.h>

#include "config.h"
#include "csv_line.h"
#include "loader_files.h"

static const float *floats(const struct loaded *l)
{
        return (const float *)(const void *)l->field[0];
}

/* ---- CSV ---- */

static void test_numbers(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                double value; /* NAN: a nan, too */
                bool is_bad;
        } rows[] = {
                {"0", 0},
                {"-12", -12},
                {"+3.5", 3.5},
                {".5", 0.5},
                {"5.", 5},
                {"1e3", 1000},
                {"-1.5E-3", -0.0015},
                {"", NAN},
                {"nan", NAN},
                {"-inf", -INFINITY},
                {"0.1", 0.1},
                {"3.141592653589793", 3.141592653589793},
                {"123456789012345678901234567890", 123456789012345678901234567890.0},
                {"2.2250738585072014e-308", DBL_MIN},
                {"1e400", INFINITY},
                {"0.000000000000000000000000000001", 1e-30},
                {"9007199254740993", 9007199254740992.0},
                {"00000000000000000000000001", 1},
                {"x", 0, true},
                {"1x", 0, true},
                {"1 2", 0, true},
                {"-", 0, true},
                {".", 0, true},
                {"0x10", 0, true},
                {"1,5", 0, true},
                {"1e", 0, true},
                {"--1", 0, true},
                {"1e5e5", 0, true},
        };
        locale_t point = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_cell cell = {rows[i].text, strlen(rows[i].text)};
                double value = -99;
                int r = afz_csv_number(&cell, point, &value);
                if ((r < 0) != rows[i].is_bad || (r == 0 && isnan(rows[i].value) != isnan(value)) ||
                    (r == 0 && !isnan(value) && value != rows[i].value))
                        fail_msg("\"%s\": %d, %.17g", rows[i].text, r, value);
        }
        char longest[300];
        memset(longest, '1', sizeof longest);
        double value;
        assert_int_equal(afz_csv_number(&(struct afz_cell){longest, sizeof longest}, point, &value),
                         -EINVAL);
        assert_int_equal(afz_csv_number(&(struct afz_cell){"1\0002", 3}, point, &value), -EINVAL);
        freelocale(point);
}

static void test_kinds_of_csv(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                uint64_t samples, columns;
                float last;
        } rows[] = {
                {"1,2\n3,4\n", 2, 2, 4},
                {"1,2\n3,4", 2, 2, 4},
                {"a,b\n1,2\n3,4\n", 2, 2, 4},
                {"\"a, b\",c\n1,2\n", 1, 2, 2},
                {"a;b;c\r\n1;2;3\r\n\r\n4;5;6\r\n\r\n", 2, 3, 6},
                {"1\t2\t3\n", 1, 3, 3},
                {"\xef\xbb\xbfx,y\n1,2\n", 1, 2, 2},
                {"\n\n1,2\n\n\n3,4\n\n", 2, 2, 4},
                {"5\n6\n7\n", 3, 1, 7},
                {" 1 , \"2\" \n", 1, 2, 2},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct files f = files_new();
                files_text(&f, "a.csv", rows[i].text);
                struct loaded *l = loaded_all(&f, "a.csv", NULL);
                assert_int_equal(l->dataset.samples, rows[i].samples);
                assert_int_equal(l->dataset.field[0].shape[0], rows[i].columns);
                assert_int_equal(l->bads, 0);
                assert_true(floats(l)[0] == 1 || floats(l)[0] == 5);
                assert_true(floats(l)[rows[i].samples * rows[i].columns - 1] == rows[i].last);
                loaded_free(l);
                files_free(&f);
        }
}

static char *big_csv(size_t lines, size_t *ret_bytes)
{
        char *text = malloc(lines * 40);
        size_t n = 0;
        assert_non_null(text);
        for (size_t i = 0; i < lines; i++)
                n += (size_t)sprintf(text + n, "%zu,%zu.25,%d%s", i, i * 3, (int)(i % 10),
                                     i % 100 ? "\n" : "\r\n\n");
        *ret_bytes = n;
        return text;
}

/* Several blocks and chunks, whole and in parts. */
static void test_large_csv(void **state)
{
        (void)state;
        enum { LINES = 200000 };
        struct files f = files_new();
        size_t bytes;
        char *text = big_csv(LINES, &bytes);
        files_put(&f, "a.csv", text, bytes);
        free(text);
        struct loaded *l = loaded_all(&f, "a.csv", NULL);
        assert_int_equal(l->dataset.samples, LINES);
        assert_true(l->dataset.chunk_samples < LINES / 2);
        assert_true(l->dataset.index_bytes < 16384); /* a row a chunk, not a line */
        for (int turn = 0; turn < 2; turn++) {
                for (size_t i = 0; i < LINES; i++) {
                        const float *row = floats(l) + 3 * i;
                        if (row[0] != (float)i || row[1] != (float)(i * 3) + 0.25f ||
                            row[2] != (float)(i % 10))
                                fail_msg("line %zu: %g %g %g", i, (double)row[0], (double)row[1],
                                         (double)row[2]);
                }
                loaded_fill(l, 30001, 1);
        }
        files_cut(&f, "a.csv", (off_t)bytes / 2);
        loaded_fill(l, 0, 1);
        assert_in_range(l->bads, 90000, 160000);
        assert_non_null(strstr(l->why, "shrank"));
        loaded_free(l);
        files_free(&f);
}

static void test_bad_lines(void **state)
{
        (void)state;
        struct files f = files_new();
        files_text(&f, "a.csv", "a,b\n1,2\n3\n4,5,6\nx,7\n8,9\n");
        struct loaded *l = loaded_all(&f, "a.csv", NULL);
        assert_int_equal(l->dataset.samples, 5);
        assert_memory_equal(l->bad, ((uint8_t[]){0, 1, 1, 1, 0}), 5);
        assert_non_null(strstr(l->why, "line 2"));
        assert_true(floats(l)[9] == 9);
        loaded_free(l);
        files_text(&f, "b.csv", "name,b\nAnna,2\n");
        refused(&f, "b.csv", NULL, -EINVAL, "its column 1 has \"Anna\"");
        files_text(&f, "c.csv", "");
        refused(&f, "c.csv", NULL, -ENODATA, "empty");
        files_text(&f, "d.csv", "a,b\n");
        refused(&f, "d.csv", NULL, -ENODATA, "no lines");
        char *line = malloc(2 << 20);
        memset(line, '1', 2 << 20);
        files_put(&f, "e.csv", line, 2 << 20);
        refused(&f, "e.csv", NULL, -EFBIG, "first line");
        free(line);
        files_free(&f);
}

static void test_labels(void **state)
{
        (void)state;
        if (!AFZ_HAVE_JANSSON)
                skip();
        struct files f = files_new();
        files_text(&f, "a.csv", "a,kind,b\n1,7,2\n3,-8,4\n");
        struct afz_loader_options o = {.details = "{\"label\": \"kind\", \"dtype\": \"f8\"}"};
        struct loaded *l = loaded_all(&f, "a.csv", &o);
        assert_int_equal(l->dataset.fields, 2);
        assert_int_equal(l->dataset.field[0].dtype, AFZ_F64);
        assert_int_equal(l->dataset.field[1].dtype, AFZ_I64);
        assert_memory_equal(l->field[0], ((double[]){1, 2, 3, 4}), 32);
        assert_memory_equal(l->field[1], ((int64_t[]){7, -8}), 16);
        loaded_free(l);
        o.details = "{\"label\": 0}";
        files_text(&f, "b.csv", "1.5,2\n3,4\n");
        l = loaded_all(&f, "b.csv", &o);
        assert_int_equal(l->dataset.field[1].dtype, AFZ_F32);
        assert_memory_equal(l->field[1], ((float[]){1.5f, 3}), 8);
        loaded_free(l);
        static const char *const wrong[] = {"{\"label\": \"none\"}",
                                            "{\"label\": 3}",
                                            "{\"label\": -1}",
                                            "{\"x\": 1}",
                                            "{\"label\": []}",
                                            "3",
                                            "{",
                                            "{\"dtype\": \"i4\"}"};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                o.details = wrong[i];
                refused(&f, "a.csv", &o, -EINVAL, "");
        }
        files_free(&f);
}

/* ---- .npz ---- */

struct zipped {
        uint8_t data[65536];
        size_t bytes;
        uint8_t directory[4096];
        size_t directory_bytes;
        uint32_t members;
};

static void put(uint8_t *at, uint64_t value, int bytes)
{
        for (int i = 0; i < bytes; i++, value >>= 8)
                at[i] = (uint8_t)value;
}

static void zip_add(struct zipped *z, const char *name, const void *data, size_t bytes, int method)
{
        size_t n = strlen(name);
        uint8_t *local = z->data + z->bytes, *entry = z->directory + z->directory_bytes;
        memset(local, 0, 30), memset(entry, 0, 46);
        put(local, 0x04034b50, 4), put(local + 8, (uint64_t)method, 2);
        put(local + 18, bytes, 4), put(local + 22, bytes, 4), put(local + 26, n, 2);
        memcpy(local + 30, name, n), memcpy(local + 30 + n, data, bytes);
        put(entry, 0x02014b50, 4), put(entry + 10, (uint64_t)method, 2);
        put(entry + 20, bytes, 4), put(entry + 24, bytes, 4), put(entry + 28, n, 2),
                put(entry + 42, z->bytes, 4);
        memcpy(entry + 46, name, n);
        z->bytes += 30 + n + bytes;
        z->directory_bytes += 46 + n;
        z->members++;
}

static void zip_array(struct zipped *z, const char *name, const char *header, const void *data,
                      size_t bytes)
{
        uint8_t npy[4096];
        size_t n = strlen(header);
        memcpy(npy, "\x93NUMPY\1\0", 8);
        put(npy + 8, n, 2);
        memcpy(npy + 10, header, n), memcpy(npy + 10 + n, data, bytes);
        zip_add(z, name, npy, 10 + n + bytes, 0);
}

static void zip_end(struct zipped *z)
{
        uint8_t *end = z->data + z->bytes + z->directory_bytes;
        memcpy(z->data + z->bytes, z->directory, z->directory_bytes);
        memset(end, 0, 22);
        put(end, 0x06054b50, 4), put(end + 8, z->members, 2), put(end + 10, z->members, 2);
        put(end + 12, z->directory_bytes, 4), put(end + 16, z->bytes, 4);
        z->bytes += z->directory_bytes + 22;
}

#define X_HEADER "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }\n"
#define Y_HEADER "{'descr': '>i8', 'fortran_order': False, 'shape': (4,), }\n"

static struct zipped *two_arrays(void)
{
        struct zipped *z = calloc(1, sizeof *z);
        assert_non_null(z);
        uint8_t labels[32] = {0};
        for (int i = 0; i < 4; i++)
                labels[8 * i + 7] = (uint8_t)(i + 1);
        zip_array(z, "x.npy", X_HEADER, ((float[]){1, 2, 3, 4, 5, 6, 7, 8}), 32);
        zip_array(z, "y.npy", Y_HEADER, labels, sizeof labels);
        return z;
}

static void test_npz(void **state)
{
        (void)state;
        struct files f = files_new();
        struct zipped *z = two_arrays();
        zip_add(z, "notes.txt", "not an array", 12, 8);
        zip_end(z);
        files_put(&f, "a.npz", z->data, z->bytes);
        struct loaded *l = loaded_all(&f, "a.npz", NULL);
        assert_int_equal(l->dataset.fields, 2);
        assert_string_equal(l->dataset.field[1].name, "y");
        for (uint64_t part = 0; part < 4; part++) {
                loaded_fill(l, part, 1);
                assert_memory_equal(l->field[0], ((float[]){1, 2, 3, 4, 5, 6, 7, 8}), 32);
                assert_memory_equal(l->field[1], ((int64_t[]){1, 2, 3, 4}), 32);
        }
        files_cut(&f, "a.npz", 120);
        loaded_fill(l, 0, 1);
        assert_int_equal(l->bads, 4);
        loaded_free(l);
        free(z);
        files_free(&f);
}

/* As it is written beyond 4 GiB: sizes in an extra field, and a second end. */
static void test_npz_of_64_bits(void **state)
{
        (void)state;
        struct files f = files_new();
        struct zipped *z = calloc(1, sizeof *z);
        assert_non_null(z);
        zip_array(z, "x.npy", X_HEADER, ((float[]){1, 2, 3, 4, 5, 6, 7, 8}), 32);
        uint8_t *entry = z->directory, *at = entry + 46 + 5;
        uint64_t bytes = z->bytes - 35, directory = z->bytes;
        put(entry + 20, UINT32_MAX, 4), put(entry + 24, UINT32_MAX, 4), put(entry + 30, 28, 2),
                put(entry + 42, UINT32_MAX, 4);
        put(at, 1, 2), put(at + 2, 24, 2), put(at + 4, bytes, 8), put(at + 12, bytes, 8),
                put(at + 20, 0, 8);
        z->directory_bytes += 28;
        memcpy(z->data + directory, z->directory, z->directory_bytes);
        uint8_t *end = z->data + directory + z->directory_bytes;
        put(end, 0x06064b50, 4), put(end + 4, 44, 8), put(end + 24, 1, 8), put(end + 32, 1, 8);
        put(end + 40, z->directory_bytes, 8), put(end + 48, directory, 8);
        put(end + 56, 0x07064b50, 4), put(end + 64, directory + z->directory_bytes, 8),
                put(end + 72, 1, 4);
        put(end + 76, 0x06054b50, 4), put(end + 84, UINT16_MAX, 2), put(end + 86, UINT16_MAX, 2);
        put(end + 88, UINT32_MAX, 4), put(end + 92, UINT32_MAX, 4);
        files_put(&f, "a.npz", z->data, (size_t)(end + 98 - z->data));
        struct loaded *l = loaded_all(&f, "a.npz", NULL);
        assert_int_equal(l->dataset.samples, 4);
        assert_memory_equal(l->field[0], ((float[]){1, 2, 3, 4, 5, 6, 7, 8}), 32);
        loaded_free(l);
        free(z);
        files_free(&f);
}

static void test_npz_refused(void **state)
{
        (void)state;
        struct files f = files_new();
        struct zipped *z = two_arrays();
        zip_array(z, "z.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n",
                  "123456789012", 12);
        zip_end(z);
        files_put(&f, "a.npz", z->data, z->bytes);
        refused(&f, "a.npz", NULL, -EINVAL, "x has 4 samples and z.npy has 3");
#if AFZ_HAVE_JANSSON
        struct afz_loader_options o = {.details = "{\"arrays\": [\"y\", \"x\"]}"};
        struct loaded *l = loaded_all(&f, "a.npz", &o);
        assert_int_equal(l->dataset.fields, 2);
        loaded_free(l);
        o.details = "{\"arrays\": [\"w\"]}";
        refused(&f, "a.npz", &o, -ENODATA, "none of those");
        o.details = "{\"array\": 1}";
        refused(&f, "a.npz", &o, -EINVAL, "details");
#endif
        free(z), z = calloc(1, sizeof *z);
        zip_add(z, "x.npy", "deflated", 8, 8);
        zip_end(z);
        files_put(&f, "b.npz", z->data, z->bytes);
        refused(&f, "b.npz", NULL, -ENOTSUP, "numpy.savez instead");
        free(z), z = calloc(1, sizeof *z);
        zip_array(z, "x.npy",
                  "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }\n",
                  "1234", 4);
        zip_end(z);
        files_put(&f, "c.npz", z->data, z->bytes);
        refused(&f, "c.npz", NULL, -ENODATA, "shorter than its header says");
        free(z);
        files_free(&f);
}

/* Every number of the directory, turned into nonsense one after the other. */
static void test_hostile_zip(void **state)
{
        (void)state;
        static const uint64_t values[] = {0, 1, 0xff, 0xffff, 0xfffffffe, 0xffffffff};
        struct zipped *good = two_arrays();
        size_t directory_at = good->bytes;
        zip_end(good);
        struct files f = files_new();
        for (size_t at = directory_at; at + 4 <= good->bytes; at += 2)
                for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                        uint8_t kept[4];
                        memcpy(kept, good->data + at, 4);
                        put(good->data + at, values[i], i < 4 ? 2 : 4);
                        files_put(&f, "a.npz", good->data, good->bytes);
                        struct loaded *l = loaded_open(&f, "a.npz", NULL);
                        if (l->error == 0)
                                loaded_fill(l, 0, 1);
                        else
                                assert_true(*l->why);
                        loaded_free(l);
                        memcpy(good->data + at, kept, 4);
                }
        for (size_t bytes = 4; bytes < good->bytes; bytes += 7) {
                files_put(&f, "a.npz", good->data, bytes);
                refused(&f, "a.npz", NULL, -EBADMSG, "damaged");
        }
        free(good);
        files_free(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers),        cmocka_unit_test(test_kinds_of_csv),
                cmocka_unit_test(test_large_csv),      cmocka_unit_test(test_bad_lines),
                cmocka_unit_test(test_labels),         cmocka_unit_test(test_npz),
                cmocka_unit_test(test_npz_of_64_bits), cmocka_unit_test(test_npz_refused),
                cmocka_unit_test(test_hostile_zip),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
