/* JPEG by libjpeg-turbo's own interface: of all there are, the one that decodes only the part that
 * is wanted, at a part of its size, in memory for a few rows. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "file.h"
#include "image.h"

#if AFZ_HAVE_LIBJPEG
#include <jerror.h>
#include <jpeglib.h>

enum {
        SCANS_MAX = 100, /* a progressive picture has some ten; a trap has thousands, each over all
                            of it */
        COLUMN_BYTES = 128, /* of a picture's whole width, that libjpeg takes: some rows of each
                               colour before and after they are brought to one size */
};

struct reader {
        struct jpeg_decompress_struct jpeg;
        struct jpeg_error_mgr errors;
        struct jpeg_source_mgr source;
        struct jpeg_progress_mgr progress;
        struct afz_image_job *job;
        jmp_buf out;
        int error;
};

static _Noreturn void give_up(struct reader *r, int error, const char *why)
{
        r->error = afz_why(r->job->why, error, "%s", why);
        longjmp(r->out, 1);
}

static void on_error(j_common_ptr jpeg)
{
        struct reader *r = jpeg->client_data;
        char text[JMSG_LENGTH_MAX];
        if (jpeg->err->msg_code == JERR_NO_BACKING_STORE ||
            jpeg->err->msg_code == JERR_OUT_OF_MEMORY) {
                r->error = afz_why(r->job->why, -EFBIG,
                                   "it is progressive, and takes more memory at once than the "
                                   "budget has for it "
                                   "(%llu bytes): a budget that is larger, or a picture that is "
                                   "not progressive, helps",
                                   (unsigned long long)r->job->heap_bytes);
                longjmp(r->out, 1);
        }
        jpeg->err->format_message(jpeg, text);
        give_up(r, -EBADMSG, text);
}

/* libjpeg warns and goes on with grey. A picture of which a part is gone is a bad one. */
static void on_message(j_common_ptr jpeg, int level)
{
        int code = jpeg->err->msg_code;
        if (level < 0 &&
            (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_JPEG_EOF ||
             code == JWRN_BOGUS_PROGRESSION || code == JWRN_NOT_SEQUENTIAL))
                give_up(jpeg->client_data, -EBADMSG, "a part of it is damaged or missing");
}

static void on_progress(j_common_ptr jpeg)
{
        if (jpeg->is_decompressor && ((j_decompress_ptr)jpeg)->input_scan_number > SCANS_MAX)
                give_up(jpeg->client_data, -EBADMSG, "it has more scans than any picture needs");
}

static void no_source(j_decompress_ptr jpeg)
{
        (void)jpeg;
}

static boolean fill_source(j_decompress_ptr jpeg)
{
        struct reader *r = jpeg->client_data;
        struct afz_image_source *s = r->job->source;
        if (afz_image_more(s) == 0)
                give_up(r, s->error < 0 ? s->error : -EBADMSG,
                        s->error < 0 ? afz_error_text(s->error) : "it ends in the middle");
        jpeg->src->next_input_byte = s->have;
        jpeg->src->bytes_in_buffer = s->have_bytes;
        return TRUE;
}

static void skip_source(j_decompress_ptr jpeg, long bytes)
{
        while (bytes > 0 && (unsigned long)bytes > jpeg->src->bytes_in_buffer) {
                bytes -= (long)jpeg->src->bytes_in_buffer;
                fill_source(jpeg);
        }
        if (bytes > 0) {
                jpeg->src->next_input_byte += bytes;
                jpeg->src->bytes_in_buffer -= (size_t)bytes;
        }
}

static void set_up(struct reader *r)
{
        r->jpeg.err = jpeg_std_error(&r->errors);
        r->errors.error_exit = on_error;
        r->errors.emit_message = on_message;
        r->jpeg.client_data = r;
        jpeg_create_decompress(&r->jpeg);
        r->jpeg.mem->max_memory_to_use = (long)r->job->heap_bytes;
        r->source = (struct jpeg_source_mgr){
                .next_input_byte = r->job->source->have,
                .bytes_in_buffer = r->job->source->have_bytes,
                .init_source = no_source,
                .fill_input_buffer = fill_source,
                .skip_input_data = skip_source,
                .resync_to_restart = jpeg_resync_to_restart,
                .term_source = no_source,
        };
        r->jpeg.src = &r->source;
        r->progress.progress_monitor = on_progress;
        r->jpeg.progress = &r->progress;
}

