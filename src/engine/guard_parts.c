/* The jobs of a server, each of which may be stopped alone. */
#include <stdio.h>

#include "clock.h"
#include "guard_state.h"
#include "last_words.h"

static const struct {
        uint64_t words_ns;   /* a notebook's kernel shows what it is told within 200 ms */
        uint64_t more_bytes; /* it grows all the same: then there is no time for words */
        uint64_t late_bytes; /* beyond that when it is killed already: it must be another */
        uint64_t room_bytes; /* that the kernel's limit leaves it meanwhile, to be not first */
        uint64_t gone_ns;    /* to give its memory back, once it is killed */
        uint64_t look_ns;
} part_rule = {
        .words_ns = 400 * AFZ_NS_PER_MS,
        .more_bytes = UINT64_C(12) << 20,
        .late_bytes = UINT64_C(128) << 20,
        .room_bytes = UINT64_C(32) << 20,
        .gone_ns = AFZ_NS_PER_S,
        .look_ns = 4 * AFZ_NS_PER_MS,
};

static double gb(uint64_t bytes)
{
        return (double)bytes / (1 << 30);
}

static const struct afz_guard_part *find(const struct afz_guard *g, uint64_t pid)
{
        for (unsigned i = 0; i < g->parts; i++)
                if (g->part[i].pid == pid)
                        return &g->part[i];
        return NULL;
}

static void split(struct afz_guard *g, uint64_t pid, const char *name)
{
        struct afz_proc_stat stat;
        char buf[AFZ_PROC_STAT_CAP];
        if (afz_proc_stat_read(&g->env, pid, buf, &stat) < 0)
                return;
        int n = g->hold.row->split(g->hold.state, (pid_t)pid);
        if (n < 0)
                return;
        g->part[n] = (struct afz_guard_part){.pid = pid, .start_ticks = stat.start_ticks};
        snprintf(g->part[n].name, sizeof g->part[n].name, "%s", name);
        if ((unsigned)n >= g->parts)
                g->parts = (unsigned)n + 1;
}

static bool is_in(const struct afz_scout_report *report, uint64_t pid)
{
        for (unsigned i = 0; i < report->parts && i < AFZ_SCOUT_PARTS; i++)
                if (report->part_pid[i] == pid)
                        return true;
        return false;
}

void afz_guard_split_parts(struct afz_guard *g, const struct afz_scout_report *report)
{
        if (!report->server)
                return;
        g->server = true;
        for (unsigned i = 0; i < g->parts && !g->ending.on; i++)
                g->part[i].over |= !is_in(report, g->part[i].pid);
        for (unsigned i = 0; i < report->parts && i < AFZ_SCOUT_PARTS; i++)
                if (!find(g, report->part_pid[i]))
                        split(g, report->part_pid[i], report->part_name[i]);
}

/* The one that holds most; NULL: nobody lives. */
static struct afz_guard_part *largest(struct afz_guard *g, uint64_t *ret_bytes, unsigned *ret_alive)
{
        struct afz_guard_part *found = NULL;
        uint64_t need;
        *ret_alive = 0;
        *ret_bytes = 0;
        for (unsigned i = 0; i < g->parts; i++) {
                if (g->part[i].over || g->hold.row->look_part(g->hold.state, i, &need) < 0)
                        continue;
                ++*ret_alive;
                if (need > *ret_bytes) {
                        *ret_bytes = need;
                        found = &g->part[i];
                }
        }
        return found;
}

/* "a.ipynb (pid 7)" */
static const char *name_of(const struct afz_guard_part *part, char *buf, size_t cap)
{
        if (part->name[0] != '\0')
                snprintf(buf, cap, "the kernel of %s (pid %llu)", part->name,
                         (unsigned long long)part->pid);
        else
                snprintf(buf, cap, "the kernel with pid %llu", (unsigned long long)part->pid);
        return buf;
}

static bool is_still(const struct afz_guard *g, const struct afz_guard_part *part)
{
        struct afz_proc_stat stat;
        char buf[AFZ_PROC_STAT_CAP];
        return afz_proc_stat_check(&g->env, part->pid, part->start_ticks, buf, &stat) == 0;
}

void afz_guard_warn_part(struct afz_guard *g)
{
        char text[512];
        uint64_t bytes, need = 0;
        unsigned alive;
        const struct afz_guard_part *part = largest(g, &bytes, &alive);
        if (!part || !is_still(g, part))
                return;
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need);
        snprintf(text, sizeof text,
                 "antifreeze: the server and its notebooks need %.2f of the %.2f GB that they may "
                 "use. This kernel holds most of it (%.2f GB): if that goes on, it is stopped.\n",
                 gb(need), gb(g->lines.hard_bytes), gb(bytes));
        (void)afz_last_words(&g->env, (pid_t)part->pid, text);
}

