#include "verdicts.h"

#include <stdio.h>
#include <string.h>

#include "judges.h"

/* The judges, causes first: a row explains only what stands below it, so nothing explains itself.
 * The last row is the end; what it says is explained by whoever names that id. */
const struct afz_judge afz_judges[] = {
        /* What was broken or taken from outside the program. */
        {"driver-fault", afz_judge_driver_fault, {"gpu-oom", "hang", "crash", "exception"}},
        {"overheat", afz_judge_overheat, {"power-limit", "machine-lost"}},
        {"power-limit", afz_judge_power_limit, {NULL}},
        {"gpu-held-by-other", afz_judge_gpu_held_by_other, {"gpu-oom", "gpu-spill", "exception"}},
        {"gpu-preallocated", afz_judge_gpu_preallocated, {"gpu-oom", "gpu-spill"}},
        /* What the program takes and does not give back. */
        {"thread-leak", /* their stacks are memory, too */
         afz_judge_thread_leak,
         {"leak", "cpu-oversubscription", "fork-storm", "crash", "exception"}},
        {"leak",
         afz_judge_leak,
         {"swap-thrash", "swap-insufficient", "shm-full", "host-exhaustion", "oom-killed"}},
        /* These tell what kind it is, where the one above could not. */
        {"leak:retrace",
         afz_judge_retrace,
         {"swap-thrash", "swap-insufficient", "host-exhaustion", "oom-killed"}},
        {"leak:retained-graph",
         afz_judge_graph_kept,
         {"swap-thrash", "swap-insufficient", "host-exhaustion", "oom-killed", "gpu-oom"}},
        {"leak:gpu", afz_judge_gpu_leak, {"gpu-oom"}},
        /* What it holds at once: a leak goes first, for what grows meets any line. */
        {"model-too-large",
         afz_judge_model_large,
         {"gpu-oom", "host-exhaustion", "oom-killed", "exception", "crash"}},
        {"shuffle-buffer",
         afz_judge_shuffle,
         {"swap-thrash", "swap-insufficient", "host-exhaustion", "oom-killed"}},
        {"held-after-use", afz_judge_held, {"gpu-oom", "host-exhaustion", "oom-killed"}},
        {"dataset-in-memory",
         afz_judge_dataset,
         {"swap-thrash", "swap-insufficient", "host-exhaustion", "oom-killed"}},
        {"dataset-in-vram", afz_judge_dataset_in_vram, {"gpu-oom"}},
        {"gpu-fragmentation", afz_judge_gpu_fragmentation, {"gpu-oom"}},
        {"batch-too-large",
         afz_judge_batch,
         {"swap-thrash", "swap-insufficient", "host-exhaustion", "oom-killed", "gpu-oom"}},
        {"layer-buffer",
         afz_judge_layer,
         {"swap-thrash", "swap-insufficient", "host-exhaustion", "oom-killed"}},
        {"fd-leak", afz_judge_fd_leak, {"exception", "crash"}},
        {"log-growth", afz_judge_log_growth, {"disk-full", "exception"}},
        {"disk-full", afz_judge_disk_full, {"hang", "crash", "exception"}},
        {"shm-full", afz_judge_shm_full, {"hang", "crash", "exception", "host-exhaustion"}},
        {"gpu-oom", afz_judge_gpu_oom, {"crash", "exception"}},
        {"gpu-spill", afz_judge_gpu_spill, {NULL}},
        /* What slows it, or holds it up. */
        {"swap-thrash", afz_judge_swap_thrash, {"hang", "data-stall", "killed-externally"}},
        {"swap-insufficient", afz_judge_swap_insufficient, {NULL}},
        {"hang", afz_judge_hang, {"data-stall", "killed-externally"}},
        {"cpu-oversubscription", afz_judge_cpu_oversubscription, {"data-stall"}},
        {"data-stall", afz_judge_data_stall, {NULL}},
        {"accumulation-broken", afz_judge_accumulation, {NULL}},
        /* How it ended. */
        {"end", afz_judge_end, {NULL}},
};
const unsigned afz_judges_count = sizeof afz_judges / sizeof *afz_judges;

/* A cause is believed as one from here on: a guess explains nothing. */
#define CAUSE_CONFIDENCE 0.5

