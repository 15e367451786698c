/* What is known of a run, from wherever it stands: its page while it lives, its state when nobody
 * saw the end, verdict.json when it is over. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "env.h"
#include "json_read.h"
#include "run.h"
#include "run_id.h"
#include "run_remains.h"
#include "run_state.h"
#include "run_words.h"
#include "verdict_text.h"

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

/* ---- verdict.json ---- */

/* The member's text if it has one; else what is there stays. */
static void take_text(struct afz_json_value object, const char *key, char *buf, size_t cap)
{
        struct afz_json_value v;
        if (afz_json_member(object, key, &v))
                (void)afz_json_get_text(v, buf, cap);
}

static void take_u64(struct afz_json_value object, const char *key, uint64_t *ret)
{
        struct afz_json_value v;
        if (afz_json_member(object, key, &v))
                (void)afz_json_get_u64(v, ret);
}

static void take_u32(struct afz_json_value object, const char *key, uint32_t *ret)
{
        uint64_t v = *ret;
        take_u64(object, key, &v);
        if (v <= UINT32_MAX)
                *ret = (uint32_t)v;
}

static void take_bool(struct afz_json_value object, const char *key, bool *ret)
{
        struct afz_json_value v;
        if (afz_json_member(object, key, &v))
                (void)afz_json_get_bool(v, ret);
}

/* Seconds, in units of which there are so many in one; what is null or absurd stays as it was. */
static void take_seconds(struct afz_json_value object, const char *key, double per_s, double most,
                         double *ret)
{
        struct afz_json_value v;
        double s;
        if (afz_json_member(object, key, &v) && afz_json_get_double(v, &s) && s >= 0 &&
            s * per_s <= most)
                *ret = s * per_s + 0.5;
}

/* Which of these names it is; `otherwise` when it is none of them. */
static unsigned take_name(struct afz_json_value object, const char *key,
                          const char *(*name)(unsigned i), unsigned count, unsigned otherwise)
{
        struct afz_json_value v;
        if (!afz_json_member(object, key, &v))
                return otherwise;
        for (unsigned i = 0; i < count; i++)
                if (name(i) && afz_json_is(v, name(i)))
                        return i;
        return otherwise;
}

static const char *end_name(unsigned i)
{
        return afz_end_name((enum afz_end_how)i);
}

static const char *tier_name(unsigned i)
{
        return afz_tier_name((enum afz_tier)i);
}

static const char *level_name(unsigned i)
{
        return afz_level_name((enum afz_level)i);
}

static const char *cause_name(unsigned i)
{
        return afz_run_cause_names[i];
}

static void take_end(struct afz_json_value doc, struct afz_end *ret)
{
        struct afz_json_value end, code;
        int64_t n;
        *ret = (struct afz_end){AFZ_END_RUNNING, -1};
        if (!afz_json_member(doc, "end", &end) || end.type != AFZ_JSON_OBJECT)
                return;
        ret->how =
                (enum afz_end_how)take_name(end, "how", end_name, AFZ_END_COUNT, AFZ_END_UNKNOWN);
        if (afz_json_member(end, "code", &code) && afz_json_get_i64(code, &n) && n >= 0 &&
            n <= INT32_MAX)
                ret->code = (int)n;
}

static void take_where(struct afz_json_value from, struct afz_where *where)
{
        struct afz_json_value v, line;
        int64_t n;
        if (!afz_json_member(from, "where", &v) || v.type != AFZ_JSON_OBJECT)
                return;
        take_text(v, "file", where->file, sizeof where->file);
        take_text(v, "function", where->function, sizeof where->function);
        if (afz_json_member(v, "line", &line) && afz_json_get_i64(line, &n) && n > 0 &&
            n <= INT32_MAX)
                where->line = (int32_t)n;
}

static void take_verdict(struct afz_json_value from, struct afz_verdict *v)
{
        struct afz_json_value list, item;
        double from_ms = 0, to_ms = 0;
        unsigned n = 0;
        take_text(from, "id", v->id, sizeof v->id);
        v->level =
                (enum afz_level)take_name(from, "level", level_name, AFZ_LEVELS, AFZ_LEVEL_UNKNOWN);
        if (afz_json_member(from, "confidence", &item))
                (void)afz_json_get_double(item, &v->confidence);
        take_text(from, "summary", v->summary, sizeof v->summary);
        take_text(from, "fix", v->fix, sizeof v->fix);
        take_text(from, "caused_by", v->caused_by, sizeof v->caused_by);
        take_where(from, &v->where);
        take_seconds(from, "from_s", 1e3, UINT32_MAX, &from_ms);
        take_seconds(from, "to_s", 1e3, UINT32_MAX, &to_ms);
        v->from_ms = (uint32_t)from_ms;
        v->to_ms = (uint32_t)to_ms;
        if (!afz_json_member(from, "evidence", &list))
                return;
        for (struct afz_json_walk walk = afz_json_into(list);
             n < AFZ_EVIDENCE_MAX && afz_json_next(&walk, NULL, &item);)
                n += afz_json_get_text(item, v->evidence[n], sizeof v->evidence[n]);
}

