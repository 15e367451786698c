#ifndef ANTIFREEZE_LOADER_H
#define ANTIFREEZE_LOADER_H
/* A data loader that holds a budget in bytes.
 *
 * All of its memory is one arena that is taken and touched at the start: buffers for reading,
 * decoded chunks, the index, batches that are on their way. It never grows. What cannot fit is an
 * error at open, with the least that would do.
 *
 * Order. A dataset is a row of chunks. An epoch goes through them in a permutation made of the
 * seed; as many of them as fit side by side make a group, and the samples of a group come in a
 * permutation of their own. So the order is a function of seed, epoch and the groups' size, needs
 * no memory, and is the same for any number of threads. If everything fits, there is one group: a
 * global shuffle.
 *
 * A subset or weights change what comes of a chunk, not how chunks come: those of which nothing
 * comes are not read. With weights an epoch has as many draws of each chunk as its weight is worth,
 * rounded up or down by the seed so that the epoch's length is met, and which of its samples they
 * are is drawn by their weights. Both lists are copied, and their 8 bytes a sample count against
 * the budget.
 *
 * Ranks take turns along that one order: of each `batch * ranks` samples rank 0 takes the first
 * `batch`, and so on. A state that one number of ranks has left is good for any other. All have as
 * many batches: at an epoch's end, fewer samples than there are ranks are left out.
 *
 * Batches are leased: their memory is not used again before afz_loader_release(). Who keeps more
 * than AFZ_LEASES_MAX of them gets copies from the heap instead, which are counted; it never hangs.
 *
 * Threads: any one thread at a time may call in, except afz_loader_release() and afz_loader_ask(),
 * which may be called from any. After fork() everything answers -EPERM in the child.
 *
 * 0 or more is success, else -errno, with a sentence in ret_why where there is one. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum {
        AFZ_DIMENSIONS_MAX = 8,
        AFZ_FIELDS_MAX = 8,
        AFZ_LEASES_MAX = 8,
        AFZ_WHY_MAX = 512, /* bytes of a sentence */
};

enum afz_dtype {
        AFZ_U8,
        AFZ_I8,
        AFZ_U16,
        AFZ_I16,
        AFZ_U32,
        AFZ_I32,
        AFZ_U64,
        AFZ_I64,
        AFZ_F16,
        AFZ_F32,
        AFZ_F64,
        AFZ_BOOL,
        AFZ_DTYPE_COUNT
};

/* One thing that each sample has: an image, a label. */
struct afz_field {
        char name[32];
        enum afz_dtype dtype;
        uint32_t dimensions; /* of a sample; 0: a number */
        uint64_t shape[AFZ_DIMENSIONS_MAX];
        uint64_t bytes; /* of a sample */
};

enum afz_shuffle {
        AFZ_SHUFFLE_WINDOW, /* as above */
        AFZ_SHUFFLE_NONE,   /* in the order of the data */
        AFZ_SHUFFLE_GLOBAL, /* all of it must fit, or its format must have samples that can be read
                               one by one */
};

enum afz_on_error {
        AFZ_ERROR_RAISE,
        AFZ_ERROR_SKIP, /* a sample that cannot be read is left out, its batch is shorter by it;
                           counted and logged */
};

/* What is done to images. All of it is seeded by sample and epoch. */
struct afz_image_options {
        uint32_t height, width; /* 0: all have the same size already */
        uint8_t is_random_crop; /* a part of 8 to 100 % at random, else the middle */
        uint8_t is_flipped;     /* half of them, left to right */
        uint8_t is_float; /* channels first, 0 to 1, less mean by deviation; else bytes, channels
                             last */
        float jitter;     /* brightness, contrast, saturation: each by up to so much of itself */
        float mean[3], deviation[3];
};

