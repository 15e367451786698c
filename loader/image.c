#include "image.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "file.h"

enum {
        PIECE_BYTES = 128 << 10,                    /* most pictures are read in one */
        ROW_BYTES = 4 * (AFZ_IMAGE_SIDE_MAX + 256), /* JPEG gives whole blocks around a part */
        SMALL_BYTES = 1 << 20, /* what a decoder takes, and small pictures that have to be whole */
        LARGE_BYTES = 8 << 20, /* for one that is larger: 1900 x 1400, progressive */
        LARGER_BYTES = 64 << 20, /* 5500 x 4000 */
        PIXELS_MAX = 1 << 28,    /* more are a trap: no camera makes them */
        CROP_TRIES = 10,
};

static const uint64_t BUDGET_LARGE = UINT64_C(512) << 20; /* has room for larger ones */

/* ---- chance ---- */

enum purpose { FOR_CROP = 1, FOR_FLIP, FOR_BRIGHTNESS, FOR_CONTRAST, FOR_SATURATION };

static uint64_t mixed(uint64_t x)
{
        x += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        return x ^ x >> 31;
}

/* 0 to 1, without 1: a stream of its own for each purpose, so that one option moves no other's
 * dice. */
static double chance(uint64_t seed, enum purpose purpose, uint32_t turn)
{
        return (double)(mixed(mixed(seed ^ (uint64_t)purpose << 56) + turn) >> 11) * 0x1p-53;
}

/* ---- which part of a picture ---- */

/* The largest part in the middle that has the shape of what comes out. */
static void crop_middle(struct afz_image_job *job, uint32_t width, uint32_t height)
{
        uint64_t out_width = job->plan->options.width, out_height = job->plan->options.height;
        job->width = width, job->height = height;
        if (width * out_height > height * out_width)
                job->width = (uint32_t)((height * out_width + out_height / 2) / out_height);
        else
                job->height = (uint32_t)((width * out_height + out_width / 2) / out_width);
        job->width += job->width == 0, job->height += job->height == 0;
        job->x = (width - job->width) / 2, job->y = (height - job->height) / 2;
}

/* 8 to 100 % of the area, from 3:4 to 4:3, anywhere: what most people train with. */
static bool crop_random(struct afz_image_job *job, uint32_t width, uint32_t height)
{
        const double shape = log(4.0 / 3);
        for (uint32_t i = 0; i < CROP_TRIES; i++) {
                double area =
                        (double)width * height * (0.08 + 0.92 * chance(job->seed, FOR_CROP, 4 * i));
                double ratio = exp(shape * (2 * chance(job->seed, FOR_CROP, 4 * i + 1) - 1));
                double w = rint(sqrt(area * ratio)), h = rint(sqrt(area / ratio));
                if (w < 1 || h < 1 || w > width || h > height)
                        continue;
                job->width = (uint32_t)w, job->height = (uint32_t)h;
                job->x = (uint32_t)(chance(job->seed, FOR_CROP, 4 * i + 2) *
                                    (width - job->width + 1));
                job->y = (uint32_t)(chance(job->seed, FOR_CROP, 4 * i + 3) *
                                    (height - job->height + 1));
                return true;
        }
        return false;
}

int afz_image_size(struct afz_image_job *job, uint64_t width, uint64_t height)
{
        const struct afz_image_options *o = &job->plan->options;
        if (width == 0 || height == 0 || width > PIXELS_MAX || height > PIXELS_MAX ||
            width * height > PIXELS_MAX)
                return afz_why(job->why, -EBADMSG, "it says to be %llu x %llu, which no picture is",
                               (unsigned long long)width, (unsigned long long)height);
        job->width = (uint32_t)width, job->height = (uint32_t)height;
        job->x = job->y = 0;
        job->scale = 1;
        if (job->is_header_only)
                return 0;
        if (job->plan->is_same_size)
                return width == o->width && height == o->height
                               ? 0
                               : afz_why(job->why, -EBADMSG,
                                         "it is %u x %u and the first one %u x "
                                         "%u: " AFZ_IMAGE_GIVE_SIZE,
                                         job->width, job->height, o->width, o->height);
        if (!o->is_random_crop || !crop_random(job, job->width, job->height))
                crop_middle(job, (uint32_t)width, (uint32_t)height);
        while (job->scale < 8 && job->width / (job->scale * 2) >= o->width &&
               job->height / (job->scale * 2) >= o->height)
                job->scale *= 2;
        return 0;
}

