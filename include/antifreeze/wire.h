#ifndef ANTIFREEZE_WIRE_H
#define ANTIFREEZE_WIRE_H
/* The book: what the probe inside a process of the job writes and the keeper outside reads.
 *
 * One book is one memfd of AFZ_BOOK_BYTES, made and touched by the keeper (so that it is charged
 * outside of the job) and sealed against shrinking (F_SEAL_SHRINK; the probe refuses any other: a
 * file that is cut would kill the job). It is handed over the probe socket and mapped by both. The
 * probe alone writes it, once it is handed over, but for the marks of high and low water, which the
 * keeper sets anew when it has read them. Nothing in it is a pointer that the other side
 * follows, and nothing has to be sent: when the process is killed between two instructions, the
 * book is as it was then.
 *
 *   sites    who allocates: a kind and a stack, with what is live and what ever was
 *   blocks   the sampled blocks that are live: address, site, weight
 *   frames   the stacks, innermost first
 *   text     names of Python files and functions, NUL-terminated
 *   modules  what native addresses belong to
 *
 * The reader trusts nothing: every index is checked against its array, every text is cut, and a
 * torn value is one sample off. All numbers are in the machine's own order; the two sides are one
 * build (the magic holds the version and the size).
 *
 * A process that forks asks for a book of its own once it has allocated about mean_bytes; what it
 * inherited is in its parent's alone. One that execs another program asks again under the same
 * pid: the book before it is over then, though nobody could write so into it.
 */
#include <stdatomic.h>
#include <stdint.h>

#define AFZ_BOOK_VERSION 5u
#define AFZ_BOOK_SOCKET  "ANTIFREEZE_PROBE" /* in the environment: the socket's path */

enum {
        AFZ_BOOK_SITES = 4096,    /* a power of two: an open hash table */
        AFZ_BOOK_BLOCKS = 65536,  /* the same; at 1 MiB a sample: 64 GiB that are live */
        AFZ_BOOK_FRAMES = 131072, /* 32 a site */
        AFZ_BOOK_TEXT = 1 << 20,  /* bytes */
        AFZ_BOOK_NAMES = 16384,   /* the same: where a text lies */
        AFZ_BOOK_MODULES = 512,
        AFZ_BOOK_FILTER = 1 << 16, /* bytes: see afz_book.filter */
        AFZ_BOOK_MODULE_PATH = 192,
        AFZ_BOOK_BUILD_ID = 20, /* bytes that are kept of one */
        AFZ_STACK_MAX = 64,     /* frames of one site, native and Python together */
};

/* Where the memory came from. */
enum afz_site_kind {
        AFZ_SITE_FREE,   /* the slot is empty, or being filled */
        AFZ_SITE_HEAP,   /* malloc and its family, C++ new */
        AFZ_SITE_MAP,    /* mmap of private memory. How much of it is really there only the kernel
                            knows: whoever reads asks for the residency of its blocks */
        AFZ_SITE_OBJECT, /* CPython's own small objects */
        AFZ_SITE_PINNED, /* locked for the GPU */
        AFZ_SITE_SHARED, /* mmap of memory that others may share: /dev/shm, memfd, anonymous. As of
                            AFZ_SITE_MAP, the kernel knows how much is there */
        AFZ_SITE_KINDS
};

/* What a program or its framework tells of itself beside its steps (antifreeze_tell, step.h): an
 * id and the name, which is also that of a metric of AFZ_KIND_INSIDE in the recording, where each
 * is explained (src/model/metric_list.h). */
#define AFZ_TOLD_LIST(X)                                                                           \
        X(PHASE, "phase")                                                                          \
        X(BATCH, "batch_count")                                                                    \
        X(MICRO, "micro_count")                                                                    \
        X(PARAMETERS, "parameters_bytes")                                                          \
        X(GRADIENTS, "gradients_bytes")                                                            \
        X(OPTIMIZER, "optimizer_bytes")                                                            \
        X(BUFFERS, "buffers_bytes")                                                                \
        X(ACTIVATIONS, "activations_bytes")                                                        \
        X(BATCH_BYTES, "batch_bytes")                                                              \
        X(GPU_PARAMETERS, "gpu_parameters_bytes")                                                  \
        X(GPU_GRADIENTS, "gpu_gradients_bytes")                                                    \
        X(GPU_OPTIMIZER, "gpu_optimizer_bytes")                                                    \
        X(GPU_BUFFERS, "gpu_buffers_bytes")                                                        \
        X(GPU_ACTIVATIONS, "gpu_activations_bytes")                                                \
        X(GPU_BATCH_BYTES, "gpu_batch_bytes")                                                      \
        X(GPU_ALLOCATED, "gpu_allocated_bytes")                                                    \
        X(GPU_ALLOCATED_PEAK, "gpu_allocated_peak_bytes")                                          \
        X(GPU_RESERVED, "gpu_reserved_bytes")                                                      \
        X(GPU_INACTIVE, "gpu_inactive_bytes")                                                      \
        X(GPU_RETRIES, "gpu_retries_count")                                                        \
        X(PINNED, "pinned_bytes")                                                                  \
        X(LOADER, "loader_bytes")                                                                  \
        X(SHUFFLE, "shuffle_bytes")                                                                \
        X(RETRACES, "retraces_count")                                                              \
        X(VARIABLES, "variables_count")                                                            \
        X(OOMS, "ooms_count")                                                                      \
        X(SPLITS, "splits_count")                                                                  \
        X(ZEROED, "zeroed_count")                                                                  \
        X(SAVED_STEP, "saved_step")                                                                \
        X(HELD, "held_bytes")

