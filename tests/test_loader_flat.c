/* Flat files: headers of strangers, and what comes out of files that are as they say, and of those
 * that are not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "details.h"
#include "direct.h"
#include "flat.h"
#include "idx.h"
#include "loader_fixture.h"
#include "npy.h"
#include "room.h"

static int npy_of(const char *text, struct afz_npy *npy)
{
        uint8_t head[512] = "\x93NUMPY\x01";
        size_t n = strlen(text);
        head[8] = (uint8_t)n;
        head[9] = (uint8_t)(n >> 8);
        memcpy(head + 10, text, n);
        return afz_npy_parse(head, 10 + n, npy);
}

static void test_npy_header(void **state)
{
        struct afz_npy npy;
        (void)state;
        assert_int_equal(
                npy_of("{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }   \n",
                       &npy),
                0);
        assert_int_equal(npy.dtype, AFZ_F32);
        assert_int_equal(npy.dimensions, 3);
        assert_int_equal(npy.shape[2], 28);
        assert_int_equal(npy_of("{\"shape\":(5,),'descr':'>i2','fortran_order':True}", &npy), 0);
        assert_true(npy.is_swapped && npy.is_fortran && npy.dimensions == 1);
        assert_int_equal(npy_of("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", &npy), 0);
        assert_int_equal(npy.dimensions, 0);
        assert_int_equal(
                npy_of("{'descr': '|u1', 'fortran_order': False, 'shape': (7L, 3L)}", &npy), 0);
}

static void test_npy_hostile(void **state)
{
        static const struct {
                const char *text;
                int error;
        } cases[] = {
                {"", -EBADMSG},
                {"{", -EBADMSG},
                {"{}", -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': False}", -EBADMSG},
                {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
                 -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} and more", -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}",
                 -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
                 -EBADMSG},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1)}",
                 -EOVERFLOW},
                {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", -EBADMSG},
                {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", -EINVAL},
                {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", -EINVAL},
                {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", -EINVAL},
                {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", -EINVAL},
                {"{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", -EINVAL},
        };
        struct afz_npy npy;
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                if (npy_of(cases[i].text, &npy) != cases[i].error)
                        fail_msg("%s: %d", cases[i].text, npy_of(cases[i].text, &npy));
        assert_int_equal(afz_npy_parse((const uint8_t *)"PK\x03\x04", 4, &npy), -EMEDIUMTYPE);
        assert_int_equal(afz_npy_parse((const uint8_t *)"\x93NUMPY\x01\x00", 8, &npy), -EBADMSG);
        assert_int_equal(afz_npy_parse((const uint8_t *)"\x93NUMPY\x01\x00\xff\xff{'d", 13, &npy),
                         -EBADMSG);
        assert_int_equal(
                afz_npy_parse((const uint8_t *)"\x93NUMPY\x02\x00\xff\xff\xff\xff{'d", 15, &npy),
                -EBADMSG);
        assert_int_equal(afz_npy_parse((const uint8_t *)"\x93NUMPY\x09\x00\x01\x00{}}}", 14, &npy),
                         -ENOTSUP);
}

static void test_idx_header(void **state)
{
        struct afz_npy idx;
        (void)state;
        assert_int_equal(
                afz_idx_parse((const uint8_t *)"\0\0\x08\x03\0\0\xea\x60\0\0\0\x1c\0\0\0\x1c", 16,
                              &idx),
                0);
        assert_int_equal(idx.shape[0], 60000);
        assert_int_equal(idx.data_at, 16);
        assert_false(idx.is_swapped);
        assert_int_equal(afz_idx_parse((const uint8_t *)"\0\0\x08\x03\0\0\xea\x60\0\0\0\x1c\0\0\0",
                                       15, &idx),
                         -EBADMSG);
        assert_int_equal(afz_idx_parse((const uint8_t *)"\0\0\x08\xff", 4, &idx), -EOVERFLOW);
        assert_int_equal(afz_idx_parse((const uint8_t *)"\0\0\x07\x01\0\0\0\1", 8, &idx),
                         -EMEDIUMTYPE);
        assert_int_equal(afz_idx_parse((const uint8_t *)"\0\0", 2, &idx), -EMEDIUMTYPE);
}

static void test_details(void **state)
{
        static const char *const wrong[] = {
                "",
                "{}",
                "[]",
                "{\"shape\": [1]}",
                "{\"dtype\": \"f4\", \"shape\": [1,]}",
                "{\"dtype\": \"f4\", \"shape\": [-1]}",
                "{\"dtype\": \"f4\", \"shape\": [1.5]}",
                "{\"dtype\": \"f4\", \"shape\": [1]} x",
                "{\"dtype\": \"f4\", \"dtype\": \"f4\"}",
                "{\"dtype\": \"c8\"}",
                "{\"dtype\": \"f4\", \"fields\": [{\"dtype\": \"f4\"}]}",
                "{\"fields\": []}",
                "{\"fields\": [{\"name\": \"x\"}]}",
                "{\"fields\": [{\"dtype\": \"f4\", \"skip\": 3}]}",
                "{\"fields\": [{\"dtype\": \"<f4\"}, {\"dtype\": \">f4\"}]}",
                "{\"dtype\": \"f4\", \"shape\": [1,1,1,1,1,1,1,1,1]}",
                "{\"dtype\": \"f4\", \"skip\": 99999999999999999999999}",
                "{\"dtype\": \"f4\", \"name\": \"far too many letters for a name of a field\"}",
                "{\"dtype\": \"f4",
        };
        struct afz_details details;
        char why[AFZ_WHY_MAX];
        (void)state;
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
                if (afz_details_parse(wrong[i], &details, why) != -EINVAL)
                        fail_msg("%s was taken", wrong[i]);
        assert_int_equal(
                afz_details_parse(" {\"dtype\" : \"float32\", \"shape\": [3, 4], \"skip\": 7} ",
                                  &details, why),
                0);
        assert_int_equal(details.field[0].shape[1], 4);
        assert_int_equal(details.skip, 7);
        assert_int_equal(afz_details_parse("{\"fields\": [{\"name\": \"label\", \"dtype\": "
                                           "\"u1\"}, {\"dtype\": \">f4\"}]}",
                                           &details, why),
                         0);
        assert_int_equal(details.fields, 2);
        assert_true(details.is_swapped);
}

static void test_room(void **state)
{
        char folder[64];
        (void)state;
        assert_int_equal(afz_room_of_meminfo("MemTotal: 5 kB\nMemAvailable:   1024 kB\n"), MIB);
        assert_true(afz_room_of_meminfo("MemTotal: 5 kB\n") == UINT64_MAX);
        assert_true(afz_room_of_meminfo("MemAvailable: 99999999999999999999 kB") == UINT64_MAX);
        assert_int_equal(afz_room_folder("0::/user/job\n", folder, sizeof folder), 2);
        assert_string_equal(folder, "/user/job");
        assert_int_equal(
                afz_room_folder("12:pids:/x\n4:memory:/job\n0::/\n", folder, sizeof folder), 1);
        assert_string_equal(folder, "/job");
        assert_int_equal(afz_room_folder("10::/x\n", folder, sizeof folder), -ENODATA);
        assert_true(afz_room_bytes() > 0);
}

/* ---- whole files ---- */

