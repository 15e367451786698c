/* PNG by libpng, row by row. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "file.h"
#include "image.h"

#if AFZ_HAVE_LIBPNG
#include <png.h>

struct reader {
        png_structp png;
        png_infop info;
        struct afz_image_job *job;
        uint8_t *whole;
        jmp_buf out;
        int error;
};

static _Noreturn void give_up(struct reader *r, int error, const char *why)
{
        r->error = afz_why(r->job->why, error, "%s", why);
        longjmp(r->out, 1);
}

static _Noreturn void on_error(png_structp png, png_const_charp text)
{
        give_up(png_get_error_ptr(png), -EBADMSG, text);
}

static void on_warning(png_structp png, png_const_charp text)
{
        (void)png, (void)text;
}

static void on_read(png_structp png, png_bytep to, size_t bytes)
{
        struct reader *r = png_get_io_ptr(png);
        struct afz_image_source *s = r->job->source;
        while (bytes > 0) {
                if (s->have_bytes == 0 && afz_image_more(s) == 0)
                        give_up(r, s->error < 0 ? s->error : -EBADMSG,
                                s->error < 0 ? afz_error_text(s->error) : "it ends in the middle");
                size_t n = bytes < s->have_bytes ? bytes : (size_t)s->have_bytes;
                memcpy(to, s->have, n);
                to += n, bytes -= n;
                s->have += n, s->have_bytes -= n;
        }
}

static int read_rows(struct reader *r, uint32_t height)
{
        struct afz_image_job *job = r->job;
        bool is_more = true;
        for (uint32_t y = 0; y < height && is_more; y++) {
                png_read_row(r->png, job->row, NULL);
                if (y >= job->y)
                        is_more = afz_resample_row(&job->resample, job->row + 4 * (size_t)job->x);
        }
        return is_more ? afz_why(job->why, -EBADMSG, "it has fewer rows than it says") : 0;
}

/* Its rows come in seven passes over the whole picture, which has to stay until the last. */
static int read_interlaced(struct reader *r, int passes, uint32_t width, uint32_t height)
{
        struct afz_image_job *job = r->job;
        size_t row = (size_t)width * 4;
        if (row * height > job->heap_bytes)
                return afz_why(job->why, -EFBIG,
                               "it is interlaced, which takes %zu bytes at once, and the budget "
                               "has %llu for it: a "
                               "larger one, or a PNG that is not interlaced, helps",
                               row * height, (unsigned long long)job->heap_bytes);
        r->whole = calloc(height, row);
        if (!r->whole)
                return afz_why(job->why, -ENOMEM, "%s", afz_error_text(-ENOMEM));
        for (int pass = 0; pass < passes; pass++)
                for (uint32_t y = 0; y < height; y++)
                        png_read_row(r->png, r->whole + y * row, NULL);
        for (uint32_t y = job->y; y < height; y++)
                if (!afz_resample_row(&job->resample, r->whole + y * row + 4 * (size_t)job->x))
                        return 0;
        return afz_why(job->why, -EBADMSG, "it has fewer rows than it says");
}

/* Whatever it is, rows of red, green, blue and a byte that counts for nothing. */
static int set_colours(struct reader *r)
{
        png_set_expand(r->png);
        png_set_scale_16(r->png);
        png_set_gray_to_rgb(r->png);
        png_set_strip_alpha(r->png);
        png_set_filler(r->png, 0xff, PNG_FILLER_AFTER);
        int passes = png_set_interlace_handling(r->png);
        png_read_update_info(r->png, r->info);
        return passes;
}

static int read_all(struct reader *r)
{
        struct afz_image_job *job = r->job;
        png_set_user_limits(r->png, AFZ_IMAGE_SIDE_MAX, INT32_MAX);
        png_set_chunk_malloc_max(r->png, job->heap_bytes / 2);
        png_set_chunk_cache_max(r->png, 16);
        png_set_read_fn(r->png, r, on_read);
        png_read_info(r->png, r->info);
        uint32_t width = png_get_image_width(r->png, r->info),
                 height = png_get_image_height(r->png, r->info);
        int error = afz_image_size(job, width, height);
        if (error < 0 || job->is_header_only)
                return error;
        int passes = set_colours(r);
        if (png_get_rowbytes(r->png, r->info) != (size_t)width * 4)
                return afz_why(job->why, -EBADMSG, "its colours are of a kind that is not known");
        error = afz_image_begin(job, job->width, job->height);
        if (error < 0)
                return error;
        return passes > 1 ? read_interlaced(r, passes, width, height) : read_rows(r, height);
}

int afz_png_decode(struct afz_image_job *job)
{
        struct reader r = {.job = job};
        r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
        r.info = r.png ? png_create_info_struct(r.png) : NULL;
        if (!r.info)
                r.error = afz_why(job->why, -ENOMEM, "%s", afz_error_text(-ENOMEM));
        else if (setjmp(r.out) == 0)
                r.error = read_all(&r);
        png_destroy_read_struct(&r.png, &r.info, NULL);
        free(r.whole);
        return r.error;
}
#else
int afz_png_decode(struct afz_image_job *job)
{
        return afz_why_left_out(job->why, "a PNG", "libpng", "libpng-dev");
}
#endif
