/* Pictures in tar files, as webdataset names them. */
#include "picture_files.h"
#include "tar.h"

static void tar_picture(struct tarball *t, const char *name, uint8_t blue)
{
        struct picture p = png_new(12, 12, blue, false);
        tar_add(t, name, '0', p.data, p.bytes);
        free(p.data);
}

static void tar_put(const struct files *f, const char *name, struct tarball *t)
{
        files_put(f, name, t->data, t->bytes);
        tar_free(t);
}

static void check_sample(const struct loaded *l, size_t i, int blue, int64_t label)
{
        int64_t got;
        memcpy(&got, l->field[1] + i * sizeof got, sizeof got);
        assert_int_equal(l->field[0][i * 12 * 12 * 3 + 2], blue);
        assert_int_equal(got, label);
}

static void test_samples_and_labels(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_JANSSON))
                skip();
        struct files f = files_new();
        struct tarball *t = tar_new();
        char deep[200], pax[300];
        tar_text(t, "a/0.cls", "7\n");
        tar_picture(t, "a/0.png", 1);
        tar_picture(t, "a/1.png", 2);
        tar_text(t, "a/1.json", "{\"text\": \"a dog\", \"label\": -3}");
        tar_text(t, "a/1.txt", "not for us");
        tar_add(t, "a/folder/", '5', "", 0);
        tar_add(t, "a/1x.png", '2', "", 0);           /* a link */
        tar_picture(t, "../../../etc/passwd.png", 3); /* a key like any other */
        tar_text(t, "../../../etc/passwd.cls", "8");
        memset(deep, 'd', sizeof deep);
        memcpy(deep + 180, "/k.png", 7);
        tar_add(t, "././@LongLink", 'L', deep, strlen(deep) + 1);
        tar_picture(t, "cut", 4);
        memcpy(deep + 180, "/k.cls", 7);
        snprintf(pax, sizeof pax, "%d path=%s\n", (int)(strlen(deep) + 10), deep);
        tar_add(t, "pax", 'x', pax, strlen(pax));
        tar_text(t, "also cut", "9");
        tar_text(t, "nobody.cls", "1"); /* no picture: no sample */
        tar_picture(t, "nothing.png", 5);
        tar_picture(t, ".png", 6); /* no key */
        tar_end(t);
        tar_put(&f, "a.tar", t);
        struct loaded *l = loaded_all(&f, "a.tar", NULL);
        assert_string_equal(l->dataset.format->name, "tar");
        assert_int_equal(l->dataset.samples, 5);
        check_sample(l, 0, 1, 7);
        check_sample(l, 1, 2, -3);
        check_sample(l, 2, 3, 8);
        check_sample(l, 3, 4, 9);
        assert_int_equal(l->bads, 1); /* the last one has no label */
        assert_int_equal(l->bad[4], 1);
        assert_non_null(strstr(l->why, "no label"));
        for (uint64_t part = 1; part < 4; part++) {
                memset(l->field[0], 0, 5 * l->dataset.field[0].bytes);
                loaded_fill(l, part, 1);
                check_sample(l, 3, 4, 9);
        }
        loaded_free(l);
        files_free(&f);
}

static void test_shards(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_JANSSON))
                skip();
        struct files f = files_new();
        for (int shard = 3; shard-- > 0;) {
                struct tarball *t = tar_new();
                char name[64];
                for (int i = 0; i < 4; i++) {
                        snprintf(name, sizeof name, "%d.png", i);
                        tar_picture(t, name, (uint8_t)(shard * 4 + i));
                }
                snprintf(name, sizeof name, "set/%06d.tar", shard);
                tar_end(t);
                tar_put(&f, name, t);
        }
        struct loaded *l = loaded_all(&f, "set", NULL);
        assert_int_equal(l->dataset.samples, 12);
        assert_int_equal(l->dataset.fields, 1);
        for (size_t i = 0; i < 12; i++)
                assert_int_equal(l->field[0][i * 12 * 12 * 3 + 2], i);
        unlink(files_path(&f, "set/000001.tar")); /* while it is open */
        loaded_fill(l, 0, 1);
        assert_int_equal(l->bads, 4);
        loaded_free(l);
        files_free(&f);
}

static void test_cut_off(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_JANSSON))
                skip();
        struct files f = files_new();
        struct tarball *t = tar_new();
        size_t second = 0;
        for (int i = 0; i < 3; i++) {
                char name[64];
                snprintf(name, sizeof name, "%d.png", i);
                tar_picture(t, name, (uint8_t)i);
                second = i == 1 ? t->bytes : second;
        }
        tar_end(t);
        files_put(&f, "a.tar", t->data, second - 500);
        tar_free(t);
        refused(&f, "a.tar", NULL, -ENODATA, "cut off");
        struct afz_loader_options o = {.on_error = AFZ_ERROR_SKIP};
        struct loaded *l = loaded_all(&f, "a.tar", &o);
        assert_int_equal(l->dataset.samples, 1);
        assert_int_equal(l->bads, 0);
        files_cut(&f, "a.tar", 600);
        loaded_fill(l, 0, 1);
        assert_int_equal(l->bads, 1);
        loaded_free(l);
        files_free(&f);
}