static void take_outcome(struct afz_json_value doc, struct afz_outcome *ret)
{
        struct afz_json_value list, item;
        take_end(doc, &ret->end);
        if (afz_json_member(doc, "verdicts", &list))
                for (struct afz_json_walk walk = afz_json_into(list);
                     ret->verdicts < AFZ_VERDICTS_MAX && afz_json_next(&walk, NULL, &item);)
                        if (item.type == AFZ_JSON_OBJECT)
                                take_verdict(item, &ret->verdict[ret->verdicts++]);
        afz_outcome_check(ret);
}

static void take_facts(struct afz_json_value doc, const struct afz_end *end,
                       struct afz_facts *facts)
{
        struct afz_json_value from, v;
        uint32_t checkpoint = 0;
        if (!afz_json_member(doc, "facts", &from) || from.type != AFZ_JSON_OBJECT)
                return;
        facts->end = *end;
        facts->stop_cause =
                take_name(from, "stop_cause", cause_name, AFZ_CAUSE_COUNT, AFZ_CAUSE_NONE);
        take_bool(from, "storm", &facts->storm);
        take_bool(from, "watch_only", &facts->watch_only);
        take_bool(from, "timed_out", &facts->timed_out);
        take_u32(from, "checkpoint_signal", &checkpoint);
        facts->checkpoint_signal = (int32_t)(checkpoint & INT32_MAX);
        take_u32(from, "parts_stopped", &facts->parts_stopped);
        take_u32(from, "attempt", &facts->attempt);
        take_u64(from, "batch", &facts->batch);
        take_u64(from, "accum", &facts->accum);
        take_u64(from, "hard_bytes", &facts->hard_bytes);
        take_u64(from, "stop_need_bytes", &facts->stop_need_bytes);
        if (afz_json_member(from, "slope_bytes_per_s", &v))
                (void)afz_json_get_i64(v, &facts->slope_bytes_per_s);
        if (afz_json_member(from, "largest", &v)) {
                take_u64(v, "pid", &facts->largest.pid);
                take_u64(v, "bytes", &facts->largest.bytes);
                take_text(v, "name", facts->largest.name, sizeof facts->largest.name);
        }
        if (afz_json_member(from, "other", &v)) {
                take_u64(v, "grown_bytes", &facts->other.grown_bytes);
                take_text(v, "name", facts->other.name, sizeof facts->other.name);
        }
        take_text(from, "saved", facts->saved, sizeof facts->saved);
        take_text(from, "not_again", facts->not_again, sizeof facts->not_again);
        afz_facts_check(facts);
}

static void take_page(struct afz_json_value doc, struct afz_run_known *ret)
{
        struct afz_run_page *page = &ret->page;
        struct afz_json_value v, item;
        char started[32] = "";
        uint64_t n = 0;
        double cost = 0, duration_ns = 0;
        struct tm tm = {0};

        take_text(doc, "run", page->id, sizeof page->id);
        page->tier = take_name(doc, "tier", tier_name, AFZ_TIER_COUNT, AFZ_TIER_NONE);
        if (afz_json_member(doc, "peak", &v)) {
                take_u64(v, "ram_bytes", &n);
                page->peak_bytes = n == UINT64_MAX ? 0 : n;
                n = AFZ_GPU_UNKNOWN;
                take_u64(v, "gpu_bytes", &n);
                page->gpu_peak_bytes = n;
        }
        take_u64(doc, "budget_bytes", (n = 0, &n));
        page->budget_bytes = n;
        page->policy = n == 0 ? AFZ_POLICY_WATCH : AFZ_POLICY_PROTECT;
        take_u64(doc, "swap_bytes", (n = 0, &n));
        page->swap_bytes = n == UINT64_MAX ? 0 : n;
        if (afz_json_member(doc, "did", &v))
                for (unsigned i = 0; i < AFZ_ACTION_COUNT; i++) {
                        take_u64(v, afz_action_name((enum afz_action)i), (n = 0, &n));
                        page->did[i] = n <= UINT32_MAX ? (uint32_t)n : UINT32_MAX;
                }
        take_text(doc, "cmd", page->cmd, sizeof page->cmd);
        take_text(doc, "started", started, sizeof started);
        if (strptime(started, "%Y-%m-%dT%H:%M:%SZ", &tm))
                page->started_s = timegm(&tm);
        take_seconds(doc, "duration_s", 1e9, 9e18, &duration_ns);
        ret->duration_ns = (uint64_t)duration_ns;
        if (afz_json_member(doc, "cost", &v) && afz_json_member(v, "cpu_fraction", &item) &&
            afz_json_get_double(item, &cost) && cost >= 0 && cost * duration_ns < 9e18)
                page->cpu_ns = (uint64_t)(cost * duration_ns);
}

