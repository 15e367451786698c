#ifndef AFZ_IMAGE_H
#define AFZ_IMAGE_H
/* Pictures: JPEG and PNG as they come, decoded row by row into the size that is wanted.
 *
 * A picture is read in pieces and leaves in pieces: whatever its size, it takes the same memory,
 * but for progressive JPEG and interlaced PNG, which have no rows before their end. Those are held
 * to what is set aside for them (plan->large_bytes), one at a time where they are large.
 *
 * What is done at random is made of the epoch's draw and the sample's number alone. */
#include <pthread.h>

#include "format.h"
#include "resample.h"

/* The way out of pictures of several sizes; programs that have a name for it look for these words.
 */
#define AFZ_IMAGE_GIVE_SIZE "give the size that all are to have"

struct afz_image_plan {
        struct afz_image_options options; /* height and width are set */
        bool is_same_size;                /* no resizing: a picture of another size is bad */
        uint64_t large_bytes;             /* that a picture which has to be whole may take */
        pthread_mutex_t large;            /* whoever has such a one */
        float table[3][256];              /* a byte of each channel as the number that comes out */
};

/* A picture's bytes: those that are in memory already, and the rest of them in a file. */
struct afz_image_source {
        const uint8_t *have;
        uint64_t have_bytes;
        int fd;
        uint64_t at, left;           /* in the file */
        struct afz_scratch *scratch; /* its raw memory takes the pieces */
        int error;                   /* of reading */
};
/* The next piece becomes what there is; its bytes, 0 at the end or on an error. */
uint64_t afz_image_more(struct afz_image_source *source);

/* The options and, where they give no size, the first picture's. */
int afz_image_plan(const struct afz_loader_options *options, struct afz_image_source *first,
                   struct afz_image_plan *ret, char why[AFZ_WHY_MAX]);
/* Field, scratch and heap of a dataset of such pictures. */
void afz_image_describe(const struct afz_image_plan *plan, struct afz_dataset *dataset);

/* One sample. -EBADMSG and the like: it is bad; why: what is wrong with it, without its name. */
int afz_image_load(struct afz_image_plan *plan, struct afz_image_source *source, uint64_t sample,
                   uint64_t draw, uint8_t *to, char why[AFZ_WHY_MAX]);

/* By the ending of a name. */
bool afz_image_is_name(const char *name);
/* A tar of them and a folder of them say the same of a sample that is bad. */
void afz_image_why(char why[AFZ_WHY_MAX], const char *path, const char *name, const char *clause);

/* ---- for the decoders ---- */

/* A picture on its way. */
struct afz_image_job {
        const struct afz_image_plan *plan;
        struct afz_image_source *source;
        uint64_t seed;
        uint32_t x, y, width, height; /* the part of the picture that is wanted */
        uint32_t scale;               /* 1, 2, 4 or 8: it may be decoded at a part of its size */
        struct afz_resample resample;
        uint64_t heap_bytes;         /* that a library may take; -EFBIG if it needs more */
        uint8_t *memory, *row, *rgb; /* the resampler's; a row that comes; what came out */
        bool is_header_only;
        char *why;
};

/* Once the size is known: chooses the part and the scale. */
int afz_image_size(struct afz_image_job *job, uint64_t width, uint64_t height);
/* Once the decoder knows what size the part has at that scale: rows can come. */
int afz_image_begin(struct afz_image_job *job, uint32_t width, uint32_t height);

int afz_jpeg_decode(struct afz_image_job *job);
int afz_png_decode(struct afz_image_job *job);

#endif