/* One field of the header of an otherwise good member. */
static void test_hostile_headers(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_JANSSON))
                skip();
        static const struct {
                size_t at;
                const char *text;
                size_t bytes;
                int error;
                const char *says;
        } rows[] = {
                {124, "77777777777", 12, -ENODATA, "cut off"},
                {124, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12, -EBADMSG, "damaged"},
                {124, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, -EBADMSG, "damaged"},
                {124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, -EBADMSG, "damaged"},
                {124, "-1", 3, -EBADMSG, "damaged"},
                {124, "1x", 3, -EBADMSG, "damaged"},
                {156, "S", 1, -ENOTSUP, "sparse"},
                {156, "x", 1, -EBADMSG, "damaged"},
                {156, "5", 1, -EBADMSG, "damaged"}, /* then its data are read as a header */
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct files f = files_new();
                struct tarball *t = tar_new();
                tar_picture(t, "0.png", 1);
                memcpy(t->data + rows[i].at, rows[i].text, rows[i].bytes);
                tar_sum(t->data);
                tar_end(t);
                tar_put(&f, "a.tar", t);
                refused(&f, "a.tar", NULL, rows[i].error, rows[i].says);
                files_free(&f);
        }
}

static void test_hostile_pax(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_JANSSON))
                skip();
        static const char *const records[] = {
                "99999 path=x\n",
                "4 a\n",
                "9 path=x",
                "0 a=b\n",
                "18446744073709551616 a=b\n",
                "6 a b\n",
                "path=x\n",
                "17 size=99999999\n\n",
                "29 size=99999999999999999999\n",
                "22 GNU.sparse.major=1\n",
                "12 size=abc\n",
        };
        for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
                struct files f = files_new();
                struct tarball *t = tar_new();
                tar_add(t, "pax", 'x', records[i], strlen(records[i]));
                tar_picture(t, "0.png", 1);
                tar_end(t);
                tar_put(&f, "a.tar", t);
                struct loaded *l = loaded_open(&f, "a.tar", NULL);
                if (l->error >= 0 || !*l->why)
                        fail_msg("taken: %s", records[i]);
                loaded_free(l);
                files_free(&f);
        }
}

static void test_not_a_tar(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_JANSSON))
                skip();
        struct files f = files_new();
        struct tarball *t = tar_new();
        tar_text(t, "readme.txt", "no pictures");
        tar_end(t);
        tar_put(&f, "a.tar", t);
        refused(&f, "a.tar", NULL, -ENODATA, "no pictures");
        files_text(&f, "b.tar", "short");
        refused(&f, "b.tar", NULL, -ENODATA, "cut off");
        files_put(&f, "c.tar", "", 0);
        refused(&f, "c.tar", NULL, -ENODATA, "no pictures");
        files_text(&f, "d.tar.gz", "\x1f\x8b");
        refused(&f, "d.tar.gz", NULL, -ENOTSUP, "gunzip");
        files_free(&f);
}

static void test_label_texts(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int32_t label;
        } rows[] = {
                {"5", 5},
                {"  12\r\n", 12},
                {"-1", -1},
                {"", AFZ_LABEL_NONE},
                {"x", AFZ_LABEL_NONE},
                {"5 5", AFZ_LABEL_NONE},
                {"1.5", AFZ_LABEL_NONE},
                {"99999999999", AFZ_LABEL_NONE},
                {"2147483647", INT32_MAX},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                assert_int_equal(afz_label_of_text(rows[i].text, strlen(rows[i].text)),
                                 rows[i].label);
#if AFZ_HAVE_JANSSON
        static const struct {
                const char *text;
                int32_t label;
        } jsons[] = {
                {"{\"label\":3}", 3},
                {"{\"cls\":4}", 4},
                {"{\"class\":5,\"x\":[]}", 5},
                {"6", 6},
                {"{\"label\":\"dog\"}", AFZ_LABEL_NONE},
                {"{\"label\":1.5}", AFZ_LABEL_NONE},
                {"{", AFZ_LABEL_NONE},
                {"{}", AFZ_LABEL_NONE},
                {"{\"label\":99999999999}", AFZ_LABEL_NONE},
        };
        for (size_t i = 0; i < sizeof jsons / sizeof *jsons; i++)
                assert_int_equal(afz_label_of_json(jsons[i].text, strlen(jsons[i].text)),
                                 jsons[i].label);
#endif
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_label_texts),     cmocka_unit_test(test_samples_and_labels),
                cmocka_unit_test(test_shards),          cmocka_unit_test(test_cut_off),
                cmocka_unit_test(test_hostile_headers), cmocka_unit_test(test_hostile_pax),
                cmocka_unit_test(test_not_a_tar),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
