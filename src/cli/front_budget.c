#include "front_budget.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "front_grant.h"
#include "hold_tier.h"
#include "lines.h"
#include "sharing.h"

/* Less than this is hardly enough to train anything: who has twice as much is named. */
#define SMALL_BYTES (UINT64_C(1) << 30)

struct reckoning {
        struct afz_guard_order *order;
        const struct afz_front_wish *wish;
        const struct afz_front_style *style;
        struct afz_run *run;
        const struct afz_env *env;
        char inside[AFZ_RUN_ID_CAP];
        uint64_t inside_bytes;      /* what that one has left; UINT64_MAX: it is in none */
        struct afz_sharing sharing; /* the machine, and what others have of it */
        bool tight;
        uint64_t granted_bytes; /* by a batch system, and that is least; 0: it is not */
        bool cut; /* --budget was more than a container, or the run around us, has left */
        char why[AFZ_RUN_WHY_CAP];
};

/* A run that is started by the job of another gets a part of what that one was promised. */
static void look_around(struct reckoning *r)
{
        const char *id = getenv("ANTIFREEZE_RUN");
        struct afz_run_ref ref;
        struct afz_run_page outer;
        if (!id || !id[0] || r->order->attach || afz_run_find(id, &ref) < 0 || !ref.live ||
            afz_run_peek(&ref, &outer) < 0 || outer.budget_bytes == 0)
                return;
        r->inside_bytes = afz_run_page_promised(&outer);
        memcpy(r->inside, outer.id, sizeof r->inside);
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

static bool takes(const struct afz_guard_order *order)
{
        return order->policy != AFZ_POLICY_WATCH && !order->dry_run;
}

/* What there is, and what is not for us after others were asked to make room. */
static int look(struct reckoning *r, uint64_t promised_bytes)
{
        const struct afz_front_wish *wish = r->wish;
        struct afz_machine_room room;
        int err = afz_machine_room(r->env, &room);
        if (err < 0) {
                snprintf(r->why, sizeof r->why, "the machine's memory: %s", strerror(-err));
                return err;
        }
        uint64_t given =
                wish->budget_given ? afz_size_or_percent_of(wish->budget, room.total_bytes) : 0;
        if (r->inside_bytes < room.limit_bytes)
                room.limit_bytes = r->inside_bytes;
        if (r->inside[0] || afz_sharing_join(r->env, given, takes(r->order), &r->sharing) < 0)
                r->sharing = (struct afz_sharing){.room = room, .promised_bytes = promised_bytes};
        return 0;
}

/* As if it had been given by --budget: what others need comes of what they were granted. What was
 * granted to who attaches is not what the job was, which may be above it already. */
static void keep_to_grant(struct reckoning *r, struct afz_budget *budget)
{
        if (r->order->attach)
                return;
        const struct afz_machine_room *room = &r->sharing.room;
        uint64_t granted = afz_grant_bytes(getenv);
        uint64_t most = afz_room_of(room->total_bytes, UINT64_MAX, granted);
        if (granted == UINT64_MAX || most >= budget->ram_bytes)
                return;
        r->granted_bytes = granted;
        budget->ram_bytes = most;
        budget->swap_bytes = afz_swap_default(most, room->swap_free_bytes);
        budget->given = true;
}

static int make(void *ctx, uint64_t promised_bytes)
{
        struct reckoning *r = ctx;
        struct afz_guard_order *order = r->order;
        const struct afz_front_wish *wish = r->wish;
        const struct afz_machine_room *room = &r->sharing.room;
        int err = look(r, promised_bytes);
        if (err < 0)
                return err;
        order->ram_total_bytes = room->total_bytes;
        struct afz_budget budget = afz_budget_default(room->total_bytes, room->available_bytes,
                                                      r->sharing.promised_bytes, room->limit_bytes,
                                                      room->swap_free_bytes, &r->tight);
        if (wish->budget_given) {
                budget.ram_bytes = afz_size_or_percent_of(wish->budget, room->total_bytes);
                uint64_t most = room->limit_bytes < room->total_bytes ? room->limit_bytes
                                                                      : room->total_bytes;
                r->cut = budget.ram_bytes > most;
                if (r->cut)
                        budget.ram_bytes = most;
                budget.swap_bytes = afz_swap_default(budget.ram_bytes, room->swap_free_bytes);
                budget.given = true;
                r->tight = false;
        } else {
                keep_to_grant(r, &budget);
        }
        if (wish->swap_given)
                budget.swap_bytes = wish->swap_bytes;
        order->budget = budget;
        struct afz_run_page first = {
                .budget_bytes = takes(order) ? budget.ram_bytes : 0,
                .swap_bytes = budget.swap_bytes,
                .budget_given = budget.given,
                .policy = order->policy,
        };
        memcpy(first.inside, r->inside, sizeof first.inside);
        describe(order, first.cmd, sizeof first.cmd);
        return afz_run_new(wish->run_dir, &first, r->run, r->why);
}

#define SAY(r, ...) afz_front_say((r)->style, (r)->run->page->id, "budget", __VA_ARGS__)

static void warn_small(const struct reckoning *r)
{
        const struct afz_stake *other = &r->sharing.largest;
        uint64_t ours = r->order->budget.ram_bytes;
        char small[AFZ_SIZE_TEXT_CAP], theirs[AFZ_SIZE_TEXT_CAP];
        if (ours < SMALL_BYTES && other->budget_bytes / 2 > ours)
                SAY(r, "the job gets only %s: run %s was promised %s; give both a --budget",
                    afz_format_size(small, sizeof small, ours), other->id,
                    afz_format_size(theirs, sizeof theirs, other->budget_bytes));
        else if (r->cut)
                SAY(r, "the %s has only %s: that is the budget",
                    ours == r->order->ram_total_bytes ? "machine"
                    : r->inside[0]                    ? "run around this one"
                                                      : "container",
                    afz_format_size(small, sizeof small, ours));
        else if (r->granted_bytes != 0)
                SAY(r, "Slurm has granted %s: the job gets %s",
                    afz_format_size(theirs, sizeof theirs, r->granted_bytes),
                    afz_format_size(small, sizeof small, ours));
        else if (r->tight)
                SAY(r, "the machine has hardly any memory left: the job gets a small budget");
}

static int collect(void *env, const char *place)
{
        return afz_hold_collect(env, place);
}

int afz_front_promise(struct afz_guard_order *order, const struct afz_front_wish *wish,
                      const struct afz_front_style *style, struct afz_run *ret)
{
        struct afz_env env;
        struct reckoning r = {.order = order,
                              .wish = wish,
                              .style = style,
                              .run = ret,
                              .env = &env,
                              .inside_bytes = UINT64_MAX};
        int err = afz_env_open_live(&env);
        if (err < 0) {
                afz_front_say(style, NULL, "failed", "cannot open /proc: %s", strerror(-err));
                return AFZ_EXIT_OWN;
        }
        (void)afz_run_collect(collect, &env, NULL);
        char why[AFZ_RUN_WHY_CAP] = "";
        look_around(&r);
        err = afz_run_ledger(r.inside, make, &r, why);
        if (err < 0)
                afz_sharing_again(&env); /* who made room for us may have it back */
        afz_env_done(&env);
        /* A scope of its own would take the job out of the run around it. */
        if (r.inside[0] && order->best_tier == AFZ_TIER_SCOPE)
                order->best_tier = AFZ_TIER_CGROUP2;
        if (err < 0) {
                bool above = wish->run_dir && err == -ENOENT; /* what lies above is never made */
                afz_front_say(style, NULL, "failed", "cannot make the run: %s%s",
                              r.why[0] ? r.why
                              : why[0] ? why
                                       : strerror(-err),
                              above ? " (make the folder above it first)" : "");
                return AFZ_EXIT_OWN;
        }
        if (err > 0)
                afz_front_say(style, ret->page->id, "unrecorded",
                              "this run is not recorded: %s (--run-dir names another place)",
                              r.why);
        if ((!order->budget.given || r.cut || r.granted_bytes != 0) &&
            order->policy != AFZ_POLICY_WATCH)
                warn_small(&r);
        return 0;
}