/* Whether there is a use in waiting: its user is told, and it cannot grow much meanwhile. */
static bool say_why(struct afz_guard *g, const struct afz_guard_part *part, uint64_t bytes)
{
        char text[512];
        if (!is_still(g, part))
                return false;
        snprintf(text, sizeof text,
                 "antifreeze: this kernel is stopped: it holds %.2f GB, and the server and its "
                 "notebooks have used up the %.2f GB that they may use. The others go on; "
                 "`antifreeze set` or --budget raises the limit.\n",
                 gb(bytes), gb(g->lines.hard_bytes));
        return afz_last_words(&g->env, (pid_t)part->pid, text) == 0 &&
               afz_refuse_more(&g->env, (pid_t)part->pid) == 0;
}

/* A little more than the budget while its last words are passed on, and back again. */
static void move_limit(struct afz_guard *g, bool lift)
{
        struct afz_budget budget = g->budget;
        if (lift)
                budget.ram_bytes += part_rule.room_bytes;
        if (g->hold.row->limit(g->hold.state, &budget) == 0)
                g->limit_lifted = lift;
}

static void leave(struct afz_guard *g)
{
        g->ending = (struct afz_guard_ending){0};
        afz_ladder_again(&g->ladder);
}

static void end_part(struct afz_guard *g, uint64_t now_ns)
{
        if (g->hold.row->kill_part(g->hold.state, g->ending.part) < 0) {
                leave(g); /* the ladder finds another way */
                return;
        }
        uint64_t need;
        if (afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need) && need > g->ending.need_bytes)
                g->ending.need_bytes = need;
        g->ending.killed = true;
        g->ending.until_ns = now_ns + part_rule.gone_ns;
}

bool afz_guard_stop_part(struct afz_guard *g)
{
        char name[128];
        uint64_t bytes, need = 0;
        unsigned alive;
        struct afz_guard_part *part = largest(g, &bytes, &alive);
        if (!part)
                return false;
        afz_guard_release(g); /* so that it can pass our words on */
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need);
        part->over = true;
        g->parts_stopped++;
        g->ending = (struct afz_guard_ending){
                .on = true, .part = (unsigned)(part - g->part), .need_bytes = need};
        if (say_why(g, part, bytes)) {
                move_limit(g, true);
                g->ending.until_ns = g->pulse.t_ns + part_rule.words_ns;
        } else {
                end_part(g, g->pulse.t_ns);
        }
        afz_guard_did(g, AFZ_ACTION_KILL);
        afz_guard_say(g, "stop-part", true,
                      "stopped %s alone: it held %.2f GB, and all together had used up their %.2f "
                      "GB; the server%s",
                      name_of(part, name, sizeof name), gb(bytes), gb(g->lines.hard_bytes),
                      alive > 1 ? " and the other kernels go on" : " goes on");
        return true;
}

void afz_guard_part_killed(struct afz_guard *g)
{
        uint64_t need = 0;
        if (g->ending.on) /* the one that we stop */
                return;
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need);
        g->parts_stopped++;
        g->ending = (struct afz_guard_ending){.on = true,
                                              .killed = true,
                                              .by_system = true,
                                              .until_ns = g->pulse.t_ns + part_rule.gone_ns,
                                              .need_bytes = need};
}

/* Which one the system has taken is seen when it is gone. */
static void tell_killed(struct afz_guard *g, const struct afz_guard_part *part)
{
        char name[128];
        afz_guard_say(g, "stop-part", true,
                      "the system ended %s at the memory limit, because it grew too fast to be "
                      "stopped before; the others go on",
                      part ? name_of(part, name, sizeof name) : "a process of the server");
}

static bool is_gone(struct afz_guard *g)
{
        uint64_t left;
        if (!g->ending.by_system)
                return g->hold.row->look_part(g->hold.state, g->ending.part, &left) < 0;
        for (unsigned i = 0; i < g->parts; i++) {
                if (g->part[i].over || g->hold.row->look_part(g->hold.state, i, &left) == 0)
                        continue;
                g->part[i].over = true;
                tell_killed(g, &g->part[i]);
                return true;
        }
        return false;
}

bool afz_guard_part_turn(struct afz_guard *g)
{
        struct afz_guard_ending *e = &g->ending;
        uint64_t need = 0, now = g->pulse.t_ns;
        if (!e->on && g->limit_lifted)
                move_limit(g, false);
        if (!e->on)
                return false;
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need);
        /* What it takes until the signal arrives is no reason to stop another one. */
        bool grows =
                need > e->need_bytes + (e->killed ? part_rule.late_bytes : part_rule.more_bytes);
        bool gone = is_gone(g);
        if (gone || (e->killed && (grows || now >= e->until_ns))) {
                if (e->by_system && !gone)
                        tell_killed(g, NULL);
                leave(g);
                return false;
        }
        if (!e->killed && (grows || now >= e->until_ns))
                end_part(g, now);
        g->wake_ns = now + part_rule.look_ns;
        return true;
}
