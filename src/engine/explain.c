#include "explain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "flight_file.h"
#include "quantity.h"

/* How the job's need moved at the end of a recording: the mean of its last seconds against that of
 * those before. */
#define LAST_MS      5000
#define MOVED_SHARE  0.02 /* less is noise: an allocator breathes more than that */
#define SHORTEST_END 2000 /* ms: before that nothing can be said of a direction */

/* Nearly all of a long recording are figures of single processes. These of them are for exports
 * alone, and those for who is handed the recording (the ledger of memory, the report): no judge
 * asks for them, and tests/test_unasked.py holds them to it. Without both a day of 32 processes is
 * judged in half the time. */
#define BIT(metric) (UINT64_C(1) << ((metric)&0xff))
static const uint64_t unasked =
        BIT(AFZ_PROC_CANCELLED) | BIT(AFZ_PROC_DEPTH) | BIT(AFZ_PROC_LOCKED) |
        BIT(AFZ_PROC_MAJOR_FAULTS) | BIT(AFZ_PROC_MINOR_FAULTS) | BIT(AFZ_PROC_NICE) |
        BIT(AFZ_PROC_OOM_ADJ) | BIT(AFZ_PROC_ORPHAN) | BIT(AFZ_PROC_PREEMPTIONS) |
        BIT(AFZ_PROC_PSS_AGE) | BIT(AFZ_PROC_RANK) | BIT(AFZ_PROC_READ) | BIT(AFZ_PROC_READ_CALLS) |
        BIT(AFZ_PROC_RSS_PEAK) | BIT(AFZ_PROC_RSS_SHARED) | BIT(AFZ_PROC_SWITCHES) |
        BIT(AFZ_PROC_THREADS_DISK) | BIT(AFZ_PROC_VSIZE);
static const uint64_t only_shown =
        BIT(AFZ_PROC_PAGE_TABLES) | BIT(AFZ_PROC_PINNED) | BIT(AFZ_PROC_PRIVATE_DIRTY) |
        BIT(AFZ_PROC_PSS) | BIT(AFZ_PROC_PSS_ANON) | BIT(AFZ_PROC_PSS_FILE) |
        BIT(AFZ_PROC_PSS_SHMEM) | BIT(AFZ_PROC_RSS) | BIT(AFZ_PROC_RSS_FILE) |
        BIT(AFZ_PROC_RSS_SHMEM) | BIT(AFZ_PROC_SWAP) | BIT(AFZ_PROC_SWAP_PSS);

static bool is_asked(enum afz_metric metric)
{
        return afz_metric_kind(metric) != AFZ_KIND_PROC || !(unasked & BIT(metric));
}

static bool is_judged(enum afz_metric metric)
{
        return afz_metric_kind(metric) != AFZ_KIND_PROC || !((unasked | only_shown) & BIT(metric));
}

static bool is_lost(const struct afz_outcome *outcome)
{
        return outcome->end.how == AFZ_END_LOST;
}

/* A guard that was killed has told its page little, and a machine that went down took the page
 * along: what the recording knows better is put in. */
static void complete(struct afz_run_known *known, const struct afz_flight *flight)
{
        struct afz_run_page *page = &known->page;
        uint32_t did[AFZ_ACTION_COUNT] = {0};
        int64_t most;
        if (afz_column_most(afz_flight_need(flight), 0, UINT32_MAX, &most) && most > 0 &&
            (uint64_t)most > page->peak_bytes)
                page->peak_bytes = (uint64_t)most;
        if (known->duration_ns < flight->end_ms * UINT64_C(1000000))
                known->duration_ns = flight->end_ms * UINT64_C(1000000);
        for (size_t i = 0; i < flight->marks; i++)
                if (flight->mark[i].kind == AFZ_MARK_ACTION && flight->mark[i].code >= 0 &&
                    flight->mark[i].code < AFZ_ACTION_COUNT)
                        did[flight->mark[i].code]++;
        for (int i = 0; i < AFZ_ACTION_COUNT; i++)
                if (did[i] > page->did[i])
                        page->did[i] = did[i];
}

void afz_explain_case(const struct afz_run_known *known, const struct afz_flight *flight,
                      struct afz_case *ret)
{
        const struct afz_run_page *page = &known->page;
        uint64_t budget = page->budget_bytes, swap = page->swap_bytes;
        *ret = (struct afz_case){
                .flight = flight,
                .facts = page->facts,
                .rebooted = known->rebooted,
                .peak_bytes = page->peak_bytes,
                .budget_bytes = budget == UINT64_MAX ? 0 : budget,
                .swap_bytes = swap == UINT64_MAX ? 0 : swap,
        };
        for (int i = 0; i < AFZ_ACTION_COUNT; i++)
                ret->did[i] = page->did[i];
        ret->facts.end = known->outcome.end;
        ret->facts.watch_only |= page->policy == AFZ_POLICY_WATCH || ret->budget_bytes == 0;
        if (ret->facts.hard_bytes == 0 && !ret->facts.watch_only)
                ret->facts.hard_bytes = ret->budget_bytes + ret->swap_bytes;
}

static const char *direction(const struct afz_column *need, uint32_t end_ms)
{
        double last, before;
        uint32_t span = end_ms / 2 < LAST_MS ? end_ms / 2 : LAST_MS;
        uint32_t from = end_ms - span, earlier = from - span;
        if (end_ms < SHORTEST_END || !afz_column_mean(need, from, UINT32_MAX, &last) ||
            !afz_column_mean(need, earlier, from, &before))
                return "";
        return last > before * (1 + MOVED_SHARE)   ? ", and rising"
               : last < before * (1 - MOVED_SHARE) ? ", and falling"
                                                   : ", and steady";
}

