/* driver-fault: the GPU's driver or the GPU itself failed. The driver reports such things by number
 * (Xid); some of these numbers are no fault of it but of a program that asked for what it may not
 * have, and one of them only says that a program was ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count_of.h"
#include "judge_words.h"
#include "judges.h"
#include "stretch.h"

static const struct {
        uint32_t stuck_ms; /* without an answer of the driver */
} at = {
        .stuck_ms = 30000, /* resets take ten seconds */
};

/* Whose fault it is. */
enum whose { HARDWARE, DRIVER, PROGRAM, NOBODY };

/* By the numbers in NVIDIA's list of Xid errors. */
static const struct xid {
        int64_t code;
        enum whose whose;
        const char *what;
} xids[] = {
        {13, PROGRAM, "a program on the GPU went wrong (often an index out of range)"},
        {31, PROGRAM, "a program on the GPU used memory that is not its own"},
        {43, NOBODY, "a program's work was stopped"},
        {45, NOBODY, "a program's work was removed after its end"},
        {48, HARDWARE, "the GPU's memory has an error that cannot be mended"},
        {61, DRIVER, "the GPU's own controller stopped"},
        {62, DRIVER, "the GPU's own controller stopped"},
        {63, NOBODY, "a bad row of the GPU's memory was replaced"},
        {64, HARDWARE, "a bad row of the GPU's memory could not be replaced"},
        {68, DRIVER, "the video unit failed"},
        {69, PROGRAM, "a program on the GPU used it wrongly"},
        {74, HARDWARE, "the link between GPUs (NVLink) failed"},
        {79, HARDWARE, "the GPU fell off its bus"},
        {92, NOBODY, "many errors of the GPU's memory were mended"},
        {94, HARDWARE, "the GPU's memory has an error; only this program was hit"},
        {95, HARDWARE, "the GPU's memory has an error that hit everything on it"},
        {109, DRIVER, "the GPU did not switch between programs in time"},
        {119, DRIVER, "the GPU's system processor (GSP) did not answer"},
        {120, DRIVER, "the GPU's system processor (GSP) failed"},
};

/* One that we have no words for is the driver's. */
static const struct xid *xid_of(int64_t code)
{
        static const struct xid other = {0, DRIVER, "the GPU's driver reported an error"};
        for (size_t i = 0; i < AFZ_COUNT_OF(xids); i++)
                if (xids[i].code == code)
                        return &xids[i];
        return &other;
}

/* "NVRM: Xid (PCI:0000:01:00): 31, pid=1234, name=python, ...": whether it is one of the job's.
 * Where no process is told, it may be. */
static bool may_be_ours(const struct afz_flight *flight, const char *text)
{
        const char *pid = strstr(text, "pid=");
        char *end;
        if (!pid)
                return true;
        unsigned long long n = strtoull(pid + 4, &end, 10);
        return end == pid + 4 || afz_flight_find(flight, AFZ_KIND_PROC, n);
}

/* Whether the driver told anything of a GPU in the time after it was stuck. */
static bool answered_after(const struct afz_flight *flight, uint32_t t_ms)
{
        const struct afz_track *gpu;
        int64_t any;
        for (size_t cursor = 0; (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));)
                for (size_t i = 0; i < gpu->columns; i++)
                        if (afz_column_last(&gpu->column[i], UINT32_MAX, &any) &&
                            gpu->column[i].point[gpu->column[i].count - 1].t_ms > t_ms)
                                return true;
        return false;
}

struct fault {
        const struct afz_mark *mark;
        const struct xid *xid;
        enum whose whose;
        unsigned count;
};

/* The worst so far is kept: what is hardware's comes first in the list of whose it is. */
static void keep_worst(struct fault *worst, const struct afz_mark *m, const struct xid *xid,
                       enum whose whose)
{
        worst->count++;
        if (worst->mark && worst->whose <= whose)
                return;
        worst->mark = m;
        worst->xid = xid;
        worst->whose = whose;
}