int afz_run_known_parse(struct afz_span text, struct afz_run_known *ret)
{
        struct afz_json_value doc;
        uint64_t schema = 0;
        if (afz_json_read(text, &doc) < 0 || doc.type != AFZ_JSON_OBJECT)
                return -EBADMSG;
        take_u64(doc, "schema", &schema);
        if (schema != 1)
                return -EPROTO;
        memset(ret, 0, sizeof *ret);
        take_page(doc, ret);
        if (!afz_run_id_is(ret->page.id))
                return -EBADMSG;
        take_outcome(doc, &ret->outcome);
        take_facts(doc, &ret->outcome.end, &ret->page.facts);
        ret->recorded = ret->outcome.end.how != AFZ_END_RUNNING;
        ret->rebooted = ret->outcome.end.how == AFZ_END_LOST &&
                        afz_outcome_find(&ret->outcome, "machine-lost");
        return 0;
}

static int read_json(const struct afz_run_ref *ref, struct afz_run_known *ret)
{
        char path[AFZ_RUN_PATH_CAP + 16], *text = NULL;
        size_t bytes;
        if (!ref->dir[0] || afz_path(path, sizeof path, "%s/verdict.json", ref->dir) < 0)
                return -ENOENT;
        int r = afz_verdict_text_read(AT_FDCWD, path, &text, &bytes);
        if (r == 0 && bytes == 0)
                r = -ENOENT; /* what a power cut leaves of a new file: its name */
        if (r == 0)
                r = afz_run_known_parse((struct afz_span){text, bytes}, ret);
        free(text);
        if (r < 0)
                return r;
        memcpy(ret->page.dir, ref->dir, sizeof ret->page.dir);
        return strcmp(ret->page.id, ref->id) == 0 ? 0 : -ENOENT;
}

/* ---- all of it ---- */

static void take_live(const struct afz_run_page *page, struct afz_run_known *ret)
{
        uint64_t now = afz_clock_ns(CLOCK_BOOTTIME);
        *ret = (struct afz_run_known){.page = *page, .outcome.end = {AFZ_END_RUNNING, -1}};
        ret->duration_ns = now > page->started_ns ? now - page->started_ns : 0;
}

/* Nobody holds it, and its state was never removed. */
static void take_left(struct afz_run_state *state, const struct afz_run_page *page,
                      struct afz_run_known *ret)
{
        char boot[AFZ_BOOT_ID_CAP];
        bool here = afz_run_state_is_here(state);
        *ret = (struct afz_run_known){.elsewhere = !here};
        if (here && state->outcome.end.how == AFZ_END_RUNNING) {
                afz_run_state_lose(state, page);
                afz_boot_id(boot);
                ret->rebooted = boot[0] != '\0' && strcmp(boot, state->page.boot_id) != 0;
        }
        ret->page = state->page;
        ret->outcome = state->outcome;
        ret->duration_ns = state->duration_ns;
}

int afz_run_recall(const struct afz_run_ref *ref, struct afz_run_known *ret)
{
        struct afz_run_page page;
        struct afz_run_state state;

        bool has_page = read_page(ref, &page) == 0, has_state = read_state(ref, &state) == 0;
        if (ref->live && (has_page || has_state)) {
                take_live(has_page ? &page : &state.page, ret);
                return 0;
        }
        if (has_state) {
                take_left(&state, has_page ? &page : NULL, ret);
                return 0;
        }
        int r = read_json(ref, ret);
        if (r == -ENOENT && !has_page)
                r = afz_run_recall_recording(ref, ret);
        if (r == 0 || !has_page)
                return r;
        /* A run without a folder whose guard is gone: the page is all there is. */
        memset(&state, 0, sizeof state);
        afz_run_state_lose(&state, &page);
        *ret = (struct afz_run_known){
                .page = state.page, .outcome = state.outcome, .duration_ns = state.duration_ns};
        return 0;
}
