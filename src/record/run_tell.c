/* A run told: from its files when they say how it ended, else from what is known of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"
#include "run.h"
#include "run_home.h"
#include "run_state.h"
#include "verdict_text.h"

/* A folder may come from anybody, and what is told goes to a terminal. */
static void make_safe(char *text, size_t n, unsigned char *before)
{
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)text[i];
                /* U+0080 to U+009F are controls, too. */
                if ((c < 0x20 && c != '\n') || c == 0x7f ||
                    (*before == 0xc2 && c >= 0x80 && c <= 0x9f))
                        text[i] = '?';
                *before = c;
        }
}

static int tell_json(const struct afz_run_ref *ref, struct afz_out *out)
{
        char path[AFZ_RUN_PATH_CAP + 16], *text;
        size_t bytes;
        if (!ref->dir[0] || afz_path(path, sizeof path, "%s/verdict.json", ref->dir) < 0)
                return -ENOENT;
        int r = afz_verdict_text_read(AT_FDCWD, path, &text, &bytes);
        if (r < 0)
                return r;
        r = afz_verdict_text_tell((struct afz_span){text, bytes}, out);
        free(text);
        return r;
}

int afz_run_tell_file(const struct afz_run_ref *ref, bool json, struct afz_out *out)
{
        char path[AFZ_RUN_PATH_CAP + 16], buf[4096];
        unsigned char before = 0;
        ssize_t n;
        if (json)
                return tell_json(ref, out);
        if (!ref->dir[0] || afz_path(path, sizeof path, "%s/verdict.txt", ref->dir) < 0)
                return -ENOENT;
        int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        while ((n = read(fd, buf, sizeof buf)) > 0) {
                make_safe(buf, (size_t)n, &before);
                afz_out_bytes(out, buf, (size_t)n);
        }
        int r = n < 0 ? -errno : 0;
        close(fd);
        return r;
}

/* A lost run whose end was recorded by who came next, without a look at its recording. */
static int write_again(const struct afz_run_ref *ref, const struct afz_run_known *known)
{
        struct afz_run_state state;
        int r, dir_fd = open(ref->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return -errno;
        if (faccessat(dir_fd, AFZ_RUN_STATE, F_OK, 0) == 0) {
                r = -EBUSY; /* its folder was given to another run meanwhile */
        } else {
                afz_run_state_set(&state, &known->page, &known->outcome, known->duration_ns);
                r = afz_run_pair_write(dir_fd, &state, true);
        }
        close(dir_fd);
        return r;
}

int afz_run_retell(const struct afz_run_ref *ref, const struct afz_run_known *known)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        if (!ref->dir[0] || known->outcome.end.how == AFZ_END_RUNNING)
                return -ENOENT;
        int r = afz_run_home_open(&roots, true, &home, NULL);
        if (r < 0)
                return r;
        r = afz_run_home_lock(&home, AFZ_LEDGER_WAIT_NS, NULL);
        if (r == 0 && known->recorded)
                r = write_again(ref, known);
        else if (r == 0)
                r = afz_run_settle_as(ref->dir, known);
        afz_run_home_done(&home);
        return r;
}

int afz_run_tell(const struct afz_run_ref *ref, bool json, struct afz_out *out)
{
        struct afz_run_known known;
        int r = afz_run_recall(ref, &known);
        /* What another version wrote may be more than we can read, and can be told all the same. */
        if (r < 0 || known.recorded ||
            (known.elsewhere && known.outcome.end.how == AFZ_END_RUNNING))
                return afz_run_tell_file(ref, json, out) < 0 ? -ENOENT : 0;
        (void)afz_run_retell(ref, &known); /* for the next who asks; ours does not depend on it */
        (json ? afz_run_put_json : afz_run_put_text)(out, &known.page, &known.outcome,
                                                     known.duration_ns);
        return 0;
}