static const char *in_dir(const char *name)
{
        static char path[4][128];
        static unsigned next;
        char *ret = path[next++ % 4];
        snprintf(ret, 128, "%s/%s", fixture_dir, name);
        return ret;
}

static struct afz_loader_options options_for(const char **paths, uint32_t count)
{
        return (struct afz_loader_options){.paths = paths,
                                           .path_count = count,
                                           .budget_bytes = 8 * MIB,
                                           .batch = 3,
                                           .shuffle = AFZ_SHUFFLE_NONE};
}

static void test_mnist(void **state)
{
        uint8_t images[16 + 10 * 4] = {0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 2};
        uint8_t labels[8 + 10 * 4] = {0, 0, 12, 1, 0, 0, 0, 10};
        const char *paths[] = {in_dir("train-images-idx3-ubyte"), in_dir("train-labels-idx1-int")};
        char why[AFZ_WHY_MAX];
        (void)state;
        for (int i = 0; i < 10; i++) {
                memset(images + 16 + 4 * i, i, 4);
                labels[8 + 4 * i + 2] = 1; /* 256 + i, the large end first */
                labels[8 + 4 * i + 3] = (uint8_t)i;
        }
        write_file(paths[0], images, sizeof images);
        write_file(paths[1], labels, sizeof labels);
        struct afz_loader_options options = options_for(paths, 2);
        struct afz_loader *loader = open_ok(&options);
        struct afz_loader_facts facts;
        struct afz_batch batch;
        afz_loader_facts(loader, &facts);
        assert_int_equal(facts.fields, 2);
        assert_int_equal(facts.field[0].dimensions, 2);
        assert_int_equal(facts.field[1].dimensions, 0);
        for (int i = 0; afz_loader_next(loader, &batch, why) == 1; i += 3) {
                const uint8_t *image = batch.data[0];
                const int32_t *label = batch.data[1];
                assert_int_equal(batch.count, i < 9 ? 3 : 1);
                assert_true((uintptr_t)label % 64 == 0);
                for (uint32_t k = 0; k < batch.count; k++) {
                        assert_int_equal(image[4 * k + 3], i + (int)k);
                        assert_int_equal(label[k], 256 + i + (int)k);
                }
                afz_loader_release(loader, batch.lease);
        }
        afz_loader_close(loader);
        options.paths = (const char *[]){in_dir("train-labels-idx1-int"), fixture_path};
        write_rows(fixture_path, 11, 1);
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        assert_non_null(strstr(why, "has 10 samples"));
}