/* "the recording ends at 12:03:11, 41 s into the run; it needed 3.1G then, and rising" */
static void note_last_seen(const struct afz_run_known *known, const struct afz_flight *flight,
                           struct afz_outcome *outcome)
{
        const struct afz_column *need = afz_flight_need(flight);
        struct afz_verdict *v = &outcome->verdict[0];
        char at[16] = "", into[AFZ_DURATION_TEXT_CAP], size[AFZ_SIZE_TEXT_CAP], held[96] = "";
        time_t s = (time_t)(known->page.started_s + flight->end_ms / 1000);
        struct tm tm;
        int64_t last;

        for (unsigned i = 0; i < outcome->verdicts; i++)
                if (strcmp(outcome->verdict[i].id, "lost") == 0 ||
                    strcmp(outcome->verdict[i].id, "machine-lost") == 0)
                        v = &outcome->verdict[i];
        if (known->page.started_s > 0 && localtime_r(&s, &tm))
                strftime(at, sizeof at, " at %H:%M:%S", &tm);
        if (afz_column_last(need, UINT32_MAX, &last) && last >= 0)
                snprintf(held, sizeof held, "; it needed %s then%s",
                         afz_format_size(size, sizeof size, (uint64_t)last),
                         direction(need, flight->end_ms));
        afz_verdict_note(v, "the recording ends%s, %s into the run%s", at,
                         afz_format_duration(into, sizeof into, flight->end_ms * UINT64_C(1000000)),
                         held);
}

/* "it ended; only its parent knows how" is said of an attached job; here somebody knew. */
static void tell_remains(const struct afz_flight *flight, struct afz_outcome *outcome)
{
        for (unsigned i = 0; i < outcome->verdicts; i++) {
                struct afz_verdict *v = &outcome->verdict[i];
                if (strcmp(v->id, "not-known") == 0)
                        snprintf(v->summary, sizeof v->summary,
                                 "only its recording is left%s: how it ended is not known",
                                 flight->ended ? "" : ", and that is cut off");
        }
        if (outcome->verdicts > 0)
                afz_verdict_note(&outcome->verdict[0],
                                 "this is from the recording alone: its verdict.json is missing");
}

/* What the guard itself found says more where the judges only know that they do not know. */
static bool says_less(const struct afz_outcome *judged, const struct afz_outcome *guard)
{
        if (judged->verdicts == 0)
                return true;
        bool unsure = judged->verdict[0].level == AFZ_LEVEL_UNKNOWN;
        return guard->verdicts > 0 && unsure &&
               (guard->verdict[0].level != AFZ_LEVEL_UNKNOWN || !is_lost(judged));
}

/* Where there is no recording, what stands at its head is known all the same. */
static void make_head(const struct afz_run_page *page, struct afz_flight *flight)
{
        struct afz_flight_head *head = &flight->head;
        afz_flight_init(flight);
        memcpy(head->run, page->id, sizeof head->run);
        memcpy(head->boot_id, page->boot_id, sizeof head->boot_id);
        head->cmd = strdup(page->cmd);
        head->cwd = strdup("");
        head->git = strdup("");
        head->started_s = page->started_s;
        head->budget_bytes = page->budget_bytes;
        head->swap_bytes = page->swap_bytes;
        head->tier = page->tier;
        head->policy = page->policy;
}

void afz_explain_flight(struct afz_run_known *known, const struct afz_flight *flight)
{
        struct afz_outcome judged = {0};
        struct afz_case c;
        bool open = known->outcome.end.how == AFZ_END_RUNNING || is_lost(&known->outcome);
        if (open && flight->tracks > 0)
                complete(known, flight);
        afz_explain_case(known, flight, &c);
        afz_verdicts_of(&c, &judged);
        judged.end = known->outcome.end;
        if (is_lost(&judged) && judged.verdicts > 0 && flight->end_ms > 0)
                note_last_seen(known, flight, &judged);
        if (known->only_recording)
                tell_remains(flight, &judged);
        if (!says_less(&judged, &known->outcome))
                known->outcome = judged;
}

int afz_explain_known(struct afz_run_known *known, int dir_fd, struct afz_flight *ret_flight,
                      char *why)
{
        struct afz_flight flight;
        bool stands = known->recorded && !is_lost(&known->outcome);
        int r = -ENOENT;

        if (why)
                why[0] = '\0';
        afz_flight_init(&flight);
        if (dir_fd >= 0 && (ret_flight || !stands))
                r = afz_flight_read(dir_fd, ret_flight ? is_asked : is_judged, &flight, why);
        if (r >= 0 && strcmp(flight.head.run, known->page.id) != 0) {
                if (why)
                        snprintf(why, AFZ_RUN_WHY_CAP, AFZ_FLIGHT_NAME " %s",
                                 flight.head.run[0] ? "is of another run"
                                                    : "is cut off: nothing can be read of it");
                r = -ENOENT;
        }
        if (r < 0) {
                afz_flight_done(&flight); /* half of one would look like a short run */
                make_head(&known->page, &flight);
        }
        if (!stands)
                afz_explain_flight(known, &flight);
        if (ret_flight)
                *ret_flight = flight;
        else
                afz_flight_done(&flight);
        return r;
}

int afz_explain(const struct afz_run_ref *ref, const struct afz_outcome *guard,
                struct afz_outcome *ret, struct afz_flight *ret_flight, char *why)
{
        struct afz_run_known known;
        int r = afz_run_recall(ref, &known);
        if (r < 0)
                return r;
        if (guard) {
                known.outcome = *guard;
                known.recorded = false; /* it is to be looked into */
        }
        int dir_fd = ref->dir[0] ? open(ref->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        (void)afz_explain_known(&known, dir_fd, ret_flight, why);
        if (dir_fd >= 0)
                close(dir_fd);
        *ret = known.outcome;
        return 0;
}
