#ifndef AFZ_KEEPER_ASK_H
#define AFZ_KEEPER_ASK_H
/* Which lines of a run hold its memory just now: a question to the run's keeper (keeper.h), over
 * the socket at which it hands out books. It answers what stood at its last look (one a second),
 * and to its own user alone.
 *
 * Figures are estimates (docs/sampling.md).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AFZ_KEEPER_ROWS = 16, AFZ_KEEPER_NAME_CAP = 96, AFZ_KEEPER_WORDS_CAP = 320 };

/* A line of the program, with all ways that lead to it. */
struct afz_keeper_row {
        char name[AFZ_KEEPER_NAME_CAP]; /* "train.py:33 in load()" */
        uint64_t live_bytes;
        int64_t growth_bytes; /* over the last growth_s seconds */
        uint32_t kind;        /* as AFZ_SITE_MEMORY: 1 heap, 2 mappings ...; of its largest part;
                                 0: of "everywhere else" */
        uint32_t processes;   /* that hold some of it */
};

/* What frameworks tell that memory is for, of all processes; 0: nothing, or it was not told. */
struct afz_keeper_use {
        uint64_t parameters, gradients, optimizer, buffers, activations, batch; /* bytes */
};

struct afz_keeper_answer {
        uint64_t magic;
        uint64_t looked_ns;  /* CLOCK_BOOTTIME of the last look; 0: there was none yet */
        uint64_t live_bytes; /* of all lines, also of those that are not told */
        uint64_t step;       /* the largest of all processes; 0: no step was seen */
        uint32_t growth_s;   /* a minute, some seconds at the beginning; 0: not known yet */
        uint32_t processes;  /* in which the probe is just now */
        uint32_t rows;       /* largest first, but for "everywhere else", which is the last */
        uint32_t unused;
        struct afz_keeper_use use[2];               /* of the host, of GPU memory */
        uint64_t loader_bytes, shuffle_bytes;       /* fetched ahead; buffers of tf.data */
        uint64_t gpu_tensors_bytes, gpu_held_bytes; /* of the framework's allocator: in tensors;
                                                       with what it keeps beside */
        uint64_t gpu_peak_bytes;                    /* the most in tensors */
        uint64_t batch_count, micro_count;          /* samples of a step, and at once */
        uint64_t ooms_count;                        /* errors for want of memory */
        char words[AFZ_KEEPER_WORDS_CAP]; /* on the probe itself: "the probe is in 3 processes,
                                             CPython 3.11; ..." */
        struct afz_keeper_row row[AFZ_KEEPER_ROWS];
};

/* Where a run's keeper listens, from its control socket's path (afz_run_ref.socket,
 * afz_run.socket). False: it has none, or there is no room for it. */
bool afz_keeper_socket_path(const char *control_socket, char *buf, size_t cap);

/* Asks, and waits so long at most. -ENOENT, -ECONNREFUSED: there is no keeper (the run is over, or
 * goes without the probe); -ETIMEDOUT; -EPROTO: it is not one of this build, or did not answer.
 * What is returned is checked: texts end and are printable, rows are in range. */
int afz_keeper_ask(const char *socket_path, unsigned timeout_ms, struct afz_keeper_answer *ret);

/* The two packets, for who answers and for tests. The question is a wish (wire.h) with this magic,
 * and the answer bears it, too; it is believed only if it is whole: -EPROTO. */
extern const uint64_t afz_keeper_ask_magic;
int afz_keeper_answer_check(struct afz_keeper_answer *answer, size_t bytes);

#endif