enum afz_told {
#define AFZ_TOLD_ENUM_(id, name) AFZ_TOLD_##id,
        AFZ_TOLD_LIST(AFZ_TOLD_ENUM_)
#undef AFZ_TOLD_ENUM_
                AFZ_TOLD_COUNT
};

#define AFZ_TOLD_NOT UINT64_MAX /* as a value: it has not been told, or no longer holds */

/* A frame is one number. Native: the return address. Python: the top bit, whether it is a library's
 * rather than the program's own and whether it is the import system's, the line (0: unknown) and
 * where the names lie in `texts`, in units of 4 bytes. */
#define AFZ_FRAME_PYTHON      (UINT64_C(1) << 63)
#define AFZ_FRAME_LIBRARY     (UINT64_C(1) << 62)
#define AFZ_FRAME_IMPORT      (UINT64_C(1) << 61)
#define AFZ_FRAME_LINE_BITS   19
#define AFZ_FRAME_TEXT_BITS   18
#define AFZ_FRAME_LINE(f)     ((uint32_t)((f) >> 36) & ((1u << AFZ_FRAME_LINE_BITS) - 1))
#define AFZ_FRAME_FILE(f)     (((uint32_t)((f) >> 18) & ((1u << AFZ_FRAME_TEXT_BITS) - 1)) * 4)
#define AFZ_FRAME_FUNCTION(f) (((uint32_t)(f) & ((1u << AFZ_FRAME_TEXT_BITS) - 1)) * 4)

struct afz_book_site {
        _Atomic uint64_t key;   /* of its stack and kind; 0: empty */
        _Atomic uint32_t kind;  /* set last: from then on all but the counts stays as it is */
        uint32_t frame, frames; /* from afz_book.frame[]. No frames: what could not be told, or
                                   came when the tables were full; one such site a kind is always
                                   there */
        uint32_t step;          /* in which it was first seen */
        uint64_t first_ns;      /* CLOCK_BOOTTIME, the same */
        _Atomic uint64_t last_ns;
        /* Estimates, by weights (docs/sampling.md). Live may be torn against total by one block. */
        _Atomic uint64_t live_bytes, live_blocks, total_bytes, total_blocks;
        _Atomic uint64_t early_bytes; /* of live: from before the first step */
        _Atomic uint64_t large_bytes; /* of live: blocks that are not estimates, but counted */
        _Atomic uint64_t high_bytes, low_bytes; /* the most and the least that live was since the
                                                   keeper last set both to it; steps are shorter
                                                   than its looks */
};

#define AFZ_BLOCK_LARGE    (UINT64_C(1) << 63)
#define AFZ_BLOCK_SITE(s)  ((uint32_t)((s) >> 48) & 0x7fff)
#define AFZ_BLOCK_BYTES(s) (((s) & ((UINT64_C(1) << 48) - 1)) << 4)

/* What belongs to afz_book.address[] of the same index. */
struct afz_book_block {
        uint64_t site_size; /* AFZ_BLOCK_LARGE? | site << 48 | size in units of 16 bytes, up */
        uint64_t weight_bytes;
        uint64_t born; /* step << 32 | seconds since the book was opened */
};

/* A file whose code was in the process, from since_ns on. Its addresses may be another's later:
 * the newest one that is not younger than the site is meant. */
struct afz_book_module {
        _Atomic uint64_t base; /* where its segments lie: [base, end). 0: empty; set last */
        uint64_t end;
        uint64_t shift; /* address - shift is the file's own address */
        uint64_t since_ns;
        unsigned char build_id[AFZ_BOOK_BUILD_ID];
        uint32_t build_id_bytes;         /* 0: it has none */
        char path[AFZ_BOOK_MODULE_PATH]; /* cut at its start when it is too long */
};

enum afz_book_state {
        AFZ_BOOK_NEW,    /* handed over */
        AFZ_BOOK_OPEN,   /* the probe writes */
        AFZ_BOOK_CLOSED, /* the process ended by itself */
};

struct afz_book {
        /* By the keeper, before it is handed over. */
        uint64_t magic;
        uint64_t mean_bytes; /* between two samples */
        uint64_t seed;       /* of the samples, for tests; 0: from the clock */
        uint32_t pid;        /* as the keeper sees it */

