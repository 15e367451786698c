/* What is known of a run that was found: read from its page, its state or its files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "env.h"
#include "run.h"
#include "run_home.h"
#include "run_id.h"
#include "run_state.h"

static int read_page(const struct afz_run_ref *ref, struct afz_run_page *ret)
{
        if (!ref->page_path[0])
                return -ENOENT;
        int fd = open(ref->page_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = afz_run_page_read(fd, ret);
        close(fd);
        return r == 0 && strcmp(ret->id, ref->id) != 0 ? -EBADMSG : r;
}

static int read_state(const struct afz_run_ref *ref, struct afz_run_state *ret)
{
        if (!ref->dir[0])
                return -ENOENT;
        int dir_fd = open(ref->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return -errno;
        int fd = afz_run_state_find(dir_fd, ret);
        close(dir_fd);
        if (fd < 0)
                return fd;
        close(fd);
        return strcmp(ret->page.id, ref->id) != 0 ? -ENOENT : 0;
}

int afz_run_peek(const struct afz_run_ref *ref, struct afz_run_page *ret)
{
        struct afz_run_state state;
        int r = read_page(ref, ret);
        if (r < 0 && (r = read_state(ref, &state)) == 0)
                *ret = state.page;
        return r;
}

static void put(bool json, struct afz_out *out, const struct afz_run_page *page,
                const struct afz_outcome *outcome, uint64_t duration_ns)
{
        (json ? afz_run_put_json : afz_run_put_text)(out, page, outcome, duration_ns);
}

static int tell_live(const struct afz_run_page *page, bool json, struct afz_out *out)
{
        struct afz_outcome outcome = {.end = {AFZ_END_RUNNING, -1}};
        uint64_t now = afz_clock_ns(CLOCK_BOOTTIME);
        put(json, out, page, &outcome, now > page->started_ns ? now - page->started_ns : 0);
        return 0;
}

/* The file as it is. */
static int tell_file(const struct afz_run_ref *ref, bool json, struct afz_out *out)
{
        char path[AFZ_RUN_PATH_CAP + 16], buf[4096];
        ssize_t n;
        if (!ref->dir[0] || afz_path(path, sizeof path, "%s/%s", ref->dir,
                                     json ? "verdict.json" : "verdict.txt") < 0)
                return -ENOENT;
        int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        while ((n = read(fd, buf, sizeof buf)) > 0)
                afz_out_bytes(out, buf, (size_t)n);
        int r = n < 0 ? -errno : 0;
        close(fd);
        return r;
}

/* So that the next who asks finds it in the files; what is told now does not depend on it. */
static void settle(const struct afz_run_ref *ref, const struct afz_run_page *page)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        if (!ref->dir[0] || afz_run_home_open(&roots, true, &home, NULL) < 0)
                return;
        if (afz_run_home_lock(&home, AFZ_LEDGER_WAIT_NS, NULL) == 0)
                afz_run_settle(ref->dir, ref->id, page);
        afz_run_home_done(&home);
}

/* Nobody holds it, and its state was never removed. */
static int tell_unrecorded(const struct afz_run_ref *ref, struct afz_run_state *state,
                           const struct afz_run_page *page, bool json, struct afz_out *out)
{
        if (!afz_run_state_is_here(state) && state->outcome.end.how == AFZ_END_RUNNING)
                return tell_file(ref, json, out); /* another machine's; perhaps it goes on */
        settle(ref, page);
        if (state->outcome.end.how == AFZ_END_RUNNING)
                afz_run_state_lose(state, page);
        put(json, out, &state->page, &state->outcome, state->duration_ns);
        return 0;
}

int afz_run_tell(const struct afz_run_ref *ref, bool json, struct afz_out *out)
{
        struct afz_run_page page;
        struct afz_run_state state;

        bool has_page = read_page(ref, &page) == 0, has_state = read_state(ref, &state) == 0;
        if (ref->live && has_page)
                return tell_live(&page, json, out);
        if (ref->live && has_state)
                return tell_live(&state.page, json, out);
        if (has_state)
                return tell_unrecorded(ref, &state, has_page ? &page : NULL, json, out);
        int r = tell_file(ref, json, out);
        if (r == 0 || !has_page)
                return r < 0 ? -ENOENT : 0;
        /* A run without a folder whose guard is gone: the page is all there is. */
        memset(&state, 0, sizeof state);
        afz_run_state_lose(&state, &page);
        put(json, out, &state.page, &state.outcome, state.duration_ns);
        return 0;
}
