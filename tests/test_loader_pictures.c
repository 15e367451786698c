/* Folders and tar files of pictures: what comes out of them, and what does not. */
#include <math.h>

#include "picture_files.h"
#include "resample.h"

static struct afz_loader_options size_of(uint32_t width, uint32_t height)
{
        return (struct afz_loader_options){.image = {.width = width, .height = height}};
}

/* ---- resampling ---- */

/* The same by the definition, in one go. */
static double by_hand(const uint8_t *rows, uint32_t width, uint32_t height, uint32_t out_width,
                      uint32_t out_height, uint32_t x, uint32_t y, int c)
{
        double across = (double)width / out_width, down = (double)height / out_height, sum = 0,
               all = 0;
        for (uint32_t v = 0; v < height; v++)
                for (uint32_t u = 0; u < width; u++) {
                        double h = fabs(u + 0.5 - (x + 0.5) * across) / (across > 1 ? across : 1);
                        double w = fabs(v + 0.5 - (y + 0.5) * down) / (down > 1 ? down : 1);
                        double weight = h < 1 && w < 1 ? (1 - h) * (1 - w) : 0;
                        sum += weight * rows[((size_t)v * width + u) * 4 + (size_t)c];
                        all += weight;
                }
        return sum / all;
}

static void test_resampling(void **state)
{
        (void)state;
        static const uint32_t sizes[][4] = {
                {7, 5, 7, 5},  {8, 8, 4, 4},   {9, 7, 4, 3},   {3, 3, 8, 9},     {1, 1, 5, 5},
                {40, 1, 3, 7}, {2, 30, 5, 4},  {3, 300, 2, 4}, {200, 333, 3, 5}, {31, 17, 30, 16},
                {5, 5, 1, 1},  {64, 48, 7, 5}, {6, 9, 9, 6},   {100, 2, 99, 3},
        };
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                uint32_t w = sizes[i][0], h = sizes[i][1], ow = sizes[i][2], oh = sizes[i][3];
                uint8_t *rows = malloc((size_t)w * h * 4), *out = malloc((size_t)ow * oh * 3);
                uint8_t *memory = aligned_alloc(64, afz_resample_bytes(ow, oh));
                for (size_t k = 0; k < (size_t)w * h * 4; k++)
                        rows[k] = (uint8_t)(k * k * 31 + k * 7);
                for (int flip = 0; flip < 2; flip++) {
                        struct afz_resample r = {.in_width = w,
                                                 .in_height = h,
                                                 .out_width = ow,
                                                 .out_height = oh,
                                                 .is_flipped = flip};
                        afz_resample_start(&r, memory, out);
                        uint32_t y = 0;
                        while (afz_resample_row(&r, rows + (size_t)y * w * 4))
                                assert_true(++y < h);
                        for (size_t k = 0; k < (size_t)ow * oh * 3; k++) {
                                uint32_t x = (uint32_t)(k / 3 % ow);
                                double want = by_hand(rows, w, h, ow, oh, flip ? ow - 1 - x : x,
                                                      (uint32_t)(k / 3 / ow), (int)(k % 3));
                                if (fabs(want - out[k]) > 3)
                                        fail_msg("%ux%u to %ux%u at %zu: %d for %g", w, h, ow, oh,
                                                 k, out[k], want);
                        }
                }
                free(rows), free(out), free(memory);
        }
}

/* ---- folders ---- */

static void put_picture(const struct files *f, const char *name, struct picture p)
{
        files_put(f, name, p.data, p.bytes);
        free(p.data);
}

static int64_t label_at(const struct loaded *l, size_t i)
{
        int64_t label;
        memcpy(&label, l->field[1] + i * sizeof label, sizeof label);
        return label;
}

static const uint8_t *at(const struct loaded *l, size_t i, size_t x, size_t y)
{
        const uint64_t *shape = l->dataset.field[0].shape; /* height, width, 3 */
        return l->field[0] + ((i * shape[0] + y) * shape[1] + x) * 3;
}

static void near(const uint8_t *got, int red, int green, int blue)
{
        const int want[3] = {red, green, blue};
        for (int c = 0; c < 3; c++)
                if (abs(got[c] - want[c]) > 8)
                        fail_msg("%d %d %d instead of %d %d %d", got[0], got[1], got[2], red, green,
                                 blue);
}

static void test_class_folders(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        put_picture(&f, "set/dogs/b.png", png_new(64, 64, 20, false));
        put_picture(&f, "set/dogs/a.JPG", jpeg_new(640, 320, 10, false));
        put_picture(&f, "set/ants/x.jpeg", jpeg_new(33, 77, 30, true));
        put_picture(&f, "set/ants/y.png", png_new(50, 20, 40, true));
        files_text(&f, "set/ants/readme.txt", "not a picture");
        put_picture(&f, "set/.hidden/z.png", png_new(8, 8, 50, false));
        struct afz_loader_options o = size_of(32, 16);
        struct loaded *l = loaded_all(&f, "set", &o);
        assert_string_equal(l->dataset.format->name, "folder");
        assert_int_equal(l->dataset.samples, 4);
        assert_int_equal(l->bads, 0);
        static const int blue[] = {30, 40, 10, 20};
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(label_at(l, i), i / 2);
                assert_int_equal(l->dataset.field[0].shape[0], 16);
                assert_true(abs(at(l, i, 16, 8)[2] - blue[i]) <= 8);
        }
        near(at(l, 2, 0, 0), 4, 8, 10); /* of 640 x 320: all of it */
        near(at(l, 2, 31, 15), 251, 247, 10);
        near(at(l, 3, 0, 0), 4, 66, 20); /* of 64 x 64: the middle half */
        near(at(l, 3, 31, 15), 251, 188, 20);
        loaded_free(l);
        files_free(&f);
}