static void test_records(void **state)
{
        uint8_t records[5 + 8 * 7];
        const char *paths[] = {in_dir("records.bin")};
        char why[AFZ_WHY_MAX];
        struct afz_batch batch;
        struct afz_loader *loader;
        (void)state;
        for (size_t i = 0; i < sizeof records; i++)
                records[i] = (uint8_t)i;
        write_file(paths[0], records, sizeof records);
        struct afz_loader_options options = options_for(paths, 1);
        options.format = "raw";
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL); /* of what? */
        options.details = "{\"skip\": 5, \"fields\": [{\"name\": \"label\", \"dtype\": \"u1\"}, "
                          "{\"name\": \"image\", \"dtype\": \"u1\", \"shape\": [2, 3]}]}";
        loader = open_ok(&options);
        assert_int_equal(afz_loader_next(loader, &batch, why), 1);
        assert_int_equal(((uint8_t *)batch.data[0])[2], 5 + 14);
        assert_int_equal(((uint8_t *)batch.data[1])[2 * 6], 5 + 15);
        afz_loader_release(loader, batch.lease);
        afz_loader_close(loader);
        options.details = "{\"skip\": 6, \"dtype\": \"u1\", \"shape\": [7]}";
        assert_int_equal(afz_loader_open(&options, &loader, why), -EBADMSG);
        assert_non_null(strstr(why, "no whole number of records of 7"));
        options.format = "unheard-of";
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        options.format = NULL;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EMEDIUMTYPE);
        paths[0] = in_dir("pipe.npy"); /* that nobody writes to: it is not waited for */
        assert_int_equal(mkfifo(paths[0], 0600), 0);
        assert_int_equal(afz_loader_open(&options, &loader, why), -EMEDIUMTYPE);
        options.format = "npy";
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
}

