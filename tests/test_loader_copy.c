/* What `antifreeze convert` makes is read as a whole, each array a field; what says to be of its
 * making and is not leads nowhere else. */
#include "loader_files.h"

#define COPY_OF(arrays)                                                                            \
        "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"antifreeze_convert\":"       \
        "{\"arrays\":" arrays "}}}"
#define ARRAY(shape, chunk)                                                                        \
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape                              \
        ",\"data_type\":\"int16\",\"fill_value\":0,\"chunk_grid\":{\"name\":\"regular\","          \
        "\"configuration\":{\"chunk_shape\":" chunk                                                \
        "}},\"chunk_key_encoding\":{\"name\":\"default\"},"                                        \
        "\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}"
#define X_TEXT ARRAY("[2,2]", "[2,2]")
#define AN_X   "[{\"name\":\"x\"}]"
#define X_Y    "[{\"name\":\"x\"},{\"name\":\"y\"}]"

static void test_copy(void **state)
{
        (void)state;
        struct files f = files_new();
        const int16_t x[] = {1, 2, 3, 4}, y[] = {5, 6};
        files_text(&f, "c/zarr.json", COPY_OF(X_Y));
        files_text(&f, "c/x/zarr.json", X_TEXT);
        files_put(&f, "c/x/c/0/0", x, sizeof x);
        refused(&f, "c", NULL, -ENOENT, "c/y");
        files_text(&f, "c/y/zarr.json", ARRAY("[2]", "[2]"));
        files_put(&f, "c/y/c/0", y, sizeof y);
        struct loaded *l = loaded_all(&f, "c", NULL);
        assert_int_equal(l->dataset.fields, 2);
        assert_string_equal(l->dataset.field[0].name, "x");
        assert_string_equal(l->dataset.field[1].name, "y");
        assert_memory_equal(l->field[0], x, sizeof x);
        assert_memory_equal(l->field[1], y, sizeof y);
        files_cut(&f, "c/y/c/0", 3);
        l->why[0] = '\0';
        loaded_fill(l, 0, 1);
        assert_int_equal(l->bads, 2);
        assert_non_null(strstr(l->why, "y/c/0"));
        loaded_free(l);
        files_free(&f);
}

static void test_hostile_copies(void **state)
{
        (void)state;
        struct files f = files_new();
        files_text(&f, "c/x/zarr.json", X_TEXT);
        static const struct {
                const char *group, *y;
                int error;
                const char *says;
        } rows[] = {
                {COPY_OF(X_Y), ARRAY("[3]", "[2]"), -EBADMSG, "same samples"},
                {COPY_OF(X_Y), ARRAY("[2]", "[1]"), -EBADMSG, "same samples"},
                {COPY_OF(X_Y), COPY_OF(AN_X), -EBADMSG, "a group inside"},
                {COPY_OF(X_Y), "{", -EBADMSG, "c/y: its description is not JSON"},
                {COPY_OF("[{\"name\":\"../c/x\"}]"), "{}", -EISDIR, "name one of them"},
                {COPY_OF("[{\"name\":\"..\"}]"), "{}", -EISDIR, "name one of them"},
                {COPY_OF("[{\"name\":\"\"}]"), "{}", -EISDIR, "name one of them"},
                {COPY_OF("[{\"name\":7}]"), "{}", -EISDIR, "name one of them"},
                {COPY_OF("[{}, {}, {}, {}, {}, {}, {}, {}, {}]"), "{}", -EISDIR, "name one"},
                {COPY_OF("[]"), "{}", -EISDIR, "name one of them"},
                {COPY_OF("{}"), "{}", -EISDIR, "name one of them"},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                files_text(&f, "c/zarr.json", rows[i].group);
                files_text(&f, "c/y/zarr.json", rows[i].y);
                refused(&f, "c", NULL, rows[i].error, rows[i].says);
        }
        files_free(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_copy),
                cmocka_unit_test(test_hostile_copies),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