static void take_mark(const struct afz_flight *flight, const struct afz_mark *m,
                      struct fault *worst)
{
        int64_t code = m->code & UINT32_MAX;
        const struct xid *xid;
        switch ((enum afz_event_kind)(m->code >> 32)) {
        case AFZ_EVENT_XID:
                xid = xid_of(code);
                if (xid->whose != NOBODY && (xid->whose != PROGRAM || may_be_ours(flight, m->text)))
                        keep_worst(worst, m, xid, xid->whose);
                break;
        case AFZ_EVENT_GPU_LOST:
                keep_worst(worst, m, xid_of(79), HARDWARE);
                break;
        case AFZ_EVENT_GPU_STUCK:
                if (flight->end_ms > m->t_ms && flight->end_ms - m->t_ms >= at.stuck_ms &&
                    !answered_after(flight, m->t_ms))
                        keep_worst(worst, m, NULL, DRIVER);
                break;
        default:
                break;
        }
}

/* Errors of the GPU's memory that were not mended, as the driver counts them. */
static const struct afz_track *broken_memory(const struct afz_flight *flight, int64_t *ret_count)
{
        const struct afz_track *gpu;
        for (size_t cursor = 0; (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));) {
                const struct afz_column *c = afz_track_column(gpu, AFZ_GPU_ECC_UNCORRECTED);
                int64_t last;
                if (!c || c->count == 0 || !afz_job_may_use_gpu(flight, gpu->subject.id) ||
                    !afz_column_last(c, UINT32_MAX, &last) || c->point[0].least < 0 ||
                    last <= c->point[0].least)
                        continue;
                *ret_count = last - c->point[0].least;
                return gpu;
        }
        return NULL;
}

static void say_fix(enum whose whose, struct afz_verdict *v)
{
        static const char *const fix[] = {
                [HARDWARE] = "restart the machine; if it comes again, the GPU, its slot or its "
                             "power cable is bad: have it checked (nvidia-smi -q, dcgmi diag)",
                [DRIVER] = "restart the machine, and update the driver (or go back to the last one "
                           "that worked)",
                [PROGRAM] = "this is a mistake in a GPU program, not in the GPU: run once with "
                            "CUDA_LAUNCH_BLOCKING=1 to see which call (often a label or an index "
                            "beyond the end)",
        };
        snprintf(v->fix, sizeof v->fix, "%s", fix[whose]);
}

static void say_fault(const struct fault *f, struct afz_outcome *ret)
{
        struct afz_verdict *v = afz_outcome_add(ret, "driver-fault", AFZ_LEVEL_ACT,
                                                f->whose == PROGRAM ? 0.85 : 0.95);
        if (!v)
                return;
        if (f->xid)
                snprintf(v->summary, sizeof v->summary, "%s", f->xid->what);
        else
                snprintf(v->summary, sizeof v->summary,
                         "the GPU's driver stopped answering and did not come back");
        say_fix(f->whose, v);
        afz_verdict_note(v, "%s after the start: %.150s", LASTS(f->mark->t_ms), f->mark->text);
        if (f->count > 1)
                afz_verdict_note(v, "%u such reports in all", f->count);
        v->from_ms = f->mark->t_ms > 10000 ? f->mark->t_ms - 10000 : 0;
        v->to_ms = f->mark->t_ms;
}

AFZ_JUDGE(driver_fault)
{
        struct fault worst = {0};
        int64_t errors;
        for (size_t i = 0; i < c->flight->marks; i++)
                if (c->flight->mark[i].kind == AFZ_MARK_EVENT && c->flight->mark[i].code >= 0)
                        take_mark(c->flight, &c->flight->mark[i], &worst);
        if (worst.mark) {
                say_fault(&worst, ret);
                return;
        }
        const struct afz_track *gpu = broken_memory(c->flight, &errors);
        struct afz_verdict *v =
                gpu ? afz_outcome_add(ret, "driver-fault", AFZ_LEVEL_ACT, 0.85) : NULL;
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "the memory of %.60s had errors that could not be mended",
                 gpu->name[0] ? gpu->name : "the GPU");
        say_fix(HARDWARE, v);
        afz_verdict_note(v, "%lld such errors during the run, the driver says", (long long)errors);
}
