/* What one process may use, from /proc/self/limits. */
#include <errno.h>
#include <inttypes.h>

#include "checks.h"
#include "doctor_thresholds.h"
#include "quantity.h"

struct pair {
        uint64_t soft, hard; /* UINT64_MAX: unlimited */
};

static int take_limit(struct afz_span *s, uint64_t *ret)
{
        struct afz_span word;
        if (afz_span_take_word(s, &word) < 0)
                return -EINVAL;
        if (afz_span_eq(word, "unlimited")) {
                *ret = UINT64_MAX;
                return 0;
        }
        return afz_span_u64(word, ret);
}

/* "Max open files            1024                 1048576              files" */
static int read_limit(const struct afz_env *env, const char *name, struct pair *ret)
{
        char buf[4096];
        struct afz_span text, line;
        int r = afz_doctor_read_self(env, "limits", buf, sizeof buf, &text);
        if (r < 0)
                return r;
        while (afz_span_take_line(&text, &line) == 0) {
                struct pair p;
                if (afz_span_take_prefix(&line, name) < 0)
                        continue;
                if (take_limit(&line, &p.soft) < 0 || take_limit(&line, &p.hard) < 0)
                        return -EINVAL;
                *ret = p;
                return 0;
        }
        return -EINVAL;
}

AFZ_CHECK(open_files)
{
        struct pair p;
        int r = read_limit(ctx->env, "Max open files ", &p);
        if (r < 0)
                return afz_find_unread(ret, "the limit of open files", r);
        if (p.soft == UINT64_MAX)
                return afz_find(ret, AFZ_FINDING_OK, "unlimited");
        if (p.soft >= AFZ_DOCTOR_OPEN_FILES_MIN)
                return afz_find(ret, AFZ_FINDING_OK, "%" PRIu64, p.soft);
        uint64_t want =
                p.hard < AFZ_DOCTOR_OPEN_FILES_SUGGESTED ? p.hard : AFZ_DOCTOR_OPEN_FILES_SUGGESTED;
        if (want > p.soft)
                afz_fix(ret, "ulimit -n %" PRIu64 " in the shell that starts the job", want);
        else
                afz_fix(ret,
                        "echo '* - nofile %d' | sudo tee /etc/security/limits.d/nofile.conf, "
                        "then log in again",
                        AFZ_DOCTOR_OPEN_FILES_SUGGESTED);
        return afz_find(ret, AFZ_FINDING_WARN,
                        "%" PRIu64 ": loaders with several workers run out (\"too many open "
                        "files\", \"received 0 items of ancdata\")",
                        p.soft);
}

AFZ_CHECK(locked_memory)
{
        struct pair p;
        char size[AFZ_SIZE_TEXT_CAP];
        int r = read_limit(ctx->env, "Max locked memory ", &p);
        if (r < 0)
                return afz_find_unread(ret, "the limit of locked memory", r);
        if (p.soft == UINT64_MAX)
                return afz_find(ret, AFZ_FINDING_OK, "unlimited");
        afz_format_size(size, sizeof size, p.soft);
        if (p.soft >= AFZ_DOCTOR_LOCKED_MIN_BYTES)
                return afz_find(ret, AFZ_FINDING_OK, "%s, enough for the guard", size);
        if (p.hard >= AFZ_DOCTOR_LOCKED_MIN_BYTES)
                afz_fix(ret, "ulimit -l 8192");
        else
                afz_fix(ret, "echo '* - memlock 8192' | sudo tee /etc/security/limits.d/"
                             "memlock.conf, then log in again");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "%s: the guard cannot keep itself in RAM and slows down when the machine "
                        "swaps",
                        size);
}

AFZ_CHECK(process_count)
{
        struct pair p;
        int r = read_limit(ctx->env, "Max processes ", &p);
        if (r < 0)
                return afz_find_unread(ret, "the limit of processes", r);
        if (p.soft == UINT64_MAX)
                return afz_find(ret, AFZ_FINDING_OK, "unlimited");
        if (p.soft >= AFZ_DOCTOR_PROCESSES_MIN || ctx->uid == 0)
                return afz_find(ret, AFZ_FINDING_OK, "%" PRIu64, p.soft);
        afz_fix(ret, p.hard > p.soft ? "ulimit -u \"$(ulimit -Hu)\""
                                     : "echo '* - nproc 65536' | sudo tee "
                                       "/etc/security/limits.d/nproc.conf, then log in again");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "%" PRIu64 ", threads included: loaders and thread pools run out "
                        "(\"resource temporarily unavailable\")",
                        p.soft);
}

AFZ_CHECK(address_space)
{
        struct pair p;
        char size[AFZ_SIZE_TEXT_CAP];
        int r = read_limit(ctx->env, "Max address space ", &p);
        if (r < 0)
                return afz_find_unread(ret, "the limit of address space", r);
        if (p.soft == UINT64_MAX)
                return afz_find(ret, AFZ_FINDING_OK, "unlimited");
        afz_fix(ret, p.hard == UINT64_MAX
                             ? "ulimit -v unlimited"
                             : "take the \"as\" limit out of /etc/security/limits.conf "
                               "and limits.d/, then log in again");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "%s: CUDA reserves far more addresses than memory and fails",
                        afz_format_size(size, sizeof size, p.soft));
}
