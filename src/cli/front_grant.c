#include "front_grant.h"

#include <stdbool.h>

#include "span.h"

#define MIB (UINT64_C(1) << 20)

/* 0: it is not there, is 0, or is no number of a size that makes sense. */
static uint64_t number(char *(*get)(const char *name), const char *name)
{
        const char *text = get(name);
        struct afz_span rest = afz_span_str(text ? text : "");
        uint64_t value;
        bool is_one = afz_span_take_u64(&rest, &value) == 0 && rest.n == 0;
        return is_one && value <= UINT32_MAX ? value : 0;
}

uint64_t afz_grant_bytes(char *(*get)(const char *name))
{
        const char *node = get("SLURMD_NODENAME"); /* salloc's shell has none: it is elsewhere */
        if (!node || node[0] == '\0')
                return UINT64_MAX;
        uint64_t mib = number(get, "SLURM_MEM_PER_NODE");
        if (mib == 0)
                mib = number(get, "SLURM_MEM_PER_CPU") * number(get, "SLURM_CPUS_ON_NODE");
        return mib == 0 || mib > UINT64_MAX / MIB ? UINT64_MAX : mib * MIB;
}