/* Ends that have many causes. One that was only seen on the way, and was not serious, does not
 * explain them: a run that opens ever more files also fails for other reasons. */
static const char *const own_ends[] = {"exception", "crash", "killed-externally", "machine-lost"};

/* ---- who explains whom ---- */

static const struct afz_judge *row_of(const struct afz_verdict *v)
{
        for (unsigned i = 0; i + 1 < afz_judges_count; i++)
                if (afz_verdict_is_of(v->id, afz_judges[i].id))
                        return &afz_judges[i];
        return &afz_judges[afz_judges_count - 1];
}

/* What it explains: of a kind that has a row of its own, that one says. */
static const struct afz_judge *kind_row_of(const struct afz_verdict *v)
{
        for (unsigned i = 0; i + 1 < afz_judges_count; i++)
                if (strcmp(v->id, afz_judges[i].id) == 0)
                        return &afz_judges[i];
        return row_of(v);
}

/* Who is killed while it hangs is killed for that: the one end that needs no serious cause. */
static bool is_put_down(const struct afz_verdict *cause, const struct afz_verdict *v)
{
        return afz_verdict_is_of(cause->id, "hang") && strcmp(v->id, "killed-externally") == 0;
}

static enum afz_level level_to_explain(const struct afz_verdict *v)
{
        for (unsigned i = 0; i < sizeof own_ends / sizeof *own_ends; i++)
                if (strcmp(v->id, own_ends[i]) == 0)
                        return AFZ_LEVEL_ACT;
        return AFZ_LEVEL_WARN;
}

static bool explains(const struct afz_verdict *cause, const struct afz_verdict *v)
{
        const struct afz_judge *row = kind_row_of(cause);
        if ((cause->level < level_to_explain(v) && !is_put_down(cause, v)) ||
            cause->confidence < CAUSE_CONFIDENCE)
                return false;
        for (unsigned i = 0; i < sizeof row->explains / sizeof *row->explains; i++)
                if (row->explains[i] && afz_verdict_is_of(v->id, row->explains[i]))
                        return true;
        return false;
}

/* The uppermost row that explains it is its cause, not the ones between. */
static void find_causes(struct afz_outcome *o)
{
        for (unsigned i = 0; i < o->verdicts; i++) {
                struct afz_verdict *v = &o->verdict[i];
                const struct afz_verdict *cause = NULL;
                v->caused_by[0] = '\0';
                for (unsigned k = 0; k < o->verdicts; k++) {
                        const struct afz_verdict *other = &o->verdict[k];
                        if (k != i && v->level != AFZ_LEVEL_OK && explains(other, v) &&
                            (!cause || row_of(other) < row_of(cause)))
                                cause = other;
                }
                if (cause)
                        memcpy(v->caused_by, cause->id, sizeof v->caused_by);
        }
}

/* ---- order ---- */

/* An end out of sight: nothing is known of it, and still it is what happened. */
static bool is_lost(const struct afz_verdict *v)
{
        return strcmp(v->id, "lost") == 0 || strcmp(v->id, "machine-lost") == 0;
}

/* A cause weighs as much as the heaviest that it led to, at any remove. */
static enum afz_level weight_of(const struct afz_outcome *o, const struct afz_verdict *v)
{
        enum afz_level level = is_lost(v) ? AFZ_LEVEL_WARN : v->level;
        for (unsigned i = 0; i < o->verdicts; i++)
                if (strcmp(o->verdict[i].caused_by, v->id) == 0) {
                        enum afz_level below = weight_of(o, &o->verdict[i]);
                        level = below > level ? below : level;
                }
        return level;
}

/* By weight; then causes; then an end that was no good and that nobody explained, for that is what
 * was asked; then by how sure it is; then as in the table. */
static bool comes_before(const struct afz_outcome *o, const struct afz_verdict *a,
                         const struct afz_verdict *b)
{
        const struct afz_judge *end = &afz_judges[afz_judges_count - 1];
        enum afz_level weight_a = weight_of(o, a), weight_b = weight_of(o, b);
        bool caused_a = a->caused_by[0] != '\0', caused_b = b->caused_by[0] != '\0';
        bool end_a = row_of(a) == end && !caused_a, end_b = row_of(b) == end && !caused_b;
        if (weight_a != weight_b)
                return weight_a > weight_b;
        if (caused_a != caused_b)
                return caused_b;
        if (end_a != end_b)
                return end_a;
        if (a->confidence > b->confidence || a->confidence < b->confidence)
                return a->confidence > b->confidence;
        return row_of(a) < row_of(b);
}

