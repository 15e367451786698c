/* Pieces of antifreeze-convert: sizes, packing, shards, words. The whole is in test_convert.py. */
#include <endian.h>
#include <fcntl.h>
#include <zstd.h>

#include "array.h"
#include "convert.h"
#include "crc32c.h"
#include "loader_files.h"
#include "pack.h"
#include "talk.h"

#define MIB (UINT64_C(1) << 20)

/* ---- layout ---- */

static void test_layout(void **state)
{
        (void)state;
        static const struct {
                uint64_t samples, sample_bytes, chunk_bytes, shard_bytes;
                struct afz_layout want;
        } rows[] = {
                {60000, 784, MIB, 64 * MIB, {60000, 784, 1337, 45, 45, 1}},
                {1000, 150528, MIB, 64 * MIB, {1000, 150528, 6, 167, 74, 3}},
                {7, 5 * MIB, MIB, 64 * MIB, {7, 5 * MIB, 1, 7, 7, 1}}, /* never cut */
                {7, 100 * MIB, MIB, 64 * MIB, {7, 100 * MIB, 1, 7, 1, 7}},
                {1, 1, 1, 1, {1, 1, 1, 1, 1, 1}},
                {10, 1, 3, 6, {10, 1, 3, 4, 2, 2}},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_layout l;
                assert_int_equal(afz_layout_make(rows[i].samples, rows[i].sample_bytes,
                                                 rows[i].chunk_bytes, rows[i].shard_bytes, &l),
                                 0);
                assert_memory_equal(&l, &rows[i].want, sizeof l);
                uint64_t chunks = 0;
                for (uint64_t s = 0; s < l.shards; s++)
                        chunks += afz_layout_chunks_of(&l, s);
                assert_int_equal(chunks, l.chunks);
                assert_int_equal(afz_layout_chunks_of(&l, l.shards), 0);
                assert_int_equal(afz_layout_samples_before(&l, 0), 0);
                assert_int_equal(afz_layout_samples_before(&l, l.shards), l.samples);
        }
}

static void test_layout_too_large(void **state)
{
        (void)state;
        struct afz_layout l;
        assert_int_equal(afz_layout_make(UINT64_C(1) << 40, UINT64_C(1) << 40, MIB, MIB, &l),
                         -EOVERFLOW);
        assert_int_equal(afz_layout_make(UINT64_MAX, 1, MIB, MIB, &l), -EOVERFLOW);
        assert_int_equal(afz_layout_make(0, 1, MIB, MIB, &l), -EOVERFLOW);
        assert_int_equal(afz_layout_make(1, 0, MIB, MIB, &l), -EOVERFLOW);
        assert_int_equal(afz_layout_make(UINT64_C(1) << 40, 1, UINT64_C(1) << 40, MIB, &l), 0);
        assert_int_equal(l.chunk_samples, UINT32_MAX); /* a batch has no more */
}

/* ---- packing ---- */

static void unpack(const uint8_t *packed, uint64_t bytes, int level, uint8_t *to, uint64_t want)
{
        uint32_t sum;
        assert_true(bytes > sizeof sum);
        memcpy(&sum, packed + bytes - sizeof sum, sizeof sum);
        assert_int_equal(le32toh(sum), afz_crc32c(packed, bytes - sizeof sum));
        if (level == 0) {
                assert_int_equal(bytes - sizeof sum, want);
                memcpy(to, packed, want);
        } else {
                assert_int_equal(ZSTD_decompress(to, want, packed, bytes - sizeof sum), want);
        }
}