int afz_image_begin(struct afz_image_job *job, uint32_t width, uint32_t height)
{
        const struct afz_image_options *o = &job->plan->options;
        if (width > AFZ_IMAGE_SIDE_MAX || height > AFZ_IMAGE_SIDE_MAX)
                return afz_why(job->why, -E2BIG, "it is %u x %u; %d is the most", width, height,
                               AFZ_IMAGE_SIDE_MAX);
        job->resample = (struct afz_resample){
                .in_width = width,
                .in_height = height,
                .out_width = o->width,
                .out_height = o->height,
                .is_flipped = o->is_flipped && chance(job->seed, FOR_FLIP, 0) < 0.5,
        };
        afz_resample_start(&job->resample, job->memory, job->rgb);
        return 0;
}

/* ---- what is done to it ---- */

static uint8_t clamped(float value)
{
        return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5f);
}

static float grey(const float rgb[3])
{
        return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

static float factor(const struct afz_image_job *job, enum purpose purpose)
{
        float jitter = job->plan->options.jitter;
        float low = jitter > 1 ? 0 : 1 - jitter;
        return low + (1 + jitter - low) * (float)chance(job->seed, purpose, 0);
}

static void jitter(const struct afz_image_job *job, uint64_t pixels)
{
        float light = factor(job, FOR_BRIGHTNESS), contrast = factor(job, FOR_CONTRAST);
        float colour = factor(job, FOR_SATURATION);
        float lit[256], rgb[3];
        double sum = 0;
        for (int i = 0; i < 256; i++)
                lit[i] = clamped((float)i * light);
        for (uint64_t i = 0; i < pixels; i++) {
                const uint8_t *p = job->rgb + 3 * i;
                sum += grey((float[3]){lit[p[0]], lit[p[1]], lit[p[2]]});
        }
        float mean = (float)(sum / (double)pixels);
        for (uint64_t i = 0; i < pixels; i++) {
                uint8_t *p = job->rgb + 3 * i;
                for (int c = 0; c < 3; c++)
                        rgb[c] = clamped(mean + (lit[p[c]] - mean) * contrast);
                float g = grey(rgb);
                for (int c = 0; c < 3; c++)
                        p[c] = clamped(g + (rgb[c] - g) * colour);
        }
}

static void put_floats(const struct afz_image_job *job, uint64_t pixels, uint8_t *to)
{
        for (uint64_t c = 0; c < 3; c++) {
                const float *table = job->plan->table[c];
                const uint8_t *from = job->rgb + c;
                uint8_t *plane = to + c * pixels * sizeof(float);
                for (uint64_t i = 0; i < pixels; i++)
                        memcpy(plane + i * sizeof(float), &table[from[3 * i]], sizeof(float));
        }
}

/* ---- reading ---- */

uint64_t afz_image_more(struct afz_image_source *source)
{
        uint64_t bytes = source->left < source->scratch->raw_bytes ? source->left
                                                                   : source->scratch->raw_bytes;
        source->have_bytes = 0;
        if (bytes == 0 || source->error < 0)
                return 0;
        source->error = afz_dataset_read(source->fd, source->scratch->raw, bytes, source->at,
                                         source->scratch);
        if (source->error < 0)
                return 0;
        source->at += bytes, source->left -= bytes;
        source->have = source->scratch->raw, source->have_bytes = bytes;
        return bytes;
}

static int decode(struct afz_image_job *job)
{
        static const uint8_t jpeg[] = {0xff, 0xd8, 0xff},
                             png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
        struct afz_image_source *s = job->source;
        if (s->have_bytes == 0 && afz_image_more(s) == 0)
                return s->error < 0 ? afz_why(job->why, s->error, "%s", afz_error_text(s->error))
                                    : afz_why(job->why, -EBADMSG, "it is empty");
        if (s->have_bytes >= sizeof jpeg && memcmp(s->have, jpeg, sizeof jpeg) == 0)
                return afz_jpeg_decode(job);
        if (s->have_bytes >= sizeof png && memcmp(s->have, png, sizeof png) == 0)
                return afz_png_decode(job);
        return afz_why(job->why, -EBADMSG, "it is neither JPEG nor PNG, whatever its name says");
}

static uint64_t aligned(uint64_t bytes)
{
        return (bytes + 63) & ~UINT64_C(63);
}

static uint64_t rgb_bytes(const struct afz_image_plan *plan)
{
        return (uint64_t)plan->options.width * plan->options.height * 3;
}

/* A picture that has to be whole before its first row is there, and is large: one at a time. */
static int decode_large(struct afz_image_plan *plan, struct afz_image_job *job)
{
        pthread_mutex_lock(&plan->large);
        job->heap_bytes = plan->large_bytes;
        int r = decode(job);
        pthread_mutex_unlock(&plan->large);
        return r;
}

int afz_image_load(struct afz_image_plan *plan, struct afz_image_source *source, uint64_t sample,
                   uint64_t draw, uint8_t *to, char why[AFZ_WHY_MAX])
{
        const struct afz_image_source again = *source;
        uint64_t pixels = (uint64_t)plan->options.width * plan->options.height;
        uint8_t *memory = source->scratch->decode;
        struct afz_image_job job = {
                .plan = plan,
                .source = source,
                .seed = mixed(draw) ^ mixed(~sample),
                .heap_bytes = SMALL_BYTES,
                .row = memory,
                .memory = memory + ROW_BYTES,
                .why = why,
        };
        memory = job.memory + afz_resample_bytes(plan->options.width, plan->options.height);
        job.rgb = plan->options.is_float ? memory : to;
        int r = decode(&job);
        if (r == -EFBIG) {
                *source = again;
                r = decode_large(plan, &job);
        }
        if (r < 0)
                return r;
        if (plan->options.jitter > 0)
                jitter(&job, pixels);
        if (plan->options.is_float)
                put_floats(&job, pixels, to);
        return 0;
}

/* ---- at open ---- */

static int first_size(struct afz_image_source *first, struct afz_image_plan *plan,
                      char why[AFZ_WHY_MAX])
{
        struct afz_image_job job = {.plan = plan,
                                    .source = first,
                                    .heap_bytes = SMALL_BYTES,
                                    .is_header_only = true,
                                    .why = why};
        int r = decode(&job);
        if (r < 0)
                return r;
        plan->options.width = job.width, plan->options.height = job.height;
        plan->is_same_size = !plan->options.is_random_crop;
        return 0;
}

int afz_image_plan(const struct afz_loader_options *options, struct afz_image_source *first,
                   struct afz_image_plan *ret, char why[AFZ_WHY_MAX])
{
        struct afz_image_plan plan = {.options = options->image};
        struct afz_image_options *o = &plan.options;
        plan.large_bytes = options->budget_bytes < BUDGET_LARGE ? LARGE_BYTES : LARGER_BYTES;
        if ((o->height == 0) != (o->width == 0))
                return afz_why(why, -EINVAL, "a height and a width are needed, or neither");
        if (!(o->jitter >= 0 && o->jitter <= 10))
                return afz_why(why, -EINVAL, "a jitter of %g: 0.4 is much already",
                               (double)o->jitter);
        int r = o->height == 0 ? first_size(first, &plan, why) : 0;
        if (r < 0)
                return r;
        if (o->height > AFZ_IMAGE_SIDE_MAX || o->width > AFZ_IMAGE_SIDE_MAX)
                return afz_why(why, -EFBIG, "pictures of %u x %u: %d is the most", o->width,
                               o->height, AFZ_IMAGE_SIDE_MAX);
        for (int c = 0; c < 3; c++) {
                float deviation = o->deviation[c] != 0 ? o->deviation[c] : 1;
                for (int i = 0; i < 256; i++)
                        plan.table[c][i] = ((float)i / 255 - o->mean[c]) / deviation;
        }
        *ret = plan;
        return -pthread_mutex_init(&ret->large, NULL);
}

void afz_image_describe(const struct afz_image_plan *plan, struct afz_dataset *dataset)
{
        const struct afz_image_options *o = &plan->options;
        struct afz_field *field = &dataset->field[0];
        *field = (struct afz_field){
                .name = "image", .dtype = o->is_float ? AFZ_F32 : AFZ_U8, .dimensions = 3};
        const uint64_t bytes[] = {o->height, o->width, 3}, floats[] = {3, o->height, o->width};
        memcpy(field->shape, o->is_float ? floats : bytes, sizeof bytes);
        field->bytes = rgb_bytes(plan) * afz_dtype_bytes(field->dtype);
        dataset->fields = 1;
        dataset->raw_bytes = PIECE_BYTES;
        dataset->decode_bytes = ROW_BYTES + afz_resample_bytes(o->width, o->height) +
                                (o->is_float ? aligned(rgb_bytes(plan)) : 0);
        dataset->heap_bytes = SMALL_BYTES;
        dataset->index_bytes += plan->large_bytes; /* set aside: there is one for all threads */
}

bool afz_image_is_name(const char *name)
{
        static const char *const endings[] = {".jpg", ".jpeg", ".png"};
        size_t length = strlen(name);
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
                size_t n = strlen(endings[i]);
                if (length > n && strcasecmp(name + length - n, endings[i]) == 0)
                        return true;
        }
        return false;
}

void afz_image_why(char why[AFZ_WHY_MAX], const char *path, const char *name, const char *clause)
{
        afz_why(why, 0, "%.150s: the picture %.150s cannot be read: %.150s", path, name, clause);
}
