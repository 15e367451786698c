#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "source_impl.h"

struct whole_source {
        struct afz_source base;
        double *as_double;
        float *as_float;
};

static int drawn_read(struct afz_source *source, uint64_t sample, float *pixels, uint8_t *label)
{
        afz_digit_draw(source->seed, AFZ_DIGITS_TRAINING, sample, pixels);
        *label = afz_digit_label(sample);
        return 0;
}

static void drawn_free(struct afz_source *source)
{
        free(source);
}

int afz_source_new_drawn(uint64_t seed, uint64_t samples, struct afz_source **ret)
{
        static const struct afz_source_ops ops = {.read = drawn_read, .free = drawn_free};
        struct afz_source *source = malloc(sizeof(*source));

        if (!source)
                return -ENOMEM;
        *source = (struct afz_source){.ops = &ops, .seed = seed, .samples = samples};
        *ret = source;
        return 0;
}

static int whole_read(struct afz_source *source, uint64_t sample, float *pixels, uint8_t *label)
{
        const struct whole_source *whole = (const struct whole_source *)source;

        memcpy(pixels, &whole->as_float[sample * AFZ_DIGIT_PIXELS],
               AFZ_DIGIT_PIXELS * sizeof(*pixels));
        *label = afz_digit_label(sample);
        return 0;
}

static void whole_free(struct afz_source *source)
{
        struct whole_source *whole = (struct whole_source *)source;

        free(whole->as_float);
        free(whole->as_double);
        free(whole);
}

static int load_as_double(struct whole_source *whole, const volatile sig_atomic_t *stop)
{
        float pixels[AFZ_DIGIT_PIXELS];

        whole->as_double =
                reallocarray(NULL, whole->base.samples, AFZ_DIGIT_PIXELS * sizeof(double));
        if (!whole->as_double)
                return -ENOMEM;
        for (uint64_t i = 0; i < whole->base.samples; i++) {
                double *row = &whole->as_double[i * AFZ_DIGIT_PIXELS];

                if (*stop)
                        return -EINTR;
                afz_digit_draw(whole->base.seed, AFZ_DIGITS_TRAINING, i, pixels);
                for (size_t j = 0; j < AFZ_DIGIT_PIXELS; j++)
                        row[j] = (double)pixels[j];
        }
        return 0;
}

static int copy_to_float(struct whole_source *whole)
{
        const uint64_t values = whole->base.samples * AFZ_DIGIT_PIXELS;

        whole->as_float = reallocarray(NULL, values, sizeof(float));
        if (!whole->as_float)
                return -ENOMEM;
        for (uint64_t i = 0; i < values; i++)
                whole->as_float[i] = (float)whole->as_double[i];
        return 0;
}

int afz_source_new_whole(uint64_t seed, uint64_t samples, const volatile sig_atomic_t *stop,
                         struct afz_source **ret)
{
        static const struct afz_source_ops ops = {.read = whole_read, .free = whole_free};
        struct whole_source *whole = malloc(sizeof(*whole));
        int rc;

        if (!whole)
                return -ENOMEM;
        *whole = (struct whole_source){.base = {.ops = &ops, .seed = seed, .samples = samples}};
        rc = load_as_double(whole, stop);
        if (rc == 0)
                rc = copy_to_float(whole);
        if (rc < 0) {
                whole_free(&whole->base);
                return rc;
        }
        *ret = &whole->base;
        return 0;
}

struct afz_source *afz_source_free(struct afz_source *source)
{
        if (source)
                source->ops->free(source);
        return NULL;
}

int afz_source_read(struct afz_source *source, uint64_t sample, float *pixels, uint8_t *label)
{
        return source->ops->read(source, sample, pixels, label);
}

uint64_t afz_source_samples(const struct afz_source *source)
{
        return source->samples;
}
