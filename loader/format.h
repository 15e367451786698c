#ifndef AFZ_FORMAT_H
#define AFZ_FORMAT_H
/* A format: how the samples of a dataset are found and read. One row a format (formats.c); how to
 * add one: docs/add-a-format.md.
 *
 * A format opens a path, says how many samples there are, what fields each has, and how many belong
 * together (a chunk: what is best read at once). Then load() is called by several threads at the
 * same time, each with scratch of its own, for any run of samples that does not cross a chunk;
 * other than that memory it has what it took at open, and it takes that through afz_index_take(),
 * which counts it against the budget.
 *
 * All of it is data of strangers: every size, offset and count is checked before it is used. */
#include <stdbool.h>
#include <stdint.h>

#include "antifreeze/loader.h"

struct afz_dataset;

/* What a thread has for itself while it loads. The two are in the arena, aligned to 4096. */
struct afz_scratch {
        uint8_t *raw, *decode;
        uint64_t raw_bytes, decode_bytes;
        uint64_t read_ns, read_bytes; /* afz_dataset_read() counts here */
        bool is_passing;              /* and gives the page cache back what it has read */
        void *codec; /* what a format keeps from one load to the next; format->forget() frees it */
};

struct afz_load {
        uint64_t first;
        uint32_t count;
        uint64_t draw; /* the epoch's seed, for what is done to samples at random */
        uint8_t *field[AFZ_FIELDS_MAX]; /* count samples each, one behind the other */
        uint8_t *bad; /* count bytes, all 0: set to 1 for a sample that could not be read */
};

struct afz_format {
        const char *name, *about;
        const char *said; /* the name that a program in Python knows it by, where that is another */
        /* Whether a path is of this format; head: its first bytes, none for a folder. */
        bool (*is_it)(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes);
        /* Fills in `dataset`; why: a sentence that names the thing and the way out. */
        int (*open)(struct afz_dataset *dataset, const struct afz_loader_options *options,
                    char why[AFZ_WHY_MAX]);
        void (*close)(struct afz_dataset *dataset);
        /* 0, also if samples are bad (then why has the first of them); else nothing could be read
         * at all. */
        int (*load)(struct afz_dataset *dataset, const struct afz_load *load,
                    struct afz_scratch *scratch, char why[AFZ_WHY_MAX]);
        void (*forget)(struct afz_scratch *scratch);
};

struct afz_dataset {
        const struct afz_format *format;
        char path[4096];
        uint64_t samples;
        uint64_t chunk_samples; /* the last chunk may be short */
        uint32_t fields;
        struct afz_field field[AFZ_FIELDS_MAX];
        uint64_t sample_bytes;            /* of all fields */
        uint64_t raw_bytes, decode_bytes; /* of scratch that a load of one chunk needs */
        uint64_t heap_bytes;   /* that libraries take for a thread besides, at most: to be counted,
                                  too */
        uint64_t index_bytes;  /* taken at open */
        uint64_t disk_bytes;   /* its files, about; 0: not known, or it reads past the page cache */
        bool is_passing;       /* which are too large to stay in the page cache */
        bool is_single;        /* samples are as well read one by one */
        void *own;             /* the format's */
        void *index;           /* what afz_index_take() gave */
        uint64_t budget_bytes; /* that it may not cross */
};

extern const struct afz_format *const afz_formats[]; /* NULL behind the last */

int afz_dataset_open(struct afz_dataset *ret, const char *path,
                     const struct afz_loader_options *options, char why[AFZ_WHY_MAX]);
void afz_dataset_close(struct afz_dataset *dataset);

/* For formats.
 * Memory for an index; freed by afz_dataset_close(). NULL: not to be had, or over the budget. */
void *afz_index_take(struct afz_dataset *dataset, uint64_t count, uint64_t bytes_each);
/* The whole run of bytes, or -errno; -ENODATA: the file ends before (it was cut off, or shrank).
 * Counts time and bytes. */
int afz_dataset_read(int fd, void *to, uint64_t bytes, uint64_t at, struct afz_scratch *scratch);
uint64_t afz_dtype_bytes(enum afz_dtype dtype);
/* -EOVERFLOW where the product of a shape and a size is too large to be true. */
int afz_shape_bytes(const uint64_t *shape, uint32_t dimensions, uint64_t each, uint64_t *ret);
/* How many samples of flat data make a good chunk: as much as is read well at once, and
 * so that many of them fit into the budget. */
uint64_t afz_chunk_for(uint64_t sample_bytes, uint64_t samples, uint64_t budget_bytes);
int afz_why(char why[AFZ_WHY_MAX], int error, const char *format, ...)
        __attribute__((format(printf, 3, 4))); /* returns error */

#endif