struct afz_loader_options {
        const char *const
                *paths; /* the first gives the chunks; all have as many samples (labels) */
        uint32_t path_count;
        const char *format;  /* NULL: told by the data. "raw" and "tokens" have to be named */
        const char *details; /* JSON for the format: {"dtype":"f4","shape":[3,224,224]} for raw
                                records; NULL */
        struct afz_image_options image;
        uint64_t budget_bytes;
        uint32_t batch; /* samples */
        uint64_t seed;
        enum afz_shuffle shuffle;
        enum afz_on_error on_error;
        uint8_t is_last_dropped; /* the last batch of an epoch, if it is short */
        uint8_t is_shared;       /* other processes may map its batches: afz_loader_shared() */
        uint32_t threads;        /* 0: chosen by measuring */
        uint32_t rank, ranks;    /* ranks 0: one */
        uint64_t start, stop;    /* only these samples, as if there were no others; stop 0: all */
        /* Only these, as often as each is named; start and stop are 0 then. NULL: all. */
        const uint64_t *subset;
        uint64_t subset_count;
        /* How much each of the samples (from start to stop) is drawn beside the others, with
         * putting back. NULL: each comes once. */
        const double *weights;
        uint64_t weight_count;
        uint64_t draws; /* by weights, in an epoch; 0: as many as there are samples */
        const struct afz_source *source; /* for format "arrow", until the loader is closed */
};

/* Data that the program reads itself, in parts: numbers in columns, as streams of Arrow's C stream
 * interface. So Parquet is read by pyarrow, a row group a part. What a part's rows are copied to is
 * the loader's own memory, as with every format; what the program needs meanwhile it says here. */
struct afz_source {
        void *own;
        /* Makes the stream of a part, in the struct ArrowArrayStream that `ret_stream` is. Called
         * by threads of the loader's, several at once. ret_words: what the part is called in a
         * sentence; on failure (-errno) the sentence. */
        int (*open)(void *own, uint64_t part, void *ret_stream, char ret_words[AFZ_WHY_MAX]);
        uint64_t parts;
        const uint64_t *part_rows;
        uint32_t fields, columns;
        const struct afz_field *field; /* name, dtype, shape */
        const struct afz_source_column *column;
        uint64_t heap_bytes;  /* that it takes for each thread while a part is read, at most */
        uint64_t index_bytes; /* that it holds all the time */
        uint8_t is_null_nan;  /* what is absent is NaN where that is a number, else bad */
};

/* A number, or a fixed-size list of them, or of such lists. Numbers become the field's dtype, which
 * has to hold all of theirs. */
struct afz_source_column {
        const char *name;
        uint32_t field;
        uint64_t at, numbers; /* its place in a sample's field and how many it has, in numbers */
};

struct afz_loader;

int afz_loader_open(const struct afz_loader_options *options, struct afz_loader **ret,
                    char ret_why[AFZ_WHY_MAX]);
void afz_loader_close(struct afz_loader *loader); /* leases stay good until they are released */
/* A source is not called any more, and calls that are under way are waited for: for a program that
 * ends, and will not be there to be called. next() fails when it comes to what is not loaded. From
 * any thread. */
void afz_loader_detach(struct afz_loader *loader);

/* What is in there. */
struct afz_loader_facts {
        uint64_t samples, batches; /* of an epoch, for this rank */
        uint64_t budget_bytes, floor_bytes;
        uint64_t group_samples; /* that are shuffled together */
        double shuffle_quality; /* 0: in order; 1: as good as a global shuffle */
        uint32_t fields, threads;
        struct afz_field field[AFZ_FIELDS_MAX];
};
void afz_loader_facts(const struct afz_loader *loader, struct afz_loader_facts *ret);

struct afz_batch {
        uint64_t lease;   /* for afz_loader_release() */
        uint32_t count;   /* samples */
        uint32_t is_copy; /* from the heap: too many are held */
        void *data[AFZ_FIELDS_MAX];
        uint64_t epoch, index; /* this is the index-th batch of that epoch */
};

/* 1: a batch; 0: the epoch is over, and the next call begins the next one. */
int afz_loader_next(struct afz_loader *loader, struct afz_batch *ret, char ret_why[AFZ_WHY_MAX]);
/* The same, but for -ETIME: not within so many milliseconds. For who must look after signals
 * meanwhile. */
int afz_loader_next_within(struct afz_loader *loader, uint32_t most_ms, struct afz_batch *ret,
                           char ret_why[AFZ_WHY_MAX]);
/* 1: next() has something to give at once, unless ask() comes between; 0: not within so many
 * milliseconds. For who must look after signals meanwhile. */
int afz_loader_wait(struct afz_loader *loader, uint32_t most_ms);
void afz_loader_release(struct afz_loader *loader, uint64_t lease);

