#include "run_remains.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "env.h"
#include "flight_file.h"
#include "run_id.h"

/* "run ID: ", the first line of verdict.txt. */
static bool id_in_text(int dir_fd, char ret[AFZ_RUN_ID_CAP])
{
        char buf[64];
        struct afz_span text, id;
        int fd = openat(dir_fd, "verdict.txt", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return false;
        ssize_t n = afz_fd_read_head(fd, buf, sizeof buf);
        close(fd);
        if (n < 0)
                return false;
        text = (struct afz_span){buf, (size_t)n};
        if (afz_span_take_prefix(&text, "run ") < 0 || afz_span_take_until(&text, ':', &id) < 0 ||
            id.n != AFZ_RUN_ID_LENGTH)
                return false;
        afz_span_copy(id, ret, AFZ_RUN_ID_CAP);
        return afz_run_id_is(ret);
}

/* For its head alone. */
static bool nothing(enum afz_metric metric)
{
        (void)metric;
        return false;
}

static bool id_in_recording(int dir_fd, char ret[AFZ_RUN_ID_CAP])
{
        struct afz_flight flight;
        afz_flight_init(&flight);
        bool found = afz_flight_read(dir_fd, nothing, &flight, NULL) >= 0 &&
                     afz_run_id_is(flight.head.run);
        if (found)
                memcpy(ret, flight.head.run, AFZ_RUN_ID_CAP);
        afz_flight_done(&flight);
        return found;
}

bool afz_run_id_in_folder(int dir_fd, char ret[AFZ_RUN_ID_CAP])
{
        return id_in_text(dir_fd, ret) || id_in_recording(dir_fd, ret);
}

/* When it was first asked to end, or killed, in its last attempt; false: it was not. */
static bool find_stop(const struct afz_flight *flight, uint32_t *ret_ms)
{
        bool found = false;
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *mark = &flight->mark[i];
                if (mark->kind == AFZ_MARK_ATTEMPT)
                        found = false;
                if (found || mark->kind != AFZ_MARK_ACTION ||
                    (mark->code != AFZ_ACTION_INTERRUPT && mark->code != AFZ_ACTION_TERMINATE &&
                     mark->code != AFZ_ACTION_KILL))
                        continue;
                found = true;
                *ret_ms = mark->t_ms;
        }
        return found;
}

/* It was being written here when the machine went down. */
static bool is_cut_off(const struct afz_flight *flight)
{
        const struct afz_flight_head *head = &flight->head;
        char boot[AFZ_BOOT_ID_CAP], host[sizeof head->host] = "";
        afz_boot_id(boot);
        (void)gethostname(host, sizeof host - 1);
        return !flight->ended && boot[0] && head->boot_id[0] && strcmp(host, head->host) == 0 &&
               strcmp(boot, head->boot_id) != 0;
}

static void take_end(const struct afz_flight *flight, struct afz_run_known *known)
{
        struct afz_facts *facts = &known->page.facts;
        uint32_t at_ms = 0;
        int64_t need;
        known->outcome.end = (struct afz_end){AFZ_END_UNKNOWN, -1};
        known->rebooted = is_cut_off(flight);
        if (known->rebooted)
                known->outcome.end.how = AFZ_END_LOST;
        if (known->rebooted || !find_stop(flight, &at_ms))
                return;
        known->outcome.end.how = AFZ_END_STOPPED;
        facts->stop_cause = AFZ_CAUSE_BUDGET;
        if (afz_column_most(afz_flight_need(flight), at_ms > 1000 ? at_ms - 1000 : 0, at_ms + 1000,
                            &need) &&
            need > 0)
                facts->stop_need_bytes = (uint64_t)need;
}

static void take_head(const struct afz_flight *flight, struct afz_run_known *known)
{
        const struct afz_flight_head *head = &flight->head;
        struct afz_run_page *page = &known->page;
        int64_t peak;
        memcpy(page->id, head->run, sizeof page->id);
        memcpy(page->boot_id, head->boot_id, sizeof page->boot_id);
        afz_span_copy(afz_span_str(head->cmd ? head->cmd : ""), page->cmd, sizeof page->cmd);
        page->started_s = head->started_s;
        page->budget_bytes = head->budget_bytes;
        page->swap_bytes = head->swap_bytes;
        page->tier = head->tier < AFZ_TIER_COUNT ? head->tier : AFZ_TIER_NONE;
        page->policy = head->policy < AFZ_POLICY_COUNT ? head->policy : AFZ_POLICY_PROTECT;
        page->gpu_peak_bytes = AFZ_GPU_UNKNOWN;
        if (afz_column_most(afz_flight_need(flight), 0, UINT32_MAX, &peak) && peak > 0)
                page->peak_bytes = (uint64_t)peak;
        for (size_t i = 0; i < flight->marks; i++)
                if (flight->mark[i].kind == AFZ_MARK_ACTION && flight->mark[i].code >= 0 &&
                    flight->mark[i].code < AFZ_ACTION_COUNT)
                        page->did[flight->mark[i].code]++;
        known->duration_ns = flight->end_ms * AFZ_NS_PER_MS;
}

int afz_run_recall_recording(const struct afz_run_ref *ref, struct afz_run_known *ret)
{
        struct afz_flight flight;
        int dir_fd = ref->dir[0] ? open(ref->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (dir_fd < 0)
                return -ENOENT;
        afz_flight_init(&flight);
        int r = afz_flight_read(dir_fd, NULL, &flight, NULL);
        close(dir_fd);
        if (r >= 0 && strcmp(flight.head.run, ref->id) == 0) {
                *ret = (struct afz_run_known){.only_recording = true};
                take_head(&flight, ret);
                take_end(&flight, ret);
                memcpy(ret->page.dir, ref->dir, sizeof ret->page.dir);
                r = 0;
        } else {
                r = -ENOENT;
        }
        afz_flight_done(&flight);
        return r;
}
