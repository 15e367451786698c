#ifndef AFZ_PICTURE_FILES_H
#define AFZ_PICTURE_FILES_H
/* Pictures and tar files that a test makes. */
#include "config.h"
#include "loader_files.h"

#if AFZ_HAVE_LIBJPEG
#include <jpeglib.h>
#endif
#if AFZ_HAVE_LIBPNG
#include <png.h>
#endif

enum { PICTURE_MAX = 1 << 20 };

struct picture {
        uint8_t *data;
        size_t bytes;
};

/* Red grows to the right, green downwards, blue is the same everywhere. */
static inline void pixel_of(uint32_t x, uint32_t y, uint32_t width, uint32_t height, uint8_t blue,
                            uint8_t ret[3])
{
        ret[0] = (uint8_t)(width > 1 ? 255 * x / (width - 1) : 0);
        ret[1] = (uint8_t)(height > 1 ? 255 * y / (height - 1) : 0);
        ret[2] = blue;
}

static inline uint8_t *pixels_new(uint32_t width, uint32_t height, uint8_t blue)
{
        uint8_t *rgb = malloc((size_t)width * height * 3);
        assert_non_null(rgb);
        for (uint32_t y = 0; y < height; y++)
                for (uint32_t x = 0; x < width; x++)
                        pixel_of(x, y, width, height, blue, rgb + ((size_t)y * width + x) * 3);
        return rgb;
}

static inline struct picture jpeg_new(uint32_t width, uint32_t height, uint8_t blue,
                                      bool is_progressive)
{
        struct picture p = {0};
#if AFZ_HAVE_LIBJPEG
        struct jpeg_compress_struct jpeg;
        struct jpeg_error_mgr errors;
        unsigned long bytes = 0;
        uint8_t *rgb = pixels_new(width, height, blue);
        jpeg.err = jpeg_std_error(&errors);
        jpeg_create_compress(&jpeg);
        jpeg_mem_dest(&jpeg, &p.data, &bytes);
        jpeg.image_width = width, jpeg.image_height = height;
        jpeg.input_components = 3, jpeg.in_color_space = JCS_RGB;
        jpeg_set_defaults(&jpeg);
        jpeg_set_quality(&jpeg, 95, TRUE);
        if (is_progressive)
                jpeg_simple_progression(&jpeg);
        jpeg_start_compress(&jpeg, TRUE);
        while (jpeg.next_scanline < height) {
                JSAMPROW row = rgb + (size_t)jpeg.next_scanline * width * 3;
                jpeg_write_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_compress(&jpeg);
        jpeg_destroy_compress(&jpeg);
        free(rgb);
        p.bytes = bytes;
#else
        (void)width, (void)height, (void)blue, (void)is_progressive;
        p = (struct picture){.data = calloc(1, 1024), .bytes = 1024};
#endif
        return p;
}

#if AFZ_HAVE_LIBPNG
static inline void png_put(png_structp png, png_bytep data, size_t bytes)
{
        struct picture *p = png_get_io_ptr(png);
        assert_true(p->bytes + bytes <= PICTURE_MAX);
        memcpy(p->data + p->bytes, data, bytes);
        p->bytes += bytes;
}
#endif

static inline struct picture png_new(uint32_t width, uint32_t height, uint8_t blue,
                                     bool is_interlaced)
{
        struct picture p = {0};
#if AFZ_HAVE_LIBPNG
        uint8_t *rgb = pixels_new(width, height, blue);
        png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
        png_infop info = png_create_info_struct(png);
        p.data = malloc(PICTURE_MAX);
        assert_non_null(p.data);
        png_set_write_fn(png, &p, png_put, NULL);
        png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB,
                     is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
        png_write_info(png, info);
        int passes = png_set_interlace_handling(png);
        for (int pass = 0; pass < passes; pass++)
                for (uint32_t y = 0; y < height; y++)
                        png_write_row(png, rgb + (size_t)y * width * 3);
        png_write_end(png, info);
        png_destroy_write_struct(&png, &info);
        free(rgb);
#else
        (void)width, (void)height, (void)blue, (void)is_interlaced;
        p = (struct picture){.data = calloc(1, 1024), .bytes = 1024};
#endif
        return p;
}

/* ---- tar ---- */

enum { TAR_MAX = 4 << 20 };

struct tarball {
        uint8_t *data;
        size_t bytes;
};

static inline struct tarball *tar_new(void)
{
        struct tarball *t = calloc(1, sizeof *t);
        assert_non_null(t);
        t->data = calloc(1, TAR_MAX);
        assert_non_null(t->data);
        return t;
}

static inline void tar_free(struct tarball *t)
{
        free(t->data), free(t);
}

static inline void tar_sum(uint8_t *header)
{
        unsigned sum = 0;
        memset(header + 148, ' ', 8);
        for (int i = 0; i < 512; i++)
                sum += header[i];
        snprintf((char *)header + 148, 8, "%06o", sum);
}

static inline void tar_add(struct tarball *t, const char *name, char type, const void *data,
                           size_t bytes)
{
        uint8_t header[512] = {0};
        size_t blocks = (bytes + 511) / 512 * 512;
        assert_true(t->bytes + 512 + blocks <= TAR_MAX);
        memcpy(header, name, strlen(name) < 100 ? strlen(name) : 100);
        snprintf((char *)header + 100, 8, "0000644");
        for (size_t i = 11, left = bytes; i-- > 0; left >>= 3)
                header[124 + i] = (uint8_t)('0' + (left & 7));
        header[156] = (uint8_t)type;
        memcpy(header + 257,
               "ustar\0"
               "00",
               8);
        tar_sum(header);
        memcpy(t->data + t->bytes, header, sizeof header);
        memset(t->data + t->bytes + 512, 0, blocks);
        memcpy(t->data + t->bytes + 512, data, bytes);
        t->bytes += 512 + blocks;
}

static inline void tar_text(struct tarball *t, const char *name, const char *text)
{
        tar_add(t, name, '0', text, strlen(text));
}

static inline void tar_end(struct tarball *t)
{
        assert_true(t->bytes + 1024 <= TAR_MAX);
        memset(t->data + t->bytes, 0, 1024);
        t->bytes += 1024;
}

#endif