static void sort(struct afz_outcome *o)
{
        const struct afz_outcome was = *o;
        bool taken[AFZ_VERDICTS_MAX] = {false};
        for (unsigned i = 0; i < was.verdicts; i++) {
                const struct afz_verdict *best = NULL;
                for (unsigned k = 0; k < was.verdicts; k++)
                        if (!taken[k] && (!best || comes_before(&was, &was.verdict[k], best)))
                                best = &was.verdict[k];
                taken[best - was.verdict] = true;
                o->verdict[i] = *best;
        }
}

/* ---- at most so many, each once ---- */

static void drop(struct afz_outcome *o, unsigned at)
{
        o->verdicts--;
        memmove(&o->verdict[at], &o->verdict[at + 1], (o->verdicts - at) * sizeof o->verdict[0]);
}

static bool is_weaker(const struct afz_verdict *a, const struct afz_verdict *b)
{
        return a->level != b->level ? a->level < b->level : a->confidence < b->confidence;
}

/* Of two of a family the weaker one goes. */
static void drop_twins(struct afz_outcome *o)
{
        for (unsigned i = 0; i < o->verdicts; i++)
                for (unsigned k = i + 1; k < o->verdicts;)
                        if (!afz_verdict_is_of(o->verdict[k].id, row_of(&o->verdict[i])->id) &&
                            strcmp(o->verdict[i].id, o->verdict[k].id) != 0) {
                                k++;
                        } else {
                                if (is_weaker(&o->verdict[i], &o->verdict[k]))
                                        o->verdict[i] = o->verdict[k];
                                drop(o, k);
                        }
}

/* One line either keeps ever more, or holds what was loaded once: of the two, the surer stays. */
static bool are_rivals(const struct afz_verdict *a, const struct afz_verdict *b)
{
        return afz_verdict_is_of(a->id, "leak") && afz_verdict_is_of(b->id, "dataset-in-memory") &&
               a->where.file[0] && a->where.line == b->where.line &&
               strcmp(a->where.file, b->where.file) == 0 &&
               (a->where.line > 0 || strcmp(a->where.function, b->where.function) == 0);
}

static void drop_rivals(struct afz_outcome *o)
{
        for (unsigned i = 0; i < o->verdicts; i++)
                for (unsigned k = 0; k < o->verdicts; k++)
                        if (are_rivals(&o->verdict[i], &o->verdict[k])) {
                                bool loads = o->verdict[k].confidence > o->verdict[i].confidence;
                                if (loads) /* it ended for that, then */
                                        o->verdict[k].level = o->verdict[i].level;
                                drop(o, loads ? i : k);
                                drop_rivals(o); /* their places have moved */
                                return;
                        }
}

/* There is room for what the next judge says: the end is said always. */
static void make_room(struct afz_outcome *o)
{
        if (o->verdicts < AFZ_VERDICTS_MAX)
                return;
        unsigned weakest = 0;
        for (unsigned i = 1; i < o->verdicts; i++)
                if (!is_weaker(&o->verdict[weakest], &o->verdict[i]))
                        weakest = i;
        drop(o, weakest);
}

void afz_verdicts_settle(struct afz_outcome *outcome)
{
        drop_twins(outcome);
        drop_rivals(outcome);
        find_causes(outcome);
        sort(outcome);
}

void afz_verdicts_of(const struct afz_case *c, struct afz_outcome *ret)
{
        memset(ret, 0, sizeof *ret);
        ret->end = c->facts.end;
        for (unsigned i = 0; i < afz_judges_count; i++) {
                make_room(ret);
                afz_judges[i].judge(c, ret);
        }
        if (ret->verdicts == 0 && ret->end.how != AFZ_END_RUNNING) {
                struct afz_verdict *v = afz_outcome_add(ret, "not-known", AFZ_LEVEL_UNKNOWN, 1);
                snprintf(v->summary, sizeof v->summary,
                         "it ended; nothing was recorded that tells how or why");
        }
        afz_verdicts_settle(ret);
}
