#include "sharing.h"

#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "lines.h"
#include "run.h"
#include "sense.h"
#include "share.h"

static const struct {
        uint64_t yield_ns; /* a guard looks every 100 ms at the latest, and moves a limit in some */
        int look_ms;
} wait_for = {
        .yield_ns = 400 * AFZ_NS_PER_MS,
        .look_ms = 5,
};

enum { STAKES = 256 }; /* more runs at once than anybody starts; beyond it nothing is shared */

struct table {
        struct afz_machine_room machine;
        uint64_t room_bytes;
        unsigned others, count; /* the one that joins, if there is one, is the last */
        struct afz_stake stake[STAKES + 1];
};

int afz_machine_room(const struct afz_env *env, struct afz_machine_room *ret)
{
        struct afz_machine_room room = {.limit_bytes = UINT64_MAX};
        struct afz_batch *batch;
        uint64_t limit, used;
        void *host;
        int r = afz_batch_new(1, &batch);
        if (r < 0)
                return r;
        r = afz_sense_host.open(env, &(struct afz_target){0}, &host);
        if (r >= 0) {
                afz_batch_start(batch, afz_env_now(env));
                r = afz_sense_host.read(host, batch);
                afz_sense_host.close(host);
        }
        const struct afz_sample *s = &batch->sample[0];
        if (r >= 0 && (!afz_sample_get_u64(s, AFZ_HOST_MEM_TOTAL, &room.total_bytes) ||
                       !afz_sample_get_u64(s, AFZ_HOST_MEM_AVAILABLE, &room.available_bytes)))
                r = -ENODATA;
        if (r >= 0) {
                if (afz_sample_get_u64(s, AFZ_HOST_LIMIT, &limit) &&
                    afz_sample_get_u64(s, AFZ_HOST_LIMIT_USED, &used))
                        room.limit_bytes = limit > used ? limit - used : 0;
                (void)afz_sample_get_u64(s, AFZ_HOST_SWAP_FREE, &room.swap_free_bytes);
                *ret = room;
        }
        afz_batch_free(batch);
        return r < 0 ? r : 0;
}

/* The runs first, then the machine: what they take in between is missing, not counted twice. */
static int reckon(const struct afz_env *env, const struct afz_stake *join, struct table *t)
{
        int r = afz_run_stakes(t->stake, STAKES);
        if (r < 0)
                return r;
        t->others = t->count = (unsigned)r;
        if (join)
                t->stake[t->count++] = *join;
        r = afz_machine_room(env, &t->machine);
        if (r < 0)
                return r;
        t->room_bytes = afz_room_of(t->machine.total_bytes, t->machine.available_bytes,
                                    t->machine.limit_bytes);
        afz_share_divide(t->stake, t->count, t->room_bytes);
        return 0;
}

/* Whether somebody was asked who has not given yet. */
static bool some_yield(struct table *t)
{
        int n = afz_run_stakes(t->stake, STAKES);
        for (int i = 0; i < n; i++) {
                if (!t->stake[i].fixed && t->stake[i].over_cap)
                        return true;
        }
        return false;
}

static bool ask_to_yield(const struct table *t)
{
        bool asked = false;
        for (unsigned i = 0; i < t->others; i++) {
                const struct afz_stake *s = &t->stake[i];
                if (!s->fixed && s->share_bytes < s->budget_bytes)
                        asked |= afz_run_set_cap(s->id, s->share_bytes) == 0;
        }
        return asked;
}

static void give(struct table *t)
{
        uint64_t before[STAKES + 1];
        for (unsigned i = 0; i < t->count; i++)
                before[i] = t->stake[i].budget_bytes;
        afz_share_grant(t->stake, t->count, t->room_bytes);
        for (unsigned i = 0; i < t->others; i++)
                if (t->stake[i].budget_bytes > before[i])
                        (void)afz_run_set_cap(t->stake[i].id, t->stake[i].budget_bytes);
}

/* Asks, waits if somebody waits for it, and gives what there is then. */
static int balance(const struct afz_env *env, const struct afz_stake *join, struct table *t)
{
        int r = reckon(env, join, t);
        if (r < 0)
                return r;
        uint64_t until_ns = afz_clock_ns(CLOCK_MONOTONIC) + wait_for.yield_ns;
        if (ask_to_yield(t) && join)
                while (some_yield(t) && afz_clock_ns(CLOCK_MONOTONIC) < until_ns)
                        poll(NULL, 0, wait_for.look_ms);
        r = reckon(env, join, t);
        if (r == 0)
                give(t);
        return r;
}

static struct afz_stake largest_of(const struct table *t)
{
        struct afz_stake largest = {0};
        for (unsigned i = 0; i < t->others; i++)
                if (t->stake[i].budget_bytes > largest.budget_bytes)
                        largest = t->stake[i];
        return largest;
}

int afz_sharing_join(const struct afz_env *env, uint64_t wants, bool ask, struct afz_sharing *ret)
{
        struct afz_stake join = {.budget_bytes = wants, .fixed = wants != 0};
        struct table t;
        int r = ask ? balance(env, &join, &t) : reckon(env, &join, &t);
        if (r < 0)
                return r;
        const struct afz_stake *got = &t.stake[t.others];
        uint64_t ours = ask ? got->budget_bytes : got->share_bytes;
        *ret = (struct afz_sharing){
                .room = t.machine,
                .promised_bytes = t.room_bytes > ours ? t.room_bytes - ours : 0,
                .largest = largest_of(&t),
        };
        return 0;
}

static int again(void *env, uint64_t promised_bytes)
{
        struct table t;
        (void)promised_bytes;
        return balance(env, NULL, &t);
}

void afz_sharing_again(const struct afz_env *env)
{
        struct afz_stake stake[STAKES];
        bool shared = false;
        int n = afz_run_stakes(stake, STAKES);
        for (int i = 0; i < n; i++)
                shared |= !stake[i].fixed;
        if (shared) /* a look without the lock: most runs are alone, and nobody waits for them */
                (void)afz_run_ledger("", again, (void *)env, NULL);
}
