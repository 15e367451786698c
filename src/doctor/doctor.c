#include "doctor.h"

#include <stdlib.h>

#include "checks.h"
#include "config.h"
#include "count_of.h"

const struct afz_feature afz_feature_table[] = {AFZ_FEATURE_ROWS};
const size_t afz_feature_count = AFZ_COUNT_OF(afz_feature_table);

int afz_doctor_run(const struct afz_doctor_input *in, struct afz_diagnosis *ret)
{
        struct afz_doctor_ctx ctx = {
                .env = in->env,
                .effects = &in->effects,
                .uid = in->uid,
                .gpu = in->gpu,
                .probe = in->probe,
        };
        int r = afz_mount_list_read(in->env, &ctx.mounts);
        if (r < 0)
                return r;
        afz_box_look(&ctx, &ctx.box);
        afz_cgroup_layout_read(in->env, &ctx.cgroup);
        afz_manager_look(&ctx, &ctx.manager);
        ctx.forecast = afz_tier_forecast(&ctx);
        ctx.trial = ret->trial;
        ctx.trials = ret->trials = afz_try_tiers(&ctx, ret->trial);

        for (size_t i = 0; i < afz_check_count; i++) {
                struct afz_finding *f = &ret->finding[i];
                *f = (struct afz_finding){0};
                f->level = afz_check_table[i].run(&ctx, f);
        }
        const struct afz_trial *proved = afz_proved_trial(&ctx);
        ret->proved = proved;
        ret->tier = proved ? proved->tier : ctx.forecast;
        afz_mount_list_done(&ctx.mounts);
        return 0;
}
