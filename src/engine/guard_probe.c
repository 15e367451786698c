/* The probe in the job, and the keeper of its books. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "guard_state.h"
#include "keeper_ask.h"
#include "keeper_room.h"
#include "probe_note.h"

/* Where the loader takes LD_PRELOAD apart: no path in it may have one. */
#define SEPARATORS " :"

/* What was there stays, behind it: an allocator is seen by who stands before it. */
static bool put_preload(const char *library, char *buf, size_t cap)
{
        const char *before = getenv("LD_PRELOAD");
        bool there = before && strstr(before, library); /* a run inside a run */
        int len = snprintf(buf, cap, "LD_PRELOAD=%s%s%s", there ? "" : library,
                           before && before[0] && !there ? ":" : "", before ? before : "");
        return len > 0 && (size_t)len < cap;
}

/* The address sanitizer wants to be the first library and ends the program if it is not, though it
 * gets on with what only passes calls on. */
static bool put_sanitizer(char *buf, size_t cap)
{
        const char *before = getenv("ASAN_OPTIONS");
        int len = snprintf(buf, cap, "ASAN_OPTIONS=%s%sverify_asan_link_order=0",
                           before ? before : "", before && before[0] ? ":" : "");
        return len > 0 && (size_t)len < cap;
}

static const char *leave_out(struct afz_guard *g, const char *why)
{
        g->probe_socket[0] = g->probe_preload[0] = '\0';
        return why;
}

/* NULL: it is there; else why it is not. */
static const char *open_probe(struct afz_guard *g)
{
        const struct afz_guard_order *order = g->order;
        const struct afz_keeper_plan plan = {
                .ram_bytes = order->ram_total_bytes,
                .budget_bytes = g->budget.ram_bytes,
                .refuses = order->policy == AFZ_POLICY_ADAPT,
        };
        char path[AFZ_RUN_SOCKET_CAP];
        if (!order->probe)
                return order->no_probe ? order->no_probe : "its library was not found";
        if (strpbrk(order->probe, SEPARATORS))
                return "the path of its library has a space or a colon in it";
        if (!g->recorder)
                return "nothing is recorded";
        if (!afz_keeper_socket_path(g->run->socket, path, sizeof path))
                return "there is no runtime folder";
        snprintf(g->probe_socket, sizeof g->probe_socket, "ANTIFREEZE_PROBE=%s", path);
        if (!put_preload(order->probe, g->probe_preload, sizeof g->probe_preload) ||
            !put_sanitizer(g->probe_sanitizer, sizeof g->probe_sanitizer))
                return leave_out(g, "LD_PRELOAD is too long");
        if (afz_keeper_start(path, &plan, g->recorder, &g->keeper) < 0)
                return leave_out(g, "its keeper could not be started");
        return NULL;
}

void afz_guard_probe_open(struct afz_guard *g)
{
        if (g->order->dry_run || g->order->attach)
                return;
        const char *why = open_probe(g);
        if (!why)
                return;
        char text[400];
        snprintf(text, sizeof text, "the probe was left out: %s", why);
        afz_recorder_mark(g->recorder, afz_clock_ns(CLOCK_MONOTONIC), AFZ_MARK_SITE, 0, text);
        if (g->order->tell_no_probe)
                afz_guard_say(g, "probe", false, "%s", text);
}

void afz_guard_probe_room(struct afz_guard *g)
{
        struct afz_room *room = afz_keeper_room(g->keeper);
        if (!room)
                return;
        /* The look's own clock stands still while the machine sleeps. */
        uint64_t ago_ns = afz_guard_now(g) - g->pulse.t_ns;
        afz_keeper_room_write(room, afz_clock_ns(CLOCK_BOOTTIME) - ago_ns,
                              afz_keeper_room_left(&g->ladder, &g->pulse, g->budget.swap_bytes));
}

/* Of a command that died of a fault: whether it may have been ours. A shell tells of its child's
 * signal by 128 and more. */
static bool died_inside(const struct afz_guard *g)
{
        static const int faults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL};
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
                if (g->root_signaled && g->root_status == faults[i])
                        return afz_keeper_died_inside(g->keeper, g->spawn.pid);
                if (!g->root_signaled && g->root_status == 128 + faults[i])
                        return afz_keeper_died_inside(g->keeper, 0);
        }
        return false;
}

void afz_guard_probe_close(struct afz_guard *g)
{
        char cwd[AFZ_RUN_PATH_CAP];
        if (!g->keeper || !g->root_ended || !died_inside(g))
                return;
        if (!getcwd(cwd, sizeof cwd))
                cwd[0] = '\0';
        if (afz_probe_note_add(g->order->version, cwd, g->order->argv) == 0)
                afz_guard_say(g, "probe", false,
                              "a process died while the probe looked at its memory: it may be our "
                              "fault, so the next run of this command goes without");
}
