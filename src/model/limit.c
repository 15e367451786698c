#include "limit.h"

const char *afz_limit_name(enum afz_limit_kind kind)
{
        static const char *const name[AFZ_LIMIT_COUNT] = {
                [AFZ_LIMIT_UNKNOWN] = "unknown",   [AFZ_LIMIT_NONE] = "idle",
                [AFZ_LIMIT_SWAPPING] = "swapping", [AFZ_LIMIT_MEMORY] = "memory",
                [AFZ_LIMIT_DISK] = "disk",         [AFZ_LIMIT_NETWORK] = "network",
                [AFZ_LIMIT_CPU] = "cpu",           [AFZ_LIMIT_CPU_SHARE] = "cpu-share",
                [AFZ_LIMIT_GPU] = "gpu",           [AFZ_LIMIT_STOPPED] = "stopped",
        };
        return (unsigned)kind < AFZ_LIMIT_COUNT ? name[kind] : "unknown";
}
