#include "front_grant.h"

#include "span.h"

#define MIB (UINT64_C(1) << 20)

/* 0: it is not there, is 0, or begins with no number of a size that makes sense. "2(x3)" of Slurm
 * is 2 on each of 3 nodes. */
static uint64_t number(char *(*get)(const char *name), const char *name)
{
        const char *text = get(name);
        struct afz_span rest = afz_span_str(text ? text : "");
        uint64_t value;
        return afz_span_take_u64(&rest, &value) == 0 && value <= UINT32_MAX ? value : 0;
}

uint64_t afz_grant_bytes(char *(*get)(const char *name))
{
        uint64_t mib = number(get, "SLURM_MEM_PER_NODE");
        uint64_t tasks = number(get, "SLURM_STEP_TASKS_PER_NODE");
        if (mib == 0)
                mib = number(get, "SLURM_MEM_PER_CPU") * number(get, "SLURM_CPUS_ON_NODE");
        if (mib == 0 || mib > UINT64_MAX / MIB)
                return UINT64_MAX;
        return mib * MIB / (tasks > 0 ? tasks : 1);
}
