#ifndef AFZ_GPU_SHARED_H
#define AFZ_GPU_SHARED_H
/* The memory that the GPU helper and we share. The helper writes a report under a sequence lock:
 * the number is odd while it writes, and a reader that sees it odd or changed throws its copy away.
 * So neither side ever waits for the other, and a helper that dies in mid-write leaves an odd
 * number and no half report.
 *
 * The words are atomics, copied one by one: that is what makes the race harmless in C's own terms.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu.h"

enum { AFZ_GPU_EVENT_RING = 16 };

struct afz_gpu_event {
        uint32_t kind; /* enum afz_event_kind */
        uint32_t gpu;
        int64_t code;
};

/* All that the helper knows. `events` counts all so far; event i stands at i % AFZ_GPU_EVENT_RING.
 */
struct afz_gpu_report {
        uint32_t state; /* enum afz_gpu_state: starting, ok, or one of the failures */
        int32_t cuda_version;
        char driver[AFZ_GPU_VERSION_CAP], nvml[AFZ_GPU_VERSION_CAP], error[AFZ_GPU_ERROR_CAP];
        uint64_t events;
        struct afz_gpu_event event[AFZ_GPU_EVENT_RING];
        struct afz_gpu_snapshot snapshot;
};

enum { AFZ_GPU_REPORT_WORDS = (sizeof(struct afz_gpu_report) + 7) / 8 };

struct afz_gpu_shared {
        _Atomic uint32_t seq;    /* of the sequence lock; 0: nothing written yet */
        _Atomic uint32_t call;   /* the function that was called last */
        _Atomic uint64_t calls;  /* grows at each call and at each return: odd while inside one */
        _Atomic uint64_t cpu_ns; /* processor time of the helper */
        _Atomic uint64_t asked, answered; /* requests for a fresh report, and the last one met */
        _Atomic uint64_t word[AFZ_GPU_REPORT_WORDS];
};

/* The helper's side; there is one writer. */
void afz_gpu_shared_publish(struct afz_gpu_shared *shared, const struct afz_gpu_report *report);

/* Our side: copies the report into *ret when there is a whole one newer than *seq (which is then
 * set). False: nothing new, or the helper writes just now; *ret may then hold half a report, so
 * give a buffer that is not shown to anybody. */
bool afz_gpu_shared_take(struct afz_gpu_shared *shared, uint32_t *seq, struct afz_gpu_report *ret);

/* Empties it for a new helper. Only while none runs. */
void afz_gpu_shared_reset(struct afz_gpu_shared *shared);

#endif