static void test_tokens(void **state)
{
        uint16_t tokens[1000];
        const char *paths[] = {in_dir("tokens.bin")};
        char why[AFZ_WHY_MAX];
        struct afz_batch batch;
        struct afz_loader_facts facts;
        (void)state;
        for (uint16_t i = 0; i < 1000; i++)
                tokens[i] = i;
        write_file(paths[0], tokens, sizeof tokens);
        struct afz_loader_options options = options_for(paths, 1);
        options.format = "tokens";
        options.details = "{\"dtype\": \"u2\", \"length\": 64, \"overlap\": 1}";
        struct afz_loader *loader = open_ok(&options);
        afz_loader_facts(loader, &facts);
        assert_int_equal(facts.samples, 15);
        assert_int_equal(facts.field[0].shape[0], 65);
        for (uint16_t i = 0; afz_loader_next(loader, &batch, why) == 1;) {
                for (uint32_t k = 0; k < batch.count; k++, i++)
                        for (uint16_t t = 0; t < 65; t++)
                                assert_int_equal(((uint16_t *)batch.data[0])[k * 65 + t],
                                                 i * 64 + t);
                afz_loader_release(loader, batch.lease);
        }
        afz_loader_close(loader);
}

static void test_cut_off(void **state)
{
        enum { SAMPLES = 9000, LEFT = 7001 };
        char why[AFZ_WHY_MAX];
        int64_t ids[SAMPLES];
        struct afz_loader *loader;
        struct afz_loader_times times;
        (void)state;
        write_rows(fixture_path, SAMPLES, 64);
        assert_int_equal(truncate(fixture_path, 128 + LEFT * 512 + 100), 0);
        struct afz_loader_options options = rows_options();
        assert_int_equal(afz_loader_open(&options, &loader, why), -ENODATA);
        assert_non_null(strstr(why, "is cut off"));
        options.on_error = AFZ_ERROR_SKIP;
        loader = open_ok(&options);
        for (int epoch = 0; epoch < 2; epoch++) {
                assert_all_once(ids, take_epoch(loader, 64, ids), LEFT);
                afz_loader_times(loader, &times);
                assert_int_equal(times.skipped, SAMPLES - LEFT);
        }
        afz_loader_close(loader);
}

static void test_shrinks(void **state)
{
        enum { SAMPLES = 9000 };
        char why[AFZ_WHY_MAX] = "";
        struct afz_batch batch;
        int64_t ids[SAMPLES];
        uint64_t errors = 0, batches = 0;
        (void)state;
        write_rows(fixture_path, SAMPLES, 64);
        struct afz_loader_options options = rows_options();
        options.budget_bytes = 1 * MIB;
        struct afz_loader *loader = open_ok(&options);
        take_epoch(loader, 64, ids);
        assert_int_equal(truncate(fixture_path, 128 + 512 * 4000), 0);
        for (int epoch = 0; epoch < 2; epoch++) { /* some of the first were read before */
                errors = batches = 0;
                for (int r; (r = afz_loader_next(loader, &batch, why)) != 0; batches++) {
                        errors += r < 0;
                        if (r < 0)
                                assert_non_null(strstr(why, "cut off, or it shrank"));
                        else
                                afz_loader_release(loader, batch.lease);
                }
        }
        assert_true(errors > batches / 2);
        assert_int_equal(batches, (SAMPLES + 31) / 32); /* an error stands in a batch's place */
        afz_loader_close(loader);
}

