#include "watch_live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "count_of.h"
#include "key.h"
#include "line.h"
#include "live.h"
#include "screen.h"

/* What a signal handler needs to give the terminal back. */
static const struct afz_term *term_to_restore;

static const int fatal_signals[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGSEGV, SIGBUS, SIGABRT};

static void restore_and_die(int sig)
{
        afz_term_restore(term_to_restore);
        signal(sig, SIG_DFL);
        raise(sig);
}

static void guard_terminal(const struct afz_term *term)
{
        term_to_restore = term;
        for (size_t i = 0; i < AFZ_COUNT_OF(fatal_signals); i++)
                signal(fatal_signals[i], term ? restore_and_die : SIG_DFL);
}

static uint64_t now_ns(void)
{
        return afz_clock_ns(CLOCK_MONOTONIC);
}

/* Nobody reads faster than this; ticks may come more often than frames. */
#define FRAME_NS UINT64_C(200000000)

struct show {
        struct afz_engine *engine;
        struct afz_watch_lines *lines;
        struct afz_term term;
        struct afz_screen screen;
        struct afz_live_state live;
        uint64_t drawn_ns; /* when the last frame was */
        char host[65], clock[AFZ_TIME_OF_DAY_CAP], command[160];
        char buf[65536];
};

/* What the header says of the job; kept, since the job may end while we show it. */
static void note_job(struct show *s)
{
        const struct afz_window *window = afz_engine_window(s->engine);
        const struct afz_sample *root =
                window->job_pid ? afz_window_find(window, AFZ_KIND_PROC, window->job_pid) : NULL;
        (void)afz_line(window, &s->live.line_bytes);
        if (!root || s->live.command)
                return;
        snprintf(s->command, sizeof s->command, "%s", root->detail ? root->detail : root->name);
        s->live.command = s->command;
        /* The kernel tells it on a clock that runs on in suspend, and ours does not. */
        uint64_t start_ns = root->subject.start * (AFZ_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
        uint64_t boot_ns = afz_clock_ns(CLOCK_BOOTTIME);
        uint64_t age_ns = boot_ns > start_ns ? boot_ns - start_ns : 0;
        s->live.job_start_ns = window->t_ns > age_ns ? window->t_ns - age_ns : 0;
}

static void draw(struct show *s, uint64_t now)
{
        int width, height;
        struct afz_out out = afz_out_to(s->term.out_fd, s->buf, sizeof s->buf);
        if (afz_term_size(&s->term, &width, &height) == 0)
                (void)afz_screen_resize(&s->screen, width, height);
        afz_time_of_day(s->clock);
        note_job(s);
        s->live.job_ended = !afz_engine_job_alive(s->engine);
        afz_screen_clear(&s->screen);
        afz_live_draw(&s->screen, afz_engine_window(s->engine), &s->live);
        afz_screen_encode(&s->screen, &out);
        (void)afz_out_flush(&out);
        s->drawn_ns = now;
}

/* Applies one key. False: quit. */
static bool apply_key(struct show *s, int key)
{
        switch (afz_live_key(&s->live, key)) {
        case AFZ_LIVE_QUIT:
                return false;
        case AFZ_LIVE_SUSPEND:
                afz_term_suspend(&s->term);
                s->screen.stale = true;
                break;
        case AFZ_LIVE_REPAINT:
                s->screen.stale = true;
                break;
        case AFZ_LIVE_REDRAW:
        case AFZ_LIVE_NOTHING:
                break;
        }
        return true;
}

/* Applies what was typed. False: quit, or the terminal is gone. */
static bool take_keys(struct show *s)
{
        char typed[64];
        int n = afz_term_read(&s->term, typed, sizeof typed);
        size_t at = 0, used;
        int key;
        while (n > 0 && (key = afz_key_take(typed + at, (size_t)n - at, &used)) != AFZ_KEY_NONE) {
                if (!apply_key(s, key))
                        return false;
                at += used;
        }
        return n >= 0;
}

/* Waits for a key, a change of size or the next tick. False: quit. */
static bool wait_until(struct show *s, uint64_t deadline_ns)
{
        for (;;) {
                uint64_t now = now_ns();
                if (now >= deadline_ns)
                        return true;
                uint64_t left = deadline_ns - now;
                struct timespec timeout = {(time_t)(left / AFZ_NS_PER_S),
                                           (long)(left % AFZ_NS_PER_S)};
                struct pollfd fds[] = {{.fd = s->term.in_fd, .events = POLLIN},
                                       {.fd = s->term.resize_fd, .events = POLLIN}};
                int n = ppoll(fds, 2, &timeout, NULL);
                if (n < 0 && errno != EINTR)
                        return false;
                if (n <= 0)
                        continue;
                if (fds[0].revents && !take_keys(s))
                        return false;
                draw(s, now_ns());
                if (s->live.interval_ns < left)
                        return true; /* the user asked for a quicker pace */
        }
}

static void run(struct show *s, uint64_t count)
{
        for (uint64_t shown = 0; count == 0 || shown < count; shown++) {
                uint64_t start = now_ns();
                if (!s->live.paused) {
                        afz_engine_tick(s->engine);
                        afz_watch_lines_look(s->lines, start);
                }
                if (start - s->drawn_ns >= FRAME_NS)
                        draw(s, start); /* counted from the tick, so that none is late */
                if (!wait_until(s, start + s->live.interval_ns))
                        return;
        }
}

int afz_watch_live(struct afz_engine *engine, struct afz_watch_lines *lines,
                   const struct afz_term_caps *caps, uint64_t interval_ns, uint64_t count)
{
        struct show *s = calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        s->engine = engine;
        s->lines = lines;
        s->live.lines = &lines->now;
        s->live.interval_ns = interval_ns;
        s->live.clock = s->clock;
        if (gethostname(s->host, sizeof s->host - 1) == 0)
                s->live.host = s->host;
        afz_screen_init(&s->screen, caps->depth, caps->utf8);
        int r = afz_live_init(&s->live);
        if (r >= 0)
                r = afz_term_open(&s->term, STDIN_FILENO, STDOUT_FILENO);
        if (r >= 0) {
                guard_terminal(&s->term);
                run(s, count);
                guard_terminal(NULL);
                afz_term_close(&s->term);
        }
        afz_live_done(&s->live);
        afz_screen_done(&s->screen);
        free(s);
        return r < 0 ? r : 0;
}
