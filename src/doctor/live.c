/* The effects of the machine we run on. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "bus.h"
#include "doctor.h"
#include "hold_tier.h"

static const char *live_variable(void *ctx, const char *name)
{
        (void)ctx;
        return getenv(name);
}

static int live_may(void *ctx, int dir_fd, const char *path, int mode)
{
        (void)ctx;
        return faccessat(dir_fd < 0 ? AT_FDCWD : dir_fd, path, mode, AT_EACCESS) < 0 ? -errno : 0;
}

static ssize_t live_link(void *ctx, const char *path, char *buf, size_t cap)
{
        (void)ctx;
        ssize_t n = readlink(path, buf, cap);
        return n < 0 ? -errno : n;
}

static int live_ask(void *ctx, bool system, struct afz_manager_answer *ret)
{
        (void)ctx;
        return afz_bus_manager_version(system, ret->version, sizeof ret->version);
}

static int live_trial(void *ctx, const struct afz_env *env, enum afz_tier tier,
                      struct afz_trial *ret)
{
        (void)ctx;
        if (env->fixture_fd >= 0) /* what holds here says nothing of the machine that it shows */
                return -ENODATA;
        for (int i = 0; i < AFZ_TIER_COUNT; i++)
                if (afz_hold_tiers[i]->tier == tier)
                        return afz_trial_run(env, afz_hold_tiers[i], ret);
        return -EINVAL;
}

void afz_doctor_input_live(const struct afz_env *env, struct afz_doctor_input *ret)
{
        *ret = (struct afz_doctor_input){
                .env = env,
                .uid = geteuid(),
                .effects = {.variable = live_variable,
                            .may = live_may,
                            .link = live_link,
                            .ask_manager = live_ask,
                            .trial = live_trial},
        };
}
