#ifndef AFZ_GPU_FACTS_H
#define AFZ_GPU_FACTS_H
/* The few things that doctor wants to know of the GPUs, in the shape in which it wants them. Asked
 * of the GPU sense on a live machine, filled in by hand in tests.
 */
#include <stdbool.h>
#include <stdint.h>

#include "env.h"
#include "gpu.h"

struct afz_gpu_fact {
        char name[AFZ_GPU_NAME_CAP];
        uint64_t number;
        int64_t parent;  /* of a MIG instance: the number of its GPU; else -1 */
        bool has_memory; /* total and used are known, and are its own, not the machine's RAM */
        uint64_t total_bytes, used_bytes;
        bool has_processes;  /* the list could be read; else those below mean nothing */
        uint32_t processes;  /* that hold memory on it, as the driver tells */
        uint32_t unseen;     /* of them, pids that are not in our /proc */
        uint64_t unseen_pid; /* one of those */
};

struct afz_gpu_facts {
        struct afz_gpu_status nvidia;
        bool late; /* the driver did not answer within the time given */
        uint32_t count;
        struct afz_gpu_fact gpu[AFZ_GPU_MAX];
};

/* Opens the GPU sense, waits for one answer of the driver at most as long as given, and closes it.
 * 0, or -ENOMEM; that there is no GPU is an answer. `ret` is large: not for a small stack. */
int afz_gpu_facts_ask(const struct afz_env *env, uint64_t timeout_ns, struct afz_gpu_facts *ret);

#endif