static void test_pack(void **state)
{
        (void)state;
        enum { WHOLE = 5000, PART = 1234 };
        uint8_t plain[WHOLE], got[WHOLE], zeros[WHOLE - PART] = {0};
        for (size_t i = 0; i < sizeof plain; i++)
                plain[i] = (uint8_t)(i * i >> 3);
        for (int level = 0; level <= 19; level += 3) {
                const uint8_t *one, *two, *three;
                uint64_t one_bytes, two_bytes, three_bytes;
                struct afz_packer *packer =
                        afz_packer_new(level, WHOLE, 2 * afz_pack_most_bytes(WHOLE));
                assert_non_null(packer);
                assert_true(afz_packer_bytes(packer) >= 2 * afz_pack_most_bytes(WHOLE));
                assert_int_equal(afz_pack(packer, plain, WHOLE, WHOLE, &one, &one_bytes), 0);
                assert_int_equal(afz_pack(packer, plain, PART, WHOLE, &two, &two_bytes), 0);
                unpack(one, one_bytes, level, got, WHOLE); /* the second has left it alone */
                assert_memory_equal(got, plain, WHOLE);
                unpack(two, two_bytes, level, got, WHOLE);
                assert_memory_equal(got, plain, PART);
                assert_memory_equal(got + PART, zeros, sizeof zeros);
                int r = 0;
                while (r == 0) /* what is full says so */
                        r = afz_pack(packer, plain, WHOLE, WHOLE, &three, &three_bytes);
                assert_int_equal(r, -ENOBUFS);
                afz_packer_empty(packer);
                assert_int_equal(afz_pack(packer, plain, WHOLE, WHOLE, &three, &three_bytes), 0);
                assert_int_equal(three_bytes, one_bytes);
                afz_packer_free(packer);
        }
        afz_packer_free(NULL);
}

/* ---- shards ---- */

