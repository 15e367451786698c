#include "tier_none.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pidfd.h"

static const struct {
        unsigned sweeps;        /* looks for newborns in one call; the next call goes on */
        uint64_t release_bytes; /* a dead process with less is left to the kernel */
} limit = {
        .sweeps = 8, /* each leaves only what was born within the last one: about 1 ms */
        .release_bytes = UINT64_C(16) << 20,
};

static void none_close(void *hold);

static int none_open(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                     pid_t keeper, void **ret, char *why)
{
        struct afz_none *none = calloc(1, sizeof *none);
        (void)plan;
        if (!none)
                return -ENOMEM;
        none->env = env;
        none->page_bytes = (uint64_t)env->page_bytes;
        none->meminfo_fd = afz_env_open(env, AFZ_ROOT_PROC, "meminfo", 0);
        afz_pss_gate_init(&none->gate, afz_env_now(env));
        int r = afz_roster_new(env, pid, getpid(), &none->roster);
        if (r >= 0)
                r = afz_aide_start(env, AFZ_ROSTER_MAX, &none->aide);
        afz_none_begin(none);
        if (r >= 0) {
                if (keeper > 0)
                        afz_roster_spare(none->roster, keeper);
                if (afz_aide_pid(none->aide) > 0)
                        afz_roster_spare(none->roster, afz_aide_pid(none->aide));
                r = afz_roster_update(none->roster, true, afz_none_joined, none);
        }
        if (r >= 0 && !afz_roster_find(none->roster, (uint64_t)pid))
                r = -ESRCH;
        if (r < 0) {
                snprintf(why, AFZ_HOLD_WHY_CAP, "%s",
                         r == -ESRCH ? "the process is gone" : strerror(-r));
                none_close(none);
                return r;
        }
        *ret = none;
        return 0;
}

static void none_close(void *hold)
{
        struct afz_none *none = hold;
        if (!none)
                return;
        if (none->meminfo_fd >= 0)
                close(none->meminfo_fd);
        afz_aide_stop(none->aide); /* whom we stopped goes on */
        afz_roster_free(none->roster);
        free(none);
}

static int none_oom_fd(const void *hold)
{
        (void)hold;
        return -1;
}

static int none_limit(void *hold, const struct afz_budget *budget)
{
        (void)hold, (void)budget;
        return -EOPNOTSUPP;
}

static int none_slow(void *hold, uint64_t bytes)
{
        (void)hold, (void)bytes;
        return -EOPNOTSUPP;
}

/* The aide knows before it happens: should we die in between, it lets go. */
static void stop(struct afz_none *none, struct afz_roster_row *row)
{
        if (row->braked || row->zombie)
                return;
        afz_aide_note_stop(none->aide, row->pid, row->start_ticks);
        row->braked = afz_roster_signal(none->roster, row, SIGSTOP) == 0;
}

void afz_none_stop_row(struct afz_none *none, struct afz_roster_row *row)
{
        struct afz_proc_stat st;
        if (row->braked || row->zombie || afz_roster_stat(none->roster, row, &st) < 0)
                return;
        /* Whom the user or a debugger has stopped is theirs to let go. */
        if (st.state != 'T' && st.state != 't')
                stop(none, row);
}

/* Parents first, so that none sees its child stop and wonders. */
static int none_brake(void *hold)
{
        struct afz_none *none = hold;
        const uint16_t *order;
        none->braked = true; /* who is found from now on is stopped as it joins */
        size_t n = afz_roster_top_down(none->roster, &order);
        for (size_t i = 0; i < n; i++)
                afz_none_stop_row(none, afz_roster_at(none->roster, order[i]));
        for (unsigned k = 0; k < limit.sweeps; k++) {
                int r = afz_roster_update(none->roster, true, afz_none_joined, none);
                if (r <= 0)
                        return r;
        }
        return 0;
}

static int none_release(void *hold)
{
        struct afz_none *none = hold;
        const uint16_t *order;
        none->braked = false;
        size_t n = afz_roster_top_down(none->roster, &order);
        while (n-- > 0) {
                struct afz_roster_row *row = afz_roster_at(none->roster, order[n]);
                if (!row->braked)
                        continue;
                (void)afz_roster_signal(none->roster, row, SIGCONT);
                row->braked = false;
        }
        afz_aide_forget_stops(none->aide);
        return 0;
}

/* The kernel has the call (5.10), and we are allowed it on others. */
static bool may_page_out(void)
{
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};
        if (syscall(SYS_process_madvise, -1, NULL, 0UL, 0, 0U) < 0 && errno == ENOSYS)
                return false;
        return syscall(SYS_capget, &head, caps) == 0 && (caps[0].effective >> CAP_SYS_NICE & 1);
}

static int none_squeeze(void *hold, uint64_t bytes)
{
        struct afz_none *none = hold;
        if (!none->has_swap || !may_page_out())
                return -EOPNOTSUPP;
        if (!afz_aide_idle(none->aide) || none->round.asked)
                return -EBUSY;
        struct afz_aide_row *ask = afz_aide_rows(none->aide);
        size_t n = 0, slots = afz_roster_slots(none->roster);
        for (size_t i = 0; i < slots; i++) {
                const struct afz_roster_row *row = afz_roster_at(none->roster, i);
                if (row->pid != 0 && !row->zombie && row->need.anon_bytes >= limit.release_bytes)
                        ask[n++] = (struct afz_aide_row){.pid = row->pid,
                                                         .start_ticks = row->start_ticks,
                                                         .place = (uint32_t)i};
        }
        return n > 0 ? afz_aide_ask(none->aide, AFZ_AIDE_SQUEEZE, n, bytes) : 0;
}

