#include "front_budget.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "hold_tier.h"
#include "lines.h"
#include "sense.h"

struct reckoning {
        struct afz_guard_order *order;
        const struct afz_front_wish *wish;
        struct afz_run *run;
        uint64_t available_bytes, limit_bytes, swap_free_bytes;
        bool tight;
        char why[AFZ_RUN_WHY_CAP];
};

/* The machine's memory now, and the container's. */
static int look(const struct afz_env *env, struct reckoning *r)
{
        struct afz_batch *batch;
        void *host;
        uint64_t limit, used;
        int err = afz_batch_new(1, &batch);
        if (err < 0)
                return err;
        err = afz_sense_host.open(env, &(struct afz_target){0}, &host);
        if (err >= 0) {
                afz_batch_start(batch, afz_env_now(env));
                err = afz_sense_host.read(host, batch);
                afz_sense_host.close(host);
        }
        const struct afz_sample *s = &batch->sample[0];
        if (err >= 0 && (!afz_sample_get_u64(s, AFZ_HOST_MEM_TOTAL, &r->order->ram_total_bytes) ||
                         !afz_sample_get_u64(s, AFZ_HOST_MEM_AVAILABLE, &r->available_bytes)))
                err = -ENODATA;
        if (err >= 0) {
                r->limit_bytes = UINT64_MAX;
                if (afz_sample_get_u64(s, AFZ_HOST_LIMIT, &limit) &&
                    afz_sample_get_u64(s, AFZ_HOST_LIMIT_USED, &used))
                        r->limit_bytes = limit > used ? limit - used : 0;
                (void)afz_sample_get_u64(s, AFZ_HOST_SWAP_FREE, &r->swap_free_bytes);
        }
        afz_batch_free(batch);
        return err;
}

static void describe(const struct afz_guard_order *order, char *buf, size_t cap)
{
        size_t n = 0;
        if (order->attach)
                n += (size_t)snprintf(buf, cap, "attached to %d", (int)order->attach);
        for (int i = 0; order->argv && order->argv[i] && n + 1 < cap; i++) {
                if (i > 0)
                        buf[n++] = ' ';
                n += afz_span_copy(afz_span_str(order->argv[i]), buf + n, cap - n);
        }
        buf[n < cap ? n : cap - 1] = '\0';
}

static int make(void *ctx, uint64_t promised_bytes)
{
        struct reckoning *r = ctx;
        struct afz_guard_order *order = r->order;
        const struct afz_front_wish *wish = r->wish;
        struct afz_budget budget =
                afz_budget_default(order->ram_total_bytes, r->available_bytes, promised_bytes,
                                   r->limit_bytes, r->swap_free_bytes, &r->tight);
        if (wish->budget_given) {
                budget.ram_bytes = afz_size_or_percent_of(wish->budget, order->ram_total_bytes);
                budget.swap_bytes = afz_swap_default(budget.ram_bytes, r->swap_free_bytes);
                budget.given = true;
                r->tight = false;
        }
        if (wish->swap_given)
                budget.swap_bytes = wish->swap_bytes;
        order->budget = budget;
        struct afz_run_page first = {
                .budget_bytes = order->policy == AFZ_POLICY_WATCH ? 0 : budget.ram_bytes,
                .swap_bytes = budget.swap_bytes,
                .budget_given = budget.given,
                .policy = order->policy,
        };
        describe(order, first.cmd, sizeof first.cmd);
        return afz_run_new(wish->run_dir, &first, r->run, r->why);
}

static int collect(void *env, const char *place)
{
        return afz_hold_collect(env, place);
}

int afz_front_promise(struct afz_guard_order *order, const struct afz_front_wish *wish,
                      struct afz_run *ret)
{
        struct reckoning r = {.order = order, .wish = wish, .run = ret};
        struct afz_env env;
        int err = afz_env_open_live(&env);
        if (err < 0)
                return afz_fail(AFZ_EXIT_OWN, "cannot open /proc: %s", strerror(-err));
        (void)afz_run_collect(collect, &env, NULL);
        err = look(&env, &r);
        afz_env_done(&env);
        if (err < 0)
                return afz_fail(AFZ_EXIT_OWN, "cannot read the machine's memory: %s",
                                strerror(-err));
        char why[AFZ_RUN_WHY_CAP] = "";
        err = afz_run_ledger(make, &r, why);
        if (err < 0)
                return afz_fail(AFZ_EXIT_OWN, "cannot make the run%s%s: %s",
                                wish->run_dir ? " in " : "", wish->run_dir ? wish->run_dir : "",
                                r.why[0] ? r.why
                                : why[0] ? why
                                         : strerror(-err));
        if (err > 0)
                afz_say("this run is not recorded: %s", r.why);
        if (r.tight && order->policy != AFZ_POLICY_WATCH)
                afz_say("the machine has hardly any memory left: the job gets a small budget");
        return 0;
}