/* Past the page cache: whatever is asked for comes, wherever it begins and ends. */
static void test_past_the_cache(void **state)
{
        enum { BYTES = 300001, RAW = 256 << 10 };
        const char *path = in_dir("bytes");
        uint8_t *bytes = malloc(BYTES), *got = malloc(BYTES), *raw = NULL;
        struct afz_direct file;
        (void)state;
        assert_int_equal(posix_memalign((void **)&raw, 4096, RAW), 0);
        for (size_t i = 0; i < BYTES; i++)
                bytes[i] = (uint8_t)(i * 7 + i / 251);
        write_file(path, bytes, BYTES);
        assert_int_equal(afz_direct_open(&file, path, false), 0);
        if (file.past_fd < 0)
                file.past_fd = open(
                        path, O_RDONLY | O_CLOEXEC |
                                      O_DIRECT); /* not everywhere: then this is the plain way */
        assert_int_equal(fsync(file.fd), 0);
        static const struct {
                uint64_t at, bytes;
        } runs[] = {{0, 65536},
                    {1, 65536},
                    {4096, 131072},
                    {4095, 40000},
                    {100, 50},
                    {0, BYTES},
                    {128, BYTES - 128},
                    {BYTES - 20000, 20000},
                    {BYTES - 16385, 16385},
                    {BYTES - 1, 1},
                    {278528, 21473}};
        for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
                struct afz_scratch scratch = {.raw = raw, .raw_bytes = RAW};
                (void)posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
                memset(got, 0, BYTES);
                assert_int_equal(afz_direct_read(&file, got, runs[i].bytes, runs[i].at, &scratch),
                                 0);
                assert_memory_equal(got, bytes + runs[i].at, runs[i].bytes);
                assert_int_equal(scratch.read_bytes, runs[i].bytes);
        }
        struct afz_scratch scratch = {.raw = raw, .raw_bytes = RAW};
        assert_int_equal(afz_direct_read(&file, got, 20000, BYTES - 19999, &scratch), -ENODATA);
        assert_int_equal(afz_direct_read(&file, got, 20000, UINT64_MAX - 100, &scratch),
                         -EOVERFLOW);
        assert_int_equal(afz_direct_read(&file, got, 20000, INT64_MAX - 100, &scratch), -EOVERFLOW);
        afz_direct_close(&file);
        free(bytes);
        free(got);
        free(raw);
}

static void test_hostile_files(void **state)
{
        static const struct {
                const char *text;
                int error;
        } cases[] = {
                {"{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 3), }",
                 -EOVERFLOW},
                {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1152921504606846976), }",
                 -EOVERFLOW},
                {"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4, 4), }",
                 -EOVERFLOW},
                {"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8), }",
                 -ENODATA},
                {"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 8), }", -ENODATA},
                {"{'descr': '<f8', 'fortran_order': False, 'shape': (8, 0), }", -ENODATA},
                {"{'descr': '<f8', 'fortran_order': False, 'shape': (), }", -EINVAL},
                {"{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", -EINVAL},
                {"{'descr': '|S5', 'fortran_order': False, 'shape': (2, 2), }", -EINVAL},
        };
        char file[1024] = "\x93NUMPY\x01", why[AFZ_WHY_MAX];
        struct afz_loader *loader;
        struct afz_loader_options options = rows_options();
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                size_t n = strlen(cases[i].text);
                file[8] = (char)n;
                memcpy(file + 10, cases[i].text, n);
                write_file(fixture_path, file, sizeof file);
                int r = afz_loader_open(&options, &loader, why);
                if (r != cases[i].error || !why[0])
                        fail_msg("%s: %d (%s)", cases[i].text, r, why);
        }
        options.on_error = AFZ_ERROR_SKIP; /* 8 TB of samples, none of which are there */
        memcpy(file + 10, cases[3].text, strlen(cases[3].text));
        file[8] = (char)strlen(cases[3].text);
        write_file(fixture_path, file, sizeof file);
        loader = open_ok(&options);
        afz_loader_close(loader);
        options.paths = (const char *[]){fixture_dir};
        assert_true(afz_loader_open(&options, &loader, why) < 0);
        options.paths = (const char *[]){"/dev/null"};
        assert_true(afz_loader_open(&options, &loader, why) < 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_npy_header),    cmocka_unit_test(test_npy_hostile),
                cmocka_unit_test(test_idx_header),    cmocka_unit_test(test_details),
                cmocka_unit_test(test_room),          cmocka_unit_test(test_mnist),
                cmocka_unit_test(test_records),       cmocka_unit_test(test_tokens),
                cmocka_unit_test(test_cut_off),       cmocka_unit_test(test_shrinks),
                cmocka_unit_test(test_hostile_files), cmocka_unit_test(test_past_the_cache),
        };
        return cmocka_run_group_tests(tests, fixture_make, fixture_remove);
}