/* Where batches lie, for another process that works on one while its lease is held here: that is at
 * `data - at` in the file. The descriptor is the loader's, and the file has no name. -EINVAL: it
 * was not opened so. */
struct afz_shared {
        int fd;
        uint32_t leases; /* that can be held now before there are copies, which are not in there */
        void *at;
        uint64_t bytes;
};
int afz_loader_shared(const struct afz_loader *loader, struct afz_shared *ret);

/* Where all batches but copies lie, for who lets a device read from there. These pages stay what
 * they are from now on, also when less is asked for, and no child gets them: a page that went and
 * came again would be another than the device knows. */
int afz_loader_pin(struct afz_loader *loader, void **ret_at, uint64_t *ret_bytes);

/* The place in the data behind the last batch that next() gave. A state is good for a loader of the
 * same data and seed, whatever its budget, threads and ranks. Where less was asked for, it says so:
 * what follows is shuffled in the groups that this loader would have had, also by one that has
 * more.
 */
enum { AFZ_LOADER_STATE_BYTES = 192 };
void afz_loader_state(const struct afz_loader *loader, uint8_t ret[AFZ_LOADER_STATE_BYTES]);
/* A state that this loader gave before, for who hands batches on later than it takes them: with
 * what was asked for since. */
void afz_loader_renew(const struct afz_loader *loader, uint8_t state[AFZ_LOADER_STATE_BYTES]);
int afz_loader_seek(struct afz_loader *loader, const uint8_t state[AFZ_LOADER_STATE_BYTES],
                    char ret_why[AFZ_WHY_MAX]);
/* To the start of an epoch, counted from 0. */
int afz_loader_begin(struct afz_loader *loader, uint64_t epoch, char ret_why[AFZ_WHY_MAX]);

/* To make do with so many bytes. What no batch is made of goes back to the system before this
 * returns: chunks that were loaded ahead (those that are being loaded, when they are), batches that
 * are ready ahead, memory of threads that have nothing to do. The rest does with the group of
 * chunks that batches are made of: groups are smaller from the next one on, and states say so.
 * Nothing that was given out changes, nor does what comes of that group. Among several ranks groups
 * stay as they are, for a rank with other groups would have another order than the rest: only
 * batches that are ready ahead and threads' own memory are let go of. -ENOSPC: it makes do with the
 * least that it can, which is more than that. */
int afz_loader_ask(struct afz_loader *loader, uint64_t budget_bytes);

/* What the time of an epoch went into, or of the part of it that is done. */
struct afz_loader_times {
        uint64_t read_ns, read_bytes;     /* of all threads */
        uint64_t decode_ns, decode_bytes; /* of all threads */
        uint64_t gather_ns;
        uint64_t waited_ns;             /* next() for a batch */
        uint64_t idle_ns;               /* a batch for next() */
        uint64_t skipped, copies, held; /* samples; batches from the heap; leases now */
        uint64_t held_most;             /* leases at once */
        uint64_t epoch, epoch_ns;       /* which; since it began, until next() last came back */
        uint64_t loading_ns, loaded;    /* in which any thread read or decoded; samples that came */
        uint64_t loads, load_waits;     /* pieces of that work, and how often one had to wait */
        uint64_t starved_ns, gather_bytes; /* who makes batches had no samples; what it copied */
};
void afz_loader_times(const struct afz_loader *loader, struct afz_loader_times *ret);

/* Who was the slowest, and so limited it. */
enum afz_side {
        AFZ_SIDE_NONE,     /* nothing has come yet */
        AFZ_SIDE_CONSUMER, /* who asks for batches: they were there before */
        AFZ_SIDE_DISK,
        AFZ_SIDE_CACHE, /* reading, though it comes from memory: the page cache */
        AFZ_SIDE_DECODE,
        AFZ_SIDE_GATHER, /* copying samples into batches */
        AFZ_SIDE_COUNT
};
/* With its rate, as a sentence: "the disk: 212M/s; the program waited for data 71 % of the
 * time". Where batches had to be copied because too many are held, that is said, too. */
enum afz_side afz_loader_slowest(const struct afz_loader *loader, char ret_words[AFZ_WHY_MAX]);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