static void test_same_size(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        put_picture(&f, "set/a.png", png_new(20, 10, 1, false));
        put_picture(&f, "set/b.png", png_new(20, 10, 2, false));
        put_picture(&f, "set/c.png", png_new(21, 10, 3, false));
        struct loaded *l = loaded_all(&f, "set", NULL);
        assert_int_equal(l->dataset.fields, 1);
        assert_int_equal(l->bads, 1);
        assert_int_equal(l->bad[2], 1);
        assert_non_null(strstr(l->why, "it is 21 x 10 and the first one 20 x 10"));
        for (uint32_t y = 0; y < 10; y++)
                for (uint32_t x = 0; x < 20; x++) {
                        uint8_t want[3];
                        pixel_of(x, y, 20, 10, 2, want);
                        assert_memory_equal(at(l, 1, x, y), want, 3);
                }
        loaded_free(l);
        files_free(&f);
}

static void test_floats(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        put_picture(&f, "set/a.png", png_new(4, 3, 51, false));
        struct afz_loader_options o = {
                .image = {.is_float = 1, .mean = {0, 0.5f, 0.2f}, .deviation = {0.5f, 0.25f, 2}}};
        struct loaded *l = loaded_all(&f, "set", &o);
        assert_int_equal(l->dataset.field[0].dtype, AFZ_F32);
        const float *x = (const float *)(const void *)l->field[0];
        const uint64_t *shape = l->dataset.field[0].shape;
        assert_true(shape[0] == 3 && shape[1] == 3 && shape[2] == 4);
        for (int i = 0; i < 12; i++) {
                assert_true(fabsf(x[i] - (float)(255 * (i % 4) / 3) / 255 / 0.5f) < 1e-5f);
                assert_true(fabsf(x[12 + i] - ((float)(255 * (i / 4) / 2) / 255 - 0.5f) / 0.25f) <
                            1e-5f);
                assert_true(fabsf(x[24 + i]) < 1e-6f);
        }
        loaded_free(l);
        files_free(&f);
}

static void test_chance(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        char name[64];
        for (int i = 0; i < 16; i++) {
                snprintf(name, sizeof name, "set/%02d.jpg", i);
                put_picture(&f, name, jpeg_new(200, 150, 128, false));
        }
        struct afz_loader_options o = size_of(24, 24);
        o.image.is_random_crop = o.image.is_flipped = 1;
        o.image.jitter = 0.4f;
        struct loaded *l = loaded_all(&f, "set", &o);
        size_t bytes = 16 * l->dataset.field[0].bytes;
        uint8_t *first = malloc(bytes);
        memcpy(first, l->field[0], bytes);
        int flipped = 0, different = 0;
        for (size_t i = 0; i < 16; i++) {
                flipped += at(l, i, 0, 12)[0] > at(l, i, 23, 12)[0];
                different += memcmp(at(l, i, 0, 0), at(l, 0, 0, 0), l->dataset.field[0].bytes) != 0;
        }
        assert_in_range(flipped, 2, 14);
        assert_int_equal(different, 15);
        loaded_fill(l, 0, 2); /* another epoch */
        assert_memory_not_equal(first, l->field[0], bytes);
        memset(l->field[0], 0, bytes);
        loaded_fill(l, 1, 1); /* the same again */
        assert_memory_equal(first, l->field[0], bytes);
        free(first);
        loaded_free(l);
        files_free(&f);
}

