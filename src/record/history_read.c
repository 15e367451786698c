/* verdict.json (docs/run-folder.md) read back, as far as the history needs it. In one walk: there
 * may be a thousand of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "count_of.h"
#include "env.h"
#include "history_own.h"
#include "json_read.h"
#include "verdict_text.h"

/* Eight verdicts with all their evidence, every byte of it escaped, are less. */
enum { CMD_MOST = 4096 };

/* What a year 1970 or a wild clock may say, and a struct tm can. */
static bool take_time(struct afz_json_value v, int64_t *ret)
{
        char text[32];
        struct tm tm = {0};
        if (!afz_json_get_text(v, text, sizeof text) || !strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
                return false;
        *ret = (int64_t)timegm(&tm);
        return true;
}

static bool take_string(struct afz_json_value v, char **ret)
{
        char text[CMD_MOST];
        if (*ret || !afz_json_get_text(v, text, sizeof text))
                return false;
        *ret = strdup(text);
        return *ret != NULL;
}

/* Each takes one member; false: it is not what it should be, and the file is not believed. */
static bool take_schema(struct afz_json_value v, struct afz_history_run *run)
{
        uint64_t schema;
        (void)run;
        return afz_json_get_u64(v, &schema) && schema == 1;
}

static bool take_end(struct afz_json_value v, struct afz_history_run *run)
{
        struct afz_json_value how, code;
        int64_t n;
        if (v.type == AFZ_JSON_NULL)
                return true;
        if (!afz_json_member(v, "how", &how))
                return false;
        run->end = (struct afz_end){AFZ_END_UNKNOWN, -1};
        for (int i = AFZ_END_RUNNING + 1; i < AFZ_END_COUNT; i++)
                if (afz_json_is(how, afz_end_name((enum afz_end_how)i)))
                        run->end.how = (enum afz_end_how)i;
        if (afz_json_member(v, "code", &code) && afz_json_get_i64(code, &n) && n >= 0 && n < 65536)
                run->end.code = (int)n;
        return true;
}

static bool take_bytes(struct afz_json_value v, uint64_t *ret)
{
        return v.type == AFZ_JSON_NULL || afz_json_get_u64(v, ret);
}

static bool take_peak(struct afz_json_value v, struct afz_history_run *run)
{
        struct afz_json_value ram, gpu;
        return afz_json_member(v, "ram_bytes", &ram) && take_bytes(ram, &run->peak_bytes) &&
               afz_json_member(v, "gpu_bytes", &gpu) && take_bytes(gpu, &run->gpu_peak_bytes);
}

static bool take_verdicts(struct afz_json_value v, struct afz_history_run *run)
{
        struct afz_json_walk walk = afz_json_into(v), in;
        struct afz_json_value first, key, value;
        if (v.type != AFZ_JSON_ARRAY || !afz_json_next(&walk, NULL, &first))
                return v.type == AFZ_JSON_ARRAY;
        for (in = afz_json_into(first); afz_json_next(&in, &key, &value);) {
                if (afz_json_is(key, "id"))
                        afz_json_get_text(value, run->verdict, sizeof run->verdict);
                else if (afz_json_is(key, "summary"))
                        afz_json_get_text(value, run->summary, sizeof run->summary);
                else if (afz_json_is(key, "level"))
                        for (int i = 0; i < AFZ_LEVELS; i++)
                                if (afz_json_is(value, afz_level_name((enum afz_level)i)))
                                        run->level = (enum afz_level)i;
        }
        return true;
}

static bool take_budget(struct afz_json_value v, struct afz_history_run *run)
{
        return take_bytes(v, &run->budget_bytes);
}

static bool take_cmd(struct afz_json_value v, struct afz_history_run *run)
{
        return take_string(v, &run->cmd);
}

static bool take_git(struct afz_json_value v, struct afz_history_run *run)
{
        return v.type == AFZ_JSON_NULL || take_string(v, &run->git);
}

static bool take_started(struct afz_json_value v, struct afz_history_run *run)
{
        return v.type == AFZ_JSON_NULL || take_time(v, &run->started_s);
}

static bool take_duration(struct afz_json_value v, struct afz_history_run *run)
{
        const double most = 1e9; /* s: thirty years, and far from what overflows */
        double s;
        if (v.type == AFZ_JSON_NULL)
                return true;
        if (!afz_json_get_double(v, &s) || s < 0 || s > most)
                return false;
        run->duration_ns = (uint64_t)(s * (double)AFZ_NS_PER_S);
        return true;
}

static const struct {
        const char *key;
        bool (*take)(struct afz_json_value v, struct afz_history_run *run);
} members[] = {
        {"schema", take_schema},
        {"end", take_end},
        {"peak", take_peak},
        {"verdicts", take_verdicts},
        {"budget_bytes", take_budget},
        {"cmd", take_cmd},
        {"started", take_started},
        {"duration_s", take_duration},
        {"git", take_git},
};

/* -EBADMSG: not a verdict of schema 1. -ENOENT: of another run. */
static int parse(struct afz_span text, struct afz_history_run *run)
{
        struct afz_json_value doc, key, value;
        unsigned seen = 0;
        bool named = false;
        if (afz_json_read(text, &doc) < 0 || doc.type != AFZ_JSON_OBJECT)
                return -EBADMSG;
        for (struct afz_json_walk walk = afz_json_into(doc); afz_json_next(&walk, &key, &value);) {
                if (afz_json_is(key, "run")) {
                        if (value.type != AFZ_JSON_STRING)
                                return -EBADMSG;
                        if (!afz_json_is(value, run->id))
                                return -ENOENT;
                        named = true;
                        continue;
                }
                for (size_t i = 0; i < AFZ_COUNT_OF(members); i++)
                        if (afz_json_is(key, members[i].key)) {
                                if (seen >> i & 1 || !members[i].take(value, run))
                                        return -EBADMSG;
                                seen |= 1U << i;
                                break;
                        }
        }
        return named && (seen & 1) ? 0 : -EBADMSG;
}

static int read_file(int runs_fd, const char *id, char **ret_text, size_t *ret_len)
{
        char path[AFZ_RUN_ID_CAP + 16];
        snprintf(path, sizeof path, "%s/verdict.json", id);
        int r = afz_verdict_text_read(runs_fd, path, ret_text, ret_len);
        if (r == -ELOOP) /* a link in its place, or one that leads nowhere */
                r = faccessat(runs_fd, id, F_OK, 0) == 0 ? -EBADMSG : -ENOENT;
        return r;
}

/* Nothing is known but the name. */
static int damaged(struct afz_history_run *run)
{
        struct afz_history_run none = {.life = AFZ_HISTORY_DAMAGED,
                                       .peak_bytes = UINT64_MAX,
                                       .gpu_peak_bytes = UINT64_MAX,
                                       .budget_bytes = UINT64_MAX,
                                       .end = {AFZ_END_UNKNOWN, -1},
                                       .started_s = afz_history_id_time(run->id)};
        memcpy(none.id, run->id, sizeof none.id);
        snprintf(none.summary, sizeof none.summary, "its verdict.json cannot be read");
        free(run->cmd);
        free(run->git);
        none.cmd = strdup("");
        *run = none;
        return none.cmd ? 0 : -ENOMEM;
}

int afz_history_read(int runs_fd, const char *id, struct afz_history_run *run)
{
        char *text = NULL;
        size_t len = 0;
        int r = read_file(runs_fd, id, &text, &len);
        if (r == -EBADMSG || r == -EACCES || r == -EIO)
                return damaged(run);
        if (r < 0)
                return r;
        run->peak_bytes = run->gpu_peak_bytes = run->budget_bytes = UINT64_MAX;
        run->started_s = afz_history_id_time(id);
        run->end = (struct afz_end){AFZ_END_RUNNING, -1};
        r = parse((struct afz_span){text, len}, run);
        free(text);
        if (r == -EBADMSG)
                return damaged(run);
        if (r < 0)
                return r;
        /* No end, and nothing that holds it: its run.state is gone, so nobody will ever know. */
        run->life = run->end.how == AFZ_END_RUNNING || run->end.how == AFZ_END_LOST
                            ? AFZ_HISTORY_LOST
                            : AFZ_HISTORY_ENDED;
        if (!run->cmd)
                run->cmd = strdup("");
        return run->cmd ? 0 : -ENOMEM;
}