static bool is_in(const struct afz_roster_row *row, unsigned part)
{
        return row->pid != 0 && !row->zombie && (part == 0 || row->part == part);
}

/* Those that stand still fork no more; so all of them are stopped before the first is killed, and
 * nobody has time to answer the death of another with a new child. */
static void stop_all(struct afz_none *none, unsigned part)
{
        for (unsigned k = 0; k < limit.sweeps; k++) {
                const uint16_t *order;
                size_t n = afz_roster_top_down(none->roster, &order);
                for (size_t i = 0; i < n; i++) {
                        struct afz_roster_row *row = afz_roster_at(none->roster, order[i]);
                        if (is_in(row, part))
                                stop(none, row);
                }
                if (afz_roster_update(none->roster, true, afz_none_joined, none) <= 0)
                        return;
        }
}

/* The aide frees what the dead held, without waiting for them to get to it themselves. */
static void release_memory(struct afz_none *none, unsigned part)
{
        if (!afz_aide_idle(none->aide) || none->round.asked)
                return;
        struct afz_aide_row *ask = afz_aide_rows(none->aide);
        size_t n = 0, slots = afz_roster_slots(none->roster);
        for (size_t i = 0; i < slots; i++) {
                const struct afz_roster_row *row = afz_roster_at(none->roster, i);
                if (is_in(row, part) && row->need.anon_bytes >= limit.release_bytes)
                        ask[n++] = (struct afz_aide_row){.pid = row->pid,
                                                         .start_ticks = row->start_ticks,
                                                         .place = (uint32_t)i};
        }
        if (n > 0)
                (void)afz_aide_ask(none->aide, AFZ_AIDE_RELEASE, n, 0);
}

static int kill_rows(struct afz_none *none, unsigned part)
{
        int r = 0;
        stop_all(none, part);
        for (size_t i = 0; i < afz_roster_slots(none->roster); i++) {
                struct afz_roster_row *row = afz_roster_at(none->roster, i);
                if (!is_in(row, part))
                        continue;
                int k = afz_roster_signal(none->roster, row, SIGKILL);
                if (k < 0 && k != -ESRCH)
                        r = k;
        }
        release_memory(none, part);
        return r;
}

static int none_kill(void *hold)
{
        return kill_rows(hold, 0);
}

/* One that nobody is in: parts come and go, as often as a kernel is restarted. */
static unsigned free_part(struct afz_none *none)
{
        unsigned part = 1;
        for (size_t i = 0; i < afz_roster_slots(none->roster) && part <= AFZ_HOLD_PARTS; i++) {
                const struct afz_roster_row *row = afz_roster_at(none->roster, i);
                if (row->pid == 0 || row->zombie || row->part != part)
                        continue;
                part++; /* taken: the next, from the start */
                i = SIZE_MAX;
        }
        return part;
}

static int none_split(void *hold, pid_t pid)
{
        struct afz_none *none = hold;
        struct afz_roster_row *root = afz_roster_find(none->roster, (uint64_t)pid);
        const uint16_t *order;
        if (!root)
                return -ESRCH;
        unsigned part = free_part(none);
        if (part > AFZ_HOLD_PARTS)
                return -ENOSPC;
        root->part = (uint8_t)part;
        size_t n = afz_roster_top_down(none->roster, &order);
        for (size_t i = 0; i < n; i++) {
                struct afz_roster_row *row = afz_roster_at(none->roster, order[i]);
                const struct afz_roster_row *parent = afz_roster_find(none->roster, row->ppid);
                if (parent && parent->part == root->part)
                        row->part = root->part;
        }
        return root->part - 1;
}

static int none_kill_part(void *hold, unsigned part)
{
        return part < AFZ_HOLD_PARTS ? kill_rows(hold, part + 1) : -EINVAL;
}

static pid_t none_other(void *hold, pid_t not )
{
        struct afz_none *none = hold;
        const uint16_t *order;
        (void)afz_roster_update(none->roster, true, afz_none_joined, none);
        size_t n = afz_roster_top_down(none->roster, &order);
        for (size_t i = 0; i < n; i++) {
                struct afz_roster_row *row = afz_roster_at(none->roster, order[i]);
                struct afz_proc_stat st;
                if (row->pid == (uint64_t) not || afz_roster_stat(none->roster, row, &st) < 0)
                        continue;
                if (!row->zombie)
                        return (pid_t)row->pid;
        }
        return 0;
}

static void none_place(const void *hold, char buf[AFZ_HOLD_PLACE_CAP])
{
        (void)hold;
        buf[0] = '\0';
}

void afz_none_spare(const struct afz_hold *hold, pid_t pid)
{
        if (hold->row == &afz_hold_none)
                afz_roster_spare(((struct afz_none *)hold->state)->roster, pid);
}

pid_t afz_none_aide(const struct afz_hold *hold)
{
        if (hold->row != &afz_hold_none)
                return 0;
        return afz_aide_pid(((const struct afz_none *)hold->state)->aide);
}

const struct afz_hold_tier afz_hold_none = {
        .tier = AFZ_TIER_NONE,
        .open = none_open,
        .look = afz_none_look,
        .oom_fd = none_oom_fd,
        .limit = none_limit,
        .brake = none_brake,
        .release = none_release,
        .squeeze = none_squeeze,
        .slow = none_slow,
        .kill = none_kill,
        .split = none_split,
        .look_part = afz_none_look_part,
        .kill_part = none_kill_part,
        .other = none_other,
        .place = none_place,
        .close = none_close,
};
