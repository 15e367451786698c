/* verdict.txt and verdict.json: written together, from one state; and how an end that nobody
 * recorded is recorded by who comes next. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run_state.h"

/* One of the two files: what writes it, and its names. */
static const struct pair_file {
        const char *name, *temporary;
        void (*put)(struct afz_out *out, const struct afz_run_page *page,
                    const struct afz_outcome *outcome, uint64_t duration_ns);
} pair[] = {
        {"verdict.txt", "verdict.txt.new", afz_run_put_text},
        {"verdict.json", "verdict.json.new", afz_run_put_json},
};
enum { PAIR = sizeof pair / sizeof pair[0] };

static int write_temporary(int dir_fd, const struct pair_file *file,
                           const struct afz_run_state *state, bool durable)
{
        char buf[4096];

        unlinkat(dir_fd, file->temporary, 0);
        int fd = openat(dir_fd, file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        struct afz_out out = afz_out_to(fd, buf, sizeof buf);
        file->put(&out, &state->page, &state->outcome, state->duration_ns);
        int r = afz_out_flush(&out);
        if (r == 0 && durable && fsync(fd) < 0)
                r = -errno;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        if (r < 0)
                unlinkat(dir_fd, file->temporary, 0);
        return r;
}

int afz_run_pair_write(int dir_fd, const struct afz_run_state *state, bool durable)
{
        int r = 0;
        for (int i = 0; i < PAIR && r == 0; i++)
                r = write_temporary(dir_fd, &pair[i], state, durable);
        for (int i = 0; i < PAIR && r == 0; i++)
                if (renameat(dir_fd, pair[i].temporary, dir_fd, pair[i].name) < 0)
                        r = -errno;
        for (int i = 0; i < PAIR && r < 0; i++)
                unlinkat(dir_fd, pair[i].temporary, 0);
        return r;
}

int afz_run_pair_finish(int dir_fd, const struct afz_run_state *state)
{
        int r = afz_run_pair_write(dir_fd, state, true);
        /* The names must be on the disk before the state may go. */
        if (r == 0 && fsync(dir_fd) < 0 && errno != EINVAL)
                r = -errno;
        if (r == 0 && unlinkat(dir_fd, AFZ_RUN_STATE, 0) < 0 && errno != ENOENT)
                r = -errno;
        return r;
}

bool afz_run_is_better(const struct afz_outcome *before, const struct afz_outcome *after)
{
        return after->end.how == before->end.how && after->end.code == before->end.code &&
               after->verdicts > 0;
}

int afz_run_state_find(int dir_fd, struct afz_run_state *ret)
{
        int fd = openat(dir_fd, AFZ_RUN_STATE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = afz_run_state_read(fd, ret);
        if (r < 0) {
                close(fd);
                return r;
        }
        return fd;
}

/* Opens the state of a run that was left: of this id and host, and nobody's. */
static int open_left(int dir_fd, const char *id, struct afz_run_state *ret)
{
        int fd = afz_run_state_find(dir_fd, ret), r = 0;
        if (fd < 0)
                return fd;
        if (strcmp(ret->page.id, id) != 0 || !afz_run_state_is_here(ret))
                r = -ENOENT;
        else if (afz_run_is_held(fd))
                r = -EBUSY;
        close(fd);
        return r;
}

/* `known`, where it is not NULL, is what came of a look at the recording. */
static int settle(const char *dir, const char *id, const struct afz_run_page *page,
                  const struct afz_run_known *known)
{
        struct afz_run_state state;
        int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return -errno;
        int r = open_left(dir_fd, id, &state);
        if (r == 0) {
                if (state.outcome.end.how == AFZ_END_RUNNING)
                        afz_run_state_lose(&state, page);
                if (known && afz_run_is_better(&state.outcome, &known->outcome))
                        afz_run_state_set(&state, &known->page, &known->outcome,
                                          known->duration_ns);
                r = afz_run_pair_finish(dir_fd, &state);
        }
        close(dir_fd);
        return r;
}

int afz_run_settle(const char *dir, const char *id, const struct afz_run_page *page)
{
        return settle(dir, id, page, NULL);
}

int afz_run_settle_as(const char *dir, const struct afz_run_known *known)
{
        return settle(dir, known->page.id, &known->page, known);
}