/* Every one of these is bad, and those beside it are not. */
static void test_bad_pictures(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        struct picture jpeg = jpeg_new(300, 200, 9, false), png = png_new(300, 200, 9, false);
        struct picture slow = jpeg_new(300, 200, 9, true);
        files_put(&f, "set/a-good.jpg", jpeg.data, jpeg.bytes);
        files_put(&f, "set/b-cut.jpg", jpeg.data, jpeg.bytes / 2);
        files_put(&f, "set/c-head.jpg", jpeg.data, 20);
        files_put(&f, "set/d-cut.png", png.data, png.bytes / 2);
        files_put(&f, "set/e-slow-cut.jpg", slow.data, slow.bytes / 2);
        files_put(&f, "set/f-empty.jpg", "", 0);
        files_text(&f, "set/g-text.jpg", "this is a text and not a picture");
        memset(jpeg.data + jpeg.bytes / 2, 0xff, 64); /* markers where there should be data */
        files_put(&f, "set/h-hole.jpg", jpeg.data, jpeg.bytes);
        png.data[png.bytes / 2] ^= 0x55; /* its checksum is wrong */
        files_put(&f, "set/i-hole.png", png.data, png.bytes);
        assert_int_equal(mkfifo(files_path(&f, "set/j-pipe.jpg"), 0600), 0);
        assert_int_equal(symlink("/nowhere/at/all", files_path(&f, "set/k-link.jpg")), 0);
        put_picture(&f, "set/l-good.png", png_new(50, 50, 9, false));
        struct afz_loader_options o = size_of(16, 16);
        struct loaded *l = loaded_all(&f, "set", &o);
        for (size_t i = 0; i < 12; i++)
                if (l->bad[i] != (i > 0 && i < 11))
                        fail_msg("picture %zu: %d (%s)", i, l->bad[i], l->why);
        assert_non_null(strstr(l->why, "b-cut.jpg"));
        files_cut(&f, "set/a-good.jpg", 100); /* it shrinks while we look on */
        loaded_fill(l, 0, 1);
        assert_int_equal(l->bad[0], 1);
        loaded_free(l);
        free(jpeg.data), free(png.data), free(slow.data);
        files_free(&f);
}

/* A header that says more than there is, in every field that has a size. */
static void test_size_traps(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        struct picture jpeg = jpeg_new(64, 64, 9, false), png = png_new(64, 64, 9, false);
        for (size_t i = 0; i + 8 < jpeg.bytes; i++)
                if (jpeg.data[i] == 0xff &&
                    jpeg.data[i + 1] == 0xc0) /* start of frame: height and width */
                        memset(jpeg.data + i + 5, 0xff, 4);
        memset(png.data + 16, 0x7f, 8);
        files_put(&f, "set/a.jpg", jpeg.data, jpeg.bytes);
        files_put(&f, "set/b.png", png.data, png.bytes);
        struct afz_loader_options o = size_of(16, 16);
        struct loaded *l = loaded_all(&f, "set", &o);
        assert_int_equal(l->bads, 2);
        loaded_free(l);
        free(jpeg.data), free(png.data);
        files_free(&f);
}

/* What progressive JPEG takes at once is held to the budget, and said. */
static void test_progressive_memory(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        put_picture(&f, "set/a.jpg", jpeg_new(2000, 1500, 9, true));
        put_picture(&f, "set/b.jpg", jpeg_new(2000, 1500, 9, false));
        struct afz_loader_options o = size_of(16, 16);
        o.budget_bytes = 64 << 20;
        struct loaded *l = loaded_all(&f, "set", &o);
        assert_int_equal(l->bad[0], 1);
        assert_int_equal(l->bad[1], 0);
        assert_non_null(strstr(l->why, "progressive"));
        loaded_free(l);
        o.budget_bytes = UINT64_C(1) << 30;
        l = loaded_all(&f, "set", &o);
        assert_int_equal(l->bads, 0);
        loaded_free(l);
        files_free(&f);
}

/* A row of a very wide one takes memory that is not a thread's own, and there is one for all. */
static void test_wide_pictures(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        put_picture(&f, "set/a.jpg", jpeg_new(8000, 16, 9, false));
        put_picture(&f, "set/b.jpg", jpeg_new(65000, 16, 9, false));
        struct picture bad = jpeg_new(30000, 16, 9, false);
        files_put(&f, "set/c.jpg", bad.data, bad.bytes / 2);
        free(bad.data);
        struct afz_loader_options o = size_of(16, 16);
        o.budget_bytes = 64 << 20;
        struct loaded *l = loaded_all(&f, "set", &o);
        assert_int_equal(l->bads, 1);
        assert_int_equal(l->bad[2], 1);
        assert_true(l->dataset.index_bytes >= UINT64_C(65000) * 128);
        loaded_free(l);
        files_free(&f);
}

static void test_no_pictures(void **state)
{
        (void)state;
        if (!(AFZ_HAVE_LIBPNG && AFZ_HAVE_LIBJPEG))
                skip();
        struct files f = files_new();
        files_text(&f, "set/a/readme.txt", "nothing");
        struct afz_loader_options o = {.format = "folder"};
        refused(&f, "set", &o, -ENODATA, "there are no pictures");
        files_text(&f, "set/a/b.jpg", "nothing");
        refused(&f, "set", &o, -EBADMSG,
                "neither JPEG nor PNG"); /* no size is told, and the first has none */
        o.image.height = 3;
        refused(&f, "set", &o, -EINVAL, "a height and a width");
        o.image = (struct afz_image_options){.height = 1 << 20, .width = 1 << 20};
        refused(&f, "set", &o, -EFBIG, "the most");
        files_free(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_resampling),    cmocka_unit_test(test_class_folders),
                cmocka_unit_test(test_same_size),     cmocka_unit_test(test_floats),
                cmocka_unit_test(test_chance),        cmocka_unit_test(test_bad_pictures),
                cmocka_unit_test(test_size_traps),    cmocka_unit_test(test_progressive_memory),
                cmocka_unit_test(test_wide_pictures), cmocka_unit_test(test_no_pictures),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
