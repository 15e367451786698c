#include "thaw.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "cgroup_path.h"
#include "tier_cgroup1_place.h"

static int thaw_v2(const struct afz_env *env, const char *place)
{
        char path[AFZ_CGROUP_PATH_MAX + 8];
        while (*place == '/')
                place++;
        if (afz_path(path, sizeof path, "%s/job", place) < 0)
                return -ENAMETOOLONG;
        int fd = afz_env_open(env, AFZ_ROOT_CGROUP, path, O_DIRECTORY);
        if (fd < 0)
                return fd;
        int r = afz_cgroup_write(fd, "cgroup.freeze", "0");
        (void)afz_cgroup_write(fd, "memory.high", "max");
        close(fd);
        return r;
}

int afz_hold_thaw(const struct afz_env *env, enum afz_tier tier, const char *place)
{
        switch (tier) {
        case AFZ_TIER_SCOPE:
        case AFZ_TIER_CGROUP2:
                return thaw_v2(env, place);
        case AFZ_TIER_CGROUP1:
                return afz_cgroup1_thaw(env, place);
        default:
                return 0;
        }
}
