#include "hold.h"

#include <stddef.h>

const char *afz_tier_name(enum afz_tier tier)
{
        static const char *const name[AFZ_TIER_COUNT] = {
                [AFZ_TIER_NONE] = "none",
                [AFZ_TIER_CGROUP1] = "cgroup1",
                [AFZ_TIER_CGROUP2] = "cgroup2",
                [AFZ_TIER_SCOPE] = "scope",
        };
        return name[tier];
}

const char *afz_end_name(enum afz_end_how how)
{
        static const char *const name[AFZ_END_COUNT] = {
                [AFZ_END_RUNNING] = NULL,
                [AFZ_END_EXIT] = "exit",
                [AFZ_END_SIGNAL] = "signal",
                [AFZ_END_STOPPED] = "stopped",
                [AFZ_END_OOM_KILLED] = "oom-killed",
                [AFZ_END_LOST] = "lost",
                [AFZ_END_UNKNOWN] = "unknown",
        };
        return name[how];
}

const char *afz_action_name(enum afz_action action)
{
        static const char *const name[AFZ_ACTION_COUNT] = {
                [AFZ_ACTION_TELL] = "tell",           [AFZ_ACTION_BRAKE] = "brake",
                [AFZ_ACTION_RELEASE] = "release",     [AFZ_ACTION_SQUEEZE] = "squeeze",
                [AFZ_ACTION_SHRINK] = "shrink",       [AFZ_ACTION_CHECKPOINT] = "checkpoint",
                [AFZ_ACTION_INTERRUPT] = "interrupt", [AFZ_ACTION_TERMINATE] = "terminate",
                [AFZ_ACTION_KILL] = "kill",           [AFZ_ACTION_RESTART] = "restart",
        };
        return name[action];
}