static void test_a_part_is_never_a_shard(void **state)
{
        (void)state;
        struct files f = files_new();
        int folder = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct afz_layout l;
        struct afz_array array;
        struct afz_field field = {.dtype = AFZ_U8, .dimensions = 2, .shape = {1, 1}, .bytes = 1};
        uint64_t bytes;
        assert_int_equal(afz_layout_make(10, 1, 2, 6, &l), 0);
        assert_int_equal(afz_array_open(&array, folder, "x", &field, &l, 3), 0);
        assert_int_equal(afz_array_put(&array, (const uint8_t *)"one", 3), 0);
        assert_int_equal(afz_array_has_shard(&array, 0, &bytes), -ENOENT);
        assert_int_equal(access(files_path(&f, "x/.part"), F_OK), 0);
        afz_array_close(&array); /* in mid-shard */
        assert_int_not_equal(access(files_path(&f, "x/.part"), F_OK), 0);

        assert_int_equal(afz_array_open(&array, folder, "x", &field, &l, 3), 0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(afz_array_put(&array, (const uint8_t *)"four", 4), 0);
        assert_int_equal(afz_array_end_shard(&array, 1), 0);
        assert_int_equal(afz_array_has_shard(&array, 1, &bytes), 0);
        assert_int_equal(bytes, 8 + 3 * 16 + 4);
        assert_int_equal(access(files_path(&f, "x/c.1.0.0"), F_OK), 0);
        files_put(&f, "x/c.2.0.0", "cut off", 7);
        assert_int_equal(afz_array_has_shard(&array, 2, &bytes), -EBADMSG);
        assert_int_equal(afz_array_describe(&array), 0);
        assert_int_equal(access(files_path(&f, "x/zarr.json"), F_OK), 0);
        afz_array_close(&array);
        close(folder);
        files_free(&f);
}

static void test_a_place_that_cannot_be_written(void **state)
{
        (void)state;
        struct files f = files_new();
        int folder = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct afz_layout l;
        struct afz_array array;
        struct afz_field field = {.dtype = AFZ_U8, .bytes = 1};
        assert_int_equal(afz_layout_make(10, 1, 2, 6, &l), 0);
        files_put(&f, "x", "a file", 6);
        assert_int_equal(afz_array_open(&array, folder, "x", &field, &l, 3), -ENOTDIR);
        assert_int_equal(symlink("/etc", files_path(&f, "y")), 0);
        assert_true(afz_array_open(&array, folder, "y", &field, &l, 3) < 0);
        assert_int_equal(mkdir(files_path(&f, "z"), 0777), 0);
        assert_int_equal(symlink("/dev/null", files_path(&f, "z/.part")), 0);
        assert_int_equal(afz_array_open(&array, folder, "z", &field, &l, 3), 0);
        assert_int_equal(afz_array_put(&array, (const uint8_t *)"four", 4), -ELOOP);
        afz_array_close(&array);
        close(folder);
        files_free(&f);
}

/* ---- recipes ---- */

static void test_recipes(void **state)
{
        (void)state;
        struct files f = files_new();
        char path[4096];
        files_put(&f, "x\n\xff.npy", "1", 1);
        snprintf(path, sizeof path, "%s", files_path(&f, "x\n\xff.npy"));
        struct afz_wish wish = {.source = path, .target = "t", .level = 3};
        struct afz_outcome outcome = {.arrays = 1, .layout = {10, 1, 2, 5, 3, 2}};
        snprintf(outcome.array[0].name, sizeof outcome.array[0].name, "x");
        json_t *one = afz_recipe_new(&wish, &outcome), *other = afz_recipe_new(&wish, &outcome);
        assert_non_null(one);
        assert_null(afz_recipe_differs(one, other));
        char *text = json_dumps(one, 0); /* whatever its name, it can be written down */
        assert_non_null(strstr(text, "x%0A%FF.npy"));
        free(text);
        json_decref(other);
        wish.level = 4;
        other = afz_recipe_new(&wish, &outcome);
        assert_string_equal(afz_recipe_differs(one, other), "with another --level");
        assert_non_null(afz_recipe_differs(NULL, other));
        json_decref(other);
        files_put(&f, "x\n\xff.npy", "12", 2);
        wish.level = 3;
        other = afz_recipe_new(&wish, &outcome);
        assert_string_equal(afz_recipe_differs(one, other),
                            "from another source, or it has changed since");
        json_decref(other);
        json_decref(one);
        files_free(&f);
}

/* ---- words ---- */

static void test_lines(void **state)
{
        (void)state;
        const uint64_t s = 1000000000;
        static const struct afz_layout layout = {.samples = 1000, .sample_bytes = MIB};
        const struct {
                uint64_t begun, done, spent_ns;
                int columns;
                const char *want;
        } rows[] = {
                {0, 0, 0, 0, "0 %, 0B of 1000M, 0B/s"},
                {0, 500, 10 * s, 0, "50 %, 500M of 1000M, 50M/s, 10 s left"},
                {400, 500, 10 * s, 0, "50 %, 500M of 1000M, 10M/s, 50 s left"}, /* its own speed */
                {0, 500, 1 * s, 0, "50 %, 500M of 1000M, 500M/s"}, /* too early to tell */
                {0, 1000, 10 * s, 0, "100 %, 1000M of 1000M, 100M/s"},
                {0, 500, 10 * s, 61,
                 "[##########          ] 50 %, 500M of 1000M, 50M/s, 10 s left"},
                {0, 500, 10 * s, 40, "50 %, 500M of 1000M, 50M/s, 10 s left"},
                {0, 500, 10 * s, 20, "50 %, 500M of 1000M"},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                char line[AFZ_TALK_CAP];
                struct afz_outcome o = {.layout = layout,
                                        .begun_samples = rows[i].begun,
                                        .done_samples = rows[i].done};
                afz_talk_line(&o, rows[i].spent_ns, rows[i].columns, line);
                assert_string_equal(line, rows[i].want);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_layout),
                cmocka_unit_test(test_layout_too_large),
                cmocka_unit_test(test_pack),
                cmocka_unit_test(test_a_part_is_never_a_shard),
                cmocka_unit_test(test_a_place_that_cannot_be_written),
                cmocka_unit_test(test_recipes),
                cmocka_unit_test(test_lines),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