        /* By the probe. */
        _Atomic uint32_t state;
        uint32_t own_pid;   /* as the process sees it (in a container another) */
        uint64_t opened_ns; /* CLOCK_BOOTTIME */
        char why[192];      /* what is not seen here, and why; one sentence each, "": all is */
        char python[64];    /* whose stacks are read ("CPython 3.11"); "": none */

        /* The step clock. These two follow each other: who counts in the process itself may be
         * given their address (antifreeze_clock, step.h). */
        _Atomic uint64_t step;    /* 0: before the first */
        _Atomic uint64_t wait_ns; /* of all steps: what they waited for data, where it is known */
        _Atomic uint64_t inside;  /* threads in the probe just now. Not 0 after a death by SIGSEGV,
                                     SIGBUS or SIGABRT: it may have been us */
        _Atomic uint64_t live_bytes, high_bytes; /* of all sites together, as there */
        /* What malloc took from the kernel and how much of that is in blocks that are in use
         * (mallinfo2), read now and then by the program's own threads; heap_ns: when, 0: never. */
        _Atomic uint64_t heap_taken_bytes, heap_used_bytes, heap_ns;
        _Atomic uint64_t told[AFZ_TOLD_COUNT]; /* each by enum afz_told, and one more: a new book,
                                                  which is empty, is AFZ_TOLD_NOT all over */
        /* Allocations that were answered with ENOMEM (afz_room): how many, and their bytes. */
        _Atomic uint64_t refused, refused_bytes;
        _Atomic uint64_t samples, frees; /* blocks that were put in, and taken out */
        _Atomic uint64_t dropped_sites, dropped_blocks, dropped_frames; /* for want of room */
        _Atomic uint32_t sites, frames, text, modules; /* used; may run past the end when full */

        struct afz_book_site site[AFZ_BOOK_SITES];
        struct afz_book_module module[AFZ_BOOK_MODULES];
        _Atomic uint32_t name[AFZ_BOOK_NAMES];     /* offset in texts + 1; by hash */
        _Atomic uint8_t filter[AFZ_BOOK_FILTER];   /* counts blocks by a hash of the address; 255
                                                      sticks. 0: no block is there, and free() need
                                                      not look further */
        _Atomic uint64_t address[AFZ_BOOK_BLOCKS]; /* 0: empty, 1: being filled or emptied */
        struct afz_book_block block[AFZ_BOOK_BLOCKS];
        uint64_t frame[AFZ_BOOK_FRAMES];
        char texts[AFZ_BOOK_TEXT]; /* the first is "?" */
};

#define AFZ_BOOK_BYTES ((sizeof(struct afz_book) + 4095) / 4096 * 4096)
#define AFZ_BOOK_MAGIC                                                                             \
        ((uint64_t)AFZ_BOOK_VERSION << 56 ^ (uint64_t)sizeof(struct afz_book) << 24 ^ 0x6b6f6f62)

/* The room: one file a run. Its first page is written by the guard at each of its looks and read by
 * all probes. Under --policy adapt it says how many bytes the whole job may still take before it
 * stands at its line; a probe refuses what would cross it (probe/room.c). */
struct afz_room {
        uint64_t magic;
        _Atomic uint64_t looks;      /* so many were taken; it grows as long as the guard lives */
        _Atomic uint64_t looked_ns;  /* when the last was, CLOCK_BOOTTIME */
        _Atomic uint64_t room_bytes; /* to the line; AFZ_ROOM_ALL: nothing is refused */
};

/* What a process was granted and has hardly had time to touch: no look knows of it yet. One each,
 * in a part of the file that all processes of the job write and the guard never reads. It ends by
 * itself, so one who dies need not take it back. */
struct afz_promise {
        _Atomic uint64_t owner;    /* whose it is, by a number of its own; 0: nobody's */
        _Atomic uint64_t bytes;    /* so much, */
        _Atomic uint64_t until_ns; /* and for so long, CLOCK_BOOTTIME */
};

#define AFZ_ROOM_ALL         UINT64_MAX
#define AFZ_ROOM_BYTES       4096
#define AFZ_ROOM_PROMISES    256
#define AFZ_ROOM_PROMISES_AT 65536 /* where they lie: the largest page there is */
#define AFZ_ROOM_FILE_BYTES  (AFZ_ROOM_PROMISES_AT + AFZ_ROOM_PROMISES * sizeof(struct afz_promise))
#define AFZ_ROOM_MAGIC                                                                             \
        ((uint64_t)AFZ_BOOK_VERSION << 56 ^ (uint64_t)sizeof(struct afz_room) << 24 ^ 0x6d6f6f72)

/* The first and only packet of the probe on the socket (SOCK_SEQPACKET); the answer is one byte
 * with the book's descriptor and, where there is one, the room's, or a hang-up: no book for this
 * process. The probe waits for 1 s, and less where others have just waited in vain; then it goes on
 * and takes what comes later. Where Yama lets only ancestors read a process's memory, it lets the
 * process that made the socket do so, and all who descend from it. */
struct afz_book_wish {
        uint64_t magic;
        uint32_t version;
        uint32_t own_pid;
        char program[64];
};

#endif