/* Adobe's programs write the four inks the wrong way round, and say that it was them. */
static void inks_to_rgb(const struct reader *r, uint8_t *row, uint32_t width)
{
        unsigned turn = r->jpeg.saw_Adobe_marker ? 0 : 255;
        for (uint32_t i = 0; i < width; i++, row += 4) {
                unsigned black = row[3] ^ turn;
                for (int c = 0; c < 3; c++)
                        row[c] = (uint8_t)((row[c] ^ turn) * black / 255);
        }
}

/* The part that is wanted in pixels of the scaled picture, and never an empty one. */
static void scaled(uint32_t *at, uint32_t *count, uint32_t scale, uint32_t all)
{
        *at /= scale;
        *count = *count / scale ? *count / scale : 1;
        if (*at >= all)
                *at = all - 1;
        if (*count > all - *at)
                *count = all - *at;
}

static void start(struct reader *r)
{
        struct afz_image_job *job = r->job;
        struct jpeg_decompress_struct *jpeg = &r->jpeg;
        bool is_inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
        jpeg->out_color_space = is_inks ? JCS_CMYK : JCS_EXT_RGBX;
        jpeg->scale_num = 1, jpeg->scale_denom = job->scale;
        /* Where pixels are averaged anyway, smooth colours between them are lost work. */
        jpeg->do_fancy_upsampling =
                job->scale == 1 && job->width < 2 * job->plan->options.width ? TRUE : FALSE;
        jpeg_start_decompress(jpeg);
        scaled(&job->x, &job->width, job->scale, jpeg->output_width);
        scaled(&job->y, &job->height, job->scale, jpeg->output_height);
}

static int read_rows(struct reader *r)
{
        struct afz_image_job *job = r->job;
        struct jpeg_decompress_struct *jpeg = &r->jpeg;
        start(r);
        JDIMENSION x = job->x, width = job->width;
        if (width < jpeg->output_width)
                jpeg_crop_scanline(jpeg, &x, &width); /* to whole blocks around it */
        int error = afz_image_begin(job, job->width, job->height);
        if (error < 0)
                return error;
        if (job->y > 0 && jpeg_skip_scanlines(jpeg, job->y) != job->y)
                return afz_why(job->why, -EBADMSG, "it has fewer rows than it says");
        for (bool is_more = true; is_more;) {
                JSAMPROW row = job->row;
                if (jpeg->output_scanline >= jpeg->output_height ||
                    jpeg_read_scanlines(jpeg, &row, 1) != 1)
                        return afz_why(job->why, -EBADMSG, "it has fewer rows than it says");
                uint8_t *wanted = job->row + 4 * (size_t)(job->x - x);
                if (jpeg->out_color_space == JCS_CMYK)
                        inks_to_rgb(r, wanted, job->width);
                is_more = afz_resample_row(&job->resample, wanted);
        }
        return 0;
}

/* libjpeg's own limit is for pictures that it holds as a whole, not for rows. */
static int check_width(const struct reader *r)
{
        uint64_t bytes = (uint64_t)r->jpeg.image_width * COLUMN_BYTES;
        return bytes <= r->job->heap_bytes
                       ? 0
                       : afz_why(r->job->why, -EFBIG,
                                 "its rows of %u pixels take more memory than the budget has for "
                                 "them (%llu bytes)",
                                 r->jpeg.image_width, (unsigned long long)r->job->heap_bytes);
}

int afz_jpeg_decode(struct afz_image_job *job)
{
        struct reader r = {.job = job};
        if (setjmp(r.out) == 0) {
                set_up(&r);
                jpeg_read_header(&r.jpeg, TRUE);
                r.error = afz_image_size(job, r.jpeg.image_width, r.jpeg.image_height);
                if (r.error == 0 && !job->is_header_only)
                        r.error = check_width(&r);
                if (r.error == 0 && !job->is_header_only)
                        r.error = read_rows(&r);
        }
        jpeg_destroy_decompress(&r.jpeg);
        return r.error;
}
#else
int afz_jpeg_decode(struct afz_image_job *job)
{
        return afz_why_left_out(job->why, "a JPEG", "libjpeg-turbo", "libjpeg-dev");
}
#endif
