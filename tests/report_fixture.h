#ifndef AFZ_REPORT_FIXTURE_H
#define AFZ_REPORT_FIXTURE_H
/* Runs made by hand, for pictures of them: a leak of 30 seconds that ends in a stop, a calm day of
 * 24 hours with loader workers and GPUs, one whose every text is hostile, one of which nothing
 * is known, one with a single line that holds memory and one with thousands of stacks. Made of
 * arithmetic alone, so that they are the same each time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_event.h"
#include "flight.h"
#include "report.h"
#include "role.h"
#include "verdict.h"

#define FIX_MIB (INT64_C(1) << 20)
#define FIX_GIB (INT64_C(1) << 30)
#define FIX_EVIL                                                                                   \
        "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{{}}\x01\xff\xc3(" \
        "\xe2\x80\xae<!--]]>"

struct fix_page {
        struct afz_flight flight;
        struct afz_outcome outcome;
        struct afz_report_ledger ledger;
        struct afz_report_uses uses;
        struct afz_report report;
        uint32_t seed;
};

/* A small noise that is the same in every run: -0.5 to 0.5. */
static double fix_noise(struct fix_page *page)
{
        page->seed = page->seed * 1664525U + 1013904223U;
        return (double)(page->seed >> 8) / (double)(1U << 24) - 0.5;
}

static struct afz_track *fix_track(struct fix_page *page, enum afz_kind kind, uint64_t id,
                                   const char *name, const char *detail, const char *note)
{
        struct afz_subject subject = {.kind = kind, .id = id};
        struct afz_track *track = afz_flight_track(&page->flight, &subject, name, detail, note);
        if (!track)
                abort();
        return track;
}

/* By kind and id each time: a new track may move the others. */
static void fix_span(struct fix_page *page, enum afz_metric metric, uint64_t id, uint32_t t_ms,
                     uint32_t span_ms, double mean, double spread)
{
        struct afz_track *track = fix_track(page, afz_metric_kind(metric), id, "", "", "");
        struct afz_point point = {.t_ms = t_ms,
                                  .span_ms = span_ms,
                                  .least = (int64_t)(mean - spread),
                                  .most = (int64_t)(mean + spread),
                                  .mean = (int64_t)mean};
        if (afz_flight_add(&page->flight, track, metric, &point) < 0)
                abort();
}

static void fix_at(struct fix_page *page, enum afz_metric metric, uint64_t id, uint32_t t_ms,
                   double value)
{
        fix_span(page, metric, id, t_ms, 0, value, 0);
}

static void fix_mark(struct fix_page *page, uint32_t t_ms, enum afz_mark_kind kind, int64_t code,
                     const char *text)
{
        if (afz_flight_mark(&page->flight, t_ms, kind, code, text, strlen(text)) < 0)
                abort();
}

static void fix_head(struct fix_page *page, const char *cmd, double ram_gib, double swap_gib,
                     double budget_gib)
{
        struct afz_flight_head *head = &page->flight.head;
        snprintf(head->run, sizeof head->run, "20261115-102643-k3f9");
        snprintf(head->host, sizeof head->host, "workbench");
        head->cmd = strdup(cmd);
        head->cwd = strdup("/home/ada/speech");
        head->git = strdup("main 4f1c2d9, with changes");
        head->started_s = 1794738403;
        head->ram_total_bytes = (uint64_t)(ram_gib * (double)FIX_GIB);
        head->swap_total_bytes = (uint64_t)(swap_gib * (double)FIX_GIB);
        head->budget_bytes = (uint64_t)(budget_gib * (double)FIX_GIB);
        head->cores = 8;
        head->tier = AFZ_TIER_SCOPE;
        head->policy = AFZ_POLICY_PROTECT;
}

static void fix_finish(struct fix_page *page)
{
        afz_report_from_flight(&page->report, &page->flight, &page->outcome);
        page->report.version = "0.1.0";
        if (page->ledger.kinds)
                page->report.ledger = &page->ledger;
        if (page->uses.of[0].rows)
                page->report.uses = &page->uses;
}

/* ---- 30 seconds: it leaks until it is stopped ---- */

static double fix_leak_need(uint32_t t)
{
        double s = t / 1000.0;
        double warm = 1.1 * (1 - exp(-s / 2.2));
        double leak = s > 5 ? (s - 5) * 0.118 : 0;
        return (0.25 + warm + leak + 0.06 * sin(s * 5.2)) * (double)FIX_GIB;
}

static void fix_leak_verdicts(struct fix_page *page)
{
        struct afz_verdict *v = afz_outcome_add(&page->outcome, "leak", AFZ_LEVEL_ACT, 0.93);
        v->from_ms = 5000, v->to_ms = 27400;
        snprintf(
                v->summary, sizeof v->summary,
                "the program keeps what it no longer needs: its memory grew by 118 MB a second and "
                "never came back");
        snprintf(v->fix, sizeof v->fix,
                 "look for a list or dict that grows with every step: keep loss.item() or "
                 "loss.detach(), not loss itself");
        afz_verdict_note(
                v, "after each step the floor lay higher: 1.3 GB after 5 s, 3.9 GB after 27 s");
        afz_verdict_note(v, "the growth did not slow down, as it would while a cache fills");
        afz_verdict_note(v,
                         "it is in python3 (4242), the main process; its workers stayed at 110 MB");
        v = afz_outcome_add(&page->outcome, "host-exhaustion", AFZ_LEVEL_ACT, 0.99);
        snprintf(v->caused_by, sizeof v->caused_by, "leak");
        snprintf(v->summary, sizeof v->summary,
                 "it needed more memory than the machine can give it");
        snprintf(v->fix, sizeof v->fix, "mend the leak; a larger --budget only buys time");
        afz_verdict_note(v, "needed 3.9 GB of a budget of 4.0 GB when it was stopped");
        v = afz_outcome_add(&page->outcome, "swap-thrash", AFZ_LEVEL_WARN, 0.71);
        snprintf(v->caused_by, sizeof v->caused_by, "leak");
        snprintf(v->summary, sizeof v->summary, "the machine moved pages instead of working");
        afz_verdict_note(v, "all of the job waited for memory in 46 %% of the last 4 s");
        page->outcome.end = (struct afz_end){AFZ_END_STOPPED, -1};
}

static void fix_leak_marks(struct fix_page *page)
{
        fix_mark(page, 20, AFZ_MARK_ATTEMPT, 1, "");
        fix_mark(page, 21500, AFZ_MARK_SAID, 0,
                 "warn: it needs 3.2 GB of 4.0 GB, and the rest is gone in 7 s at this pace");
        fix_mark(page, 21500, AFZ_MARK_ACTION, AFZ_ACTION_TELL, "");
        for (uint32_t t = 24200; t < 26400; t += 550) {
                fix_mark(page, t, AFZ_MARK_ACTION, AFZ_ACTION_BRAKE, "");
                fix_mark(page, t + 320, AFZ_MARK_ACTION, AFZ_ACTION_RELEASE, "");
        }
        fix_mark(page, 26500, AFZ_MARK_ACTION, AFZ_ACTION_CHECKPOINT, "");
        fix_mark(page, 27600, AFZ_MARK_SAID, 0, "saved: checkpoint-0120.pt in 1.1 s");
        fix_mark(page, 28200, AFZ_MARK_ACTION, AFZ_ACTION_INTERRUPT, "");
        fix_mark(page, 29100, AFZ_MARK_ACTION, AFZ_ACTION_TERMINATE, "");
        fix_mark(page, 26000, AFZ_MARK_STACK, INT64_C(4242) << 32 | 4242,
                 "futex_wait\n__pthread_cond_wait\ntorch::autograd::Engine::thread_main\n"
                 "train.py:118 in train_step\ntrain.py:203 in <module>");
        fix_mark(page, 28100, AFZ_MARK_STACK, INT64_C(4242) << 32 | 4242,
                 AFZ_STACK_FROZEN "__read\ntrain.py:90 in save()");
        fix_mark(page, 26000, AFZ_MARK_STACK, INT64_C(4250) << 32 | 4261,
                 "__read\nloader.py:41 in decode");
}

/* Begun every 0.21 s, and slower when it is braked; looked at once a second. */
static void fix_leak_steps(struct fix_page *page)
{
        double steps = 0;
        for (uint32_t t = 1000; t < 29000; t += 1000) {
                steps += t < 2400 ? 0 : t > 22000 ? 2.1 : 4.7;
                fix_at(page, AFZ_INSIDE_STEP, 4242, t, floor(steps));
        }
}

/* ---- which lines hold it ---- */

static void fix_site(struct fix_page *page, uint64_t id, const char *name, const char *where,
                     const char *stack)
{
        fix_track(page, AFZ_KIND_SITE, id, name, where, "");
        if (stack)
                fix_mark(page, 1000, AFZ_MARK_SITE, (int64_t)id, stack);
}

static void fix_held(struct fix_page *page, uint64_t id, uint32_t t, double bytes, double counted)
{
        fix_at(page, AFZ_SITE_LIVE, id, t, bytes);
        fix_at(page, AFZ_SITE_COUNTED, id, t, bytes * counted);
}

static void fix_leak_sites(struct fix_page *page)
{
        static const char called[] = "\npython3.11+0x1b2c3d\ntrain.py:88 in main()\ntrain.py:203";
        char stack[600];
        fix_site(page, 0, "everywhere else", "", NULL);
        snprintf(stack, sizeof stack,
                 "libc.so.6+0x98a12\nc10::alloc_cpu() in libc10.so\nat::native::repeat() in "
                 "libtorch_cpu.so\npython3.11+0x1f3a\ntrain.py:118 in train_step()%s",
                 called);
        fix_site(page, 7, "train.py:118 in train_step()", "/home/ada/speech/train.py:118", stack);
        snprintf(stack, sizeof stack,
                 "default_malloc() in _multiarray_umath.so\nnumpy/_core/numeric.py:232 in "
                 "ones()\ndata.py:41 in load()%s",
                 called);
        fix_site(page, 8, "data.py:41 in load()", "/home/ada/speech/data.py:41", stack);
        fix_site(page, 9, "data.py:41 in load()", "/home/ada/speech/data.py:41",
                 "data.py:41 in load()\ntrain.py:203");
        fix_site(page, 10, "train.py:12", "/home/ada/speech/train.py:12",
                 "torch/__init__.py:9\n<frozen importlib._bootstrap>:241 in _call()\ntrain.py:12");
        for (uint32_t t = 1000; t <= 29000; t += 1000) {
                double need = fix_leak_need(t);
                fix_held(page, 0, t, 0.08 * need, 0);
                fix_held(page, 7, t, t > 5000 ? 0.65 * need : 0, 1);
                fix_held(page, 10, t, 30.0 * FIX_MIB, 0);
        }
        fix_held(page, 8, 2000, 300.0 * FIX_MIB, 1); /* told once: it holds until the end */
        fix_held(page, 9, 2000, 60.0 * FIX_MIB, 0.5);
        fix_at(page, AFZ_SITE_MEMORY, 10, 29000, 3);
        fix_at(page, AFZ_SITE_PROCESSES, 8, 29000, 5);
        fix_mark(page, 29000, AFZ_MARK_SITE, 0, "the probe was in 5 processes, CPython 3.11");
}

static void fix_leak_machine(struct fix_page *page, uint32_t t, double need, double stall_ns)
{
        double swap = need > 3.1 * (double)FIX_GIB ? (need - 3.1 * (double)FIX_GIB) * 0.8 : 0;
        double gib = (double)FIX_GIB;
        fix_at(page, AFZ_HOLD_NEED, 0, t, need);
        fix_at(page, AFZ_HOLD_AWAY, 0, t, swap);
        fix_at(page, AFZ_HOLD_BUDGET, 0, t, 4 * gib);
        fix_at(page, AFZ_HOLD_AVAILABLE, 0, t,
               11.2 * gib - need + swap + 0.05 * gib * fix_noise(page));
        fix_at(page, AFZ_HOLD_SWAP_FREE, 0, t, 4 * gib - 0.2 * gib - swap);
        fix_at(page, AFZ_HOLD_JOB_STALL, 0, t, stall_ns);
        fix_at(page, AFZ_HOLD_STALL, 0, t, stall_ns * 0.15);
}

static void fix_leak_slow(struct fix_page *page, uint32_t t, double need)
{
        double s = t / 1000.0;
        fix_at(page, AFZ_JOB_CPU, 0, t, s * 3.4e9 + 0.3e9 * sin(s));
        fix_at(page, AFZ_JOB_READ, 0, t, (s < 6 ? s * 180e6 : 1080e6 + (s - 6) * 22e6));
        fix_at(page, AFZ_JOB_WRITTEN, 0, t, (s > 26.6 ? fmin(s - 26.6, 1) * 400e6 : 0));
        fix_at(page, AFZ_PROC_PPID, 4242, t, 4200);
        fix_at(page, AFZ_PROC_ROLE, 4242, t, AFZ_ROLE_MAIN);
        fix_at(page, AFZ_PROC_NEED, 4242, t, need - (t > 2000 ? 440.0 * FIX_MIB : 0));
        for (uint64_t w = 0; w < 4 && t > 2000; w++) {
                fix_at(page, AFZ_PROC_PPID, 4250 + w, t, 4242);
                fix_at(page, AFZ_PROC_ROLE, 4250 + w, t, AFZ_ROLE_WORKER);
                fix_at(page, AFZ_PROC_NEED, 4250 + w, t, (110 + 20 * fix_noise(page)) * FIX_MIB);
        }
        fix_at(page, AFZ_SELF_CPU, 0, t, s * 2.1e6);
        fix_at(page, AFZ_SELF_RSS, 0, t, 3.4 * FIX_MIB);
        fix_at(page, AFZ_SELF_TICKS, 0, t, s * 50);
        fix_at(page, AFZ_GPU_MEM_TOTAL, 0, t, 24.0 * FIX_GIB);
        fix_at(page, AFZ_GPU_MEM_USED, 0, t, (s > 2 ? 7.4 : 0.6) * FIX_GIB);
        fix_at(page, AFZ_GPU_UTIL, 0, t, s > 2.4 ? 7000 + 3000 * fix_noise(page) : 0);
}

static void fix_leak_ledger(struct fix_page *page)
{
        static const char *const names[][2] = {
                {"its own data", "arrays, tensors, objects of one process alone"},
                {"shared by fork", "the same pages in several processes, counted once"},
                {"shared memory", "batches on their way from the workers"},
                {"pinned for a GPU", "cannot be moved or swapped"},
                {"the kernel's", "page tables, stacks, buffers"},
                {"in swap", "pushed out of RAM"},
                {"unexplained", "needed, but told by none of our senses"},
                {"files in memory", "the kernel can drop these"},
        };
        struct afz_report_ledger *l = &page->ledger;
        l->kinds = 8, l->moments = 120;
        for (unsigned k = 0; k < l->kinds; k++)
                l->kind[k].name = names[k][0], l->kind[k].what = names[k][1];
        l->kind[7].beside = true;
        for (unsigned m = 0; m < l->moments; m++) {
                uint32_t t = m * 245;
                double need = fix_leak_need(t), gib = (double)FIX_GIB;
                double swap = need > 3.1 * gib ? (need - 3.1 * gib) * 0.8 : 0;
                double shm = t > 2000 ? 0.3 * gib : 0, pinned = t > 2500 ? 0.12 * gib : 0;
                double rest = 0.25 * gib + shm + pinned + swap;
                l->moment[m].t_ms = t;
                l->moment[m].bytes[0] = (uint64_t)fmax(need - rest, 0);
                l->moment[m].bytes[1] = (uint64_t)(0.16 * gib);
                l->moment[m].bytes[2] = (uint64_t)shm;
                l->moment[m].bytes[3] = (uint64_t)pinned;
                l->moment[m].bytes[4] = (uint64_t)(0.06 * gib);
                l->moment[m].bytes[5] = (uint64_t)swap;
                l->moment[m].bytes[6] = (uint64_t)(0.03 * gib);
                l->moment[m].bytes[7] = (uint64_t)(fmin(t / 6000.0, 1) * 0.45 * gib);
        }
}

static void fix_leak_uses(struct fix_page *page)
{
        for (int gpu = 0; gpu < 2; gpu++) {
                struct afz_report_uses_of *of = &page->uses.of[gpu];
                of->has_peak = true, of->has_end = gpu == 0;
                of->peak_bytes = 4 * (uint64_t)FIX_GIB, of->end_bytes = (uint64_t)FIX_GIB;
                of->rows = 2;
                of->row[0].name = "activations", of->row[0].what = "grows with the batch";
                of->row[0].peak_bytes = 3 * (uint64_t)FIX_GIB;
                of->row[1].name = "unexplained", of->row[1].what = "nobody told what it is for";
                of->row[1].peak_bytes = of->row[1].end_bytes = (uint64_t)FIX_GIB;
        }
        snprintf(page->uses.adapted, sizeof page->uses.adapted,
                 "memory ran out 2 times, and it went on each time");
        fix_mark(page, 5000, AFZ_MARK_AGENT, AFZ_AGENT_OOM,
                 "device=gpu step=3 batch=64 asked_bytes=1048576 swallowed=0");
        fix_mark(page, 5001, AFZ_MARK_AGENT, AFZ_AGENT_SPLIT, "batch=64 micro=32: said already");
}

static void fix_leak(struct fix_page *page)
{
        double stall = 0;
        fix_head(page, "python3 train.py --data /data/speech --batch 64 --workers 4", 15.5, 4, 4);
        fix_track(page, AFZ_KIND_PROC, 4242, "python3", "python3 train.py --data /data/speech",
                  "futex_wait");
        for (uint64_t w = 0; w < 4; w++)
                fix_track(page, AFZ_KIND_PROC, 4250 + w, "python3",
                          "python3 train.py --data /data/speech", "");
        fix_track(page, AFZ_KIND_GPU, 0, "NVIDIA RTX A5000", "", "");
        for (uint32_t t = 0; t <= 29600; t += 20) {
                double need =
                        t > 29200 ? fix_leak_need(29200) * (29600 - t) / 400.0 : fix_leak_need(t);
                stall += t > 23500 && t < 29000 ? 20e6 * (0.45 + 0.3 * fix_noise(page)) : 0;
                fix_leak_machine(page, t, need, stall);
                if (t % 500 == 0)
                        fix_leak_slow(page, t, need);
        }
        fix_leak_verdicts(page);
        fix_leak_marks(page);
        fix_leak_steps(page);
        fix_leak_sites(page);
        fix_leak_ledger(page);
        fix_leak_uses(page);
        page->flight.ended = true;
        fix_finish(page);
}

/* ---- 24 hours: calm, with many processes ---- */

enum { FIX_DAY_MS = 86400000 };

/* Ten seconds each, one in the last hour, ten a second in the last five minutes: as it is thinned.
 */
static uint32_t fix_day_span(uint32_t t)
{
        uint32_t left = FIX_DAY_MS - t;
        return left > 3600000 ? 10000 : left > 300000 ? 1000 : 100;
}

static void fix_day_point(struct fix_page *page, uint32_t t, uint32_t span)
{
        double gib = (double)FIX_GIB, epoch = fmod(t / 3600000.0, 1.5);
        double h = (t + span) / 3600000.0; /* a counter's value is that of the end */
        double need = (38 + 6 * epoch + (epoch > 1.4 ? 9 : 0)) * gib;
        fix_span(page, AFZ_HOLD_NEED, 0, t, span, need + gib * fix_noise(page), gib);
        fix_span(page, AFZ_HOLD_BUDGET, 0, t, span, 96 * gib, 0);
        fix_span(page, AFZ_HOLD_AVAILABLE, 0, t, span, 118 * gib - need, 2 * gib);
        fix_span(page, AFZ_HOLD_JOB_STALL, 0, t, span, h * 1e9, 0);
        fix_span(page, AFZ_HOLD_STALL, 0, t, span, h * 4e9, 0);
        fix_span(page, AFZ_JOB_CPU, 0, t, span, h * 3600e9 * 21, 0);
        fix_span(page, AFZ_JOB_READ, 0, t, span, h * 3600 * 310e6 + 4e9 * sin(h * 20), 0);
        fix_span(page, AFZ_JOB_WRITTEN, 0, t, span, h * 3600 * 1e6, 0);
        fix_span(page, AFZ_SELF_CPU, 0, t, span, h * 3600e9 * 0.0016, 0);
        for (uint64_t g = 0; g < 4; g++) {
                fix_span(page, AFZ_GPU_MEM_USED, g, t, span,
                         (61 + 3 * (double)g + 2 * fix_noise(page)) * gib, gib);
                fix_span(page, AFZ_GPU_UTIL, g, t, span, 9100 + 600 * fix_noise(page), 300);
        }
        for (uint64_t p = 0; p < 32; p++)
                fix_span(page, AFZ_PROC_NEED, 900 + p, t, span,
                         (p == 0 ? 22 : 0.7 + 0.3 * fix_noise(page)) * gib, 0.1 * gib);
}

static void fix_day(struct fix_page *page)
{
        char name[40];
        fix_head(page, "torchrun --nproc_per_node 4 pretrain.py --config large.yaml", 125.6, 0, 96);
        page->flight.head.cores = 32;
        for (uint64_t g = 0; g < 4; g++) {
                fix_track(page, AFZ_KIND_GPU, g, "NVIDIA A100-SXM4-80GB", "", "");
                fix_at(page, AFZ_GPU_MEM_TOTAL, g, 0, 80.0 * FIX_GIB);
        }
        for (uint64_t p = 0; p < 32; p++) {
                snprintf(name, sizeof name, p == 0 ? "torchrun" : "pt_worker_%u", (unsigned)p);
                fix_track(page, AFZ_KIND_PROC, 900 + p, name, "pretrain.py --config large.yaml",
                          "");
                fix_at(page, AFZ_PROC_ROLE, 900 + p, 0,
                       p == 0  ? AFZ_ROLE_LAUNCHER
                       : p < 5 ? AFZ_ROLE_RANK
                               : AFZ_ROLE_WORKER);
                fix_at(page, AFZ_PROC_PPID, 900 + p, 0,
                       p == 0  ? 1.0
                       : p < 5 ? 900.0
                               : (double)(901 + p % 4));
        }
        for (uint32_t t = 0; t < FIX_DAY_MS; t += fix_day_span(t))
                fix_day_point(page, t, fix_day_span(t) > 100 ? fix_day_span(t) : 0);
        for (uint32_t t = 60000; t < FIX_DAY_MS; t += 10000)
                fix_span(page, AFZ_INSIDE_STEP, 901, t, 10000, (t + 10000) / 1200, 0);
        for (uint32_t t = 5400000; t < FIX_DAY_MS; t += 5400000)
                fix_mark(page, t, AFZ_MARK_SAID, 0, "saved: checkpoint on /data/ckpt in 41 s");
        struct afz_verdict *v = afz_outcome_add(&page->outcome, "clean", AFZ_LEVEL_OK, 0.97);
        snprintf(v->summary, sizeof v->summary,
                 "nothing is wrong: it ended by itself, with 43 GB to spare");
        afz_verdict_note(v, "the floor stayed flat within 0.4 GB over 72,000 steps");
        afz_verdict_note(v, "at most 53 GB of 96 GB were needed");
        page->outcome.end = (struct afz_end){AFZ_END_EXIT, 0};
        page->flight.ended = true;
        fix_finish(page);
}

/* ---- every text is hostile, and so are the numbers ---- */

static void fix_hostile_marks(struct fix_page *page)
{
        for (int kind = -1; kind <= AFZ_MARK_COUNT; kind++)
                for (int64_t code = -2; code < 12; code++)
                        fix_mark(page, 1000, (enum afz_mark_kind)kind, code, FIX_EVIL);
        fix_mark(page, 2000, AFZ_MARK_EVENT, INT64_MAX, FIX_EVIL);
        fix_mark(page, 2000, AFZ_MARK_EVENT, INT64_MIN, FIX_EVIL);
        for (uint32_t t = 3000; t < 13000; t += 7)
                fix_mark(page, t, AFZ_MARK_SAID, 0, t % 2 ? FIX_EVIL : "warn");
}

static void fix_hostile_sites(struct fix_page *page)
{
        char stack[3 * sizeof FIX_EVIL + 40];
        snprintf(stack, sizeof stack, "%s\n\n%s+0x12\n%s:7 in x()\n", FIX_EVIL, FIX_EVIL, FIX_EVIL);
        for (uint64_t i = 0; i < 40; i++) {
                fix_track(page, AFZ_KIND_SITE, i, FIX_EVIL, FIX_EVIL, FIX_EVIL);
                fix_at(page, AFZ_SITE_LIVE, i, (uint32_t)i, i < 37 ? 9e17 : -5e18);
                fix_at(page, AFZ_SITE_MEMORY, i, (uint32_t)i, i % 2 ? 9e18 : -1);
                fix_at(page, AFZ_SITE_PROCESSES, i, (uint32_t)i, 9e18);
                fix_mark(page, 1000, AFZ_MARK_SITE, (int64_t)i, i % 2 ? stack : "\n\n\n");
        }
        for (uint32_t t = 0; t < 100; t++)
                fix_at(page, AFZ_INSIDE_STEP, 1, t * 10, t % 2 ? 9.2e18 : -9.2e18);
}

static void fix_hostile(struct fix_page *page)
{
        char *cmd = malloc(200001);
        memset(cmd, '"', 200000);
        memcpy(cmd, FIX_EVIL, sizeof FIX_EVIL - 1);
        cmd[200000] = '\0';
        fix_head(page, cmd, 8e9, 1, 1e9);
        free(cmd);
        snprintf(page->flight.head.run, sizeof page->flight.head.run, "%.30s", FIX_EVIL);
        snprintf(page->flight.head.host, sizeof page->flight.head.host, "%.60s", FIX_EVIL);
        free(page->flight.head.cwd), page->flight.head.cwd = strdup(FIX_EVIL);
        free(page->flight.head.git), page->flight.head.git = strdup(FIX_EVIL);
        page->flight.head.tier = 77, page->flight.head.policy = UINT32_MAX;
        for (uint64_t i = 0; i < 300; i++) {
                fix_track(page, AFZ_KIND_PROC, 100 + i, FIX_EVIL, FIX_EVIL, FIX_EVIL);
                fix_at(page, AFZ_PROC_PPID, 100 + i, (uint32_t)i,
                       (double)(100 + (i * 7 + 1) % 300));
                fix_at(page, AFZ_PROC_NEED, 100 + i, (uint32_t)i, i % 3 ? -5e18 : 9e18);
                fix_track(page, AFZ_KIND_GPU, i, FIX_EVIL, FIX_EVIL, FIX_EVIL);
                fix_span(page, AFZ_GPU_MEM_USED, i, (uint32_t)i, UINT32_MAX - 400, 9e18, 1e17);
        }
        for (uint32_t t = 0; t < 3000; t++) {
                fix_at(page, AFZ_HOLD_NEED, 0, t * 400000, t % 2 ? 9.2e18 : -9.2e18);
                fix_at(page, AFZ_HOLD_STALL, 0, t * 400000, t % 2 ? 9.2e18 : -9.2e18);
        }
        fix_track(page, AFZ_KIND_PROC, 1, FIX_EVIL, FIX_EVIL, ""); /* never seen with a point */
        for (int i = 0; i < AFZ_VERDICTS_MAX; i++) {
                struct afz_verdict *v =
                        afz_outcome_add(&page->outcome, FIX_EVIL, (enum afz_level)(i % AFZ_LEVELS),
                                        i == 0 ? (double)NAN : i - 1.5);
                memcpy(v->summary, FIX_EVIL, sizeof FIX_EVIL);
                memcpy(v->fix, FIX_EVIL, sizeof FIX_EVIL);
                memcpy(v->caused_by, v->id, sizeof v->id);
                for (int e = 0; e < AFZ_EVIDENCE_MAX; e++)
                        memcpy(v->evidence[e], FIX_EVIL, sizeof FIX_EVIL);
                v->from_ms = 5, v->to_ms = UINT32_MAX;
        }
        page->outcome.end = (struct afz_end){AFZ_END_SIGNAL, -1};
        fix_hostile_marks(page);
        fix_hostile_sites(page);
        page->uses.of[0].rows = page->uses.of[1].rows = AFZ_REPORT_USES;
        for (unsigned i = 0; i < AFZ_REPORT_USES; i++)
                for (int gpu = 0; gpu < 2; gpu++) {
                        struct afz_report_uses_of *of = &page->uses.of[gpu];
                        of->has_peak = of->has_end = true;
                        of->row[i].name = of->row[i].what = FIX_EVIL;
                        of->row[i].peak_bytes = of->row[i].end_bytes = UINT64_MAX;
                }
        snprintf(page->uses.adapted, sizeof page->uses.adapted, "%s", FIX_EVIL);
        page->ledger.kinds = AFZ_REPORT_KINDS, page->ledger.moments = AFZ_REPORT_MOMENTS;
        for (unsigned k = 0; k < AFZ_REPORT_KINDS; k++) {
                page->ledger.kind[k].name = page->ledger.kind[k].what = FIX_EVIL;
                for (unsigned m = 0; m < AFZ_REPORT_MOMENTS; m++)
                        page->ledger.moment[m].bytes[k] = UINT64_MAX,
                        page->ledger.moment[m].t_ms = m;
        }
        fix_finish(page);
        page->report.version = FIX_EVIL;
}

static void fix_nothing(struct fix_page *page)
{
        page->outcome.end = (struct afz_end){AFZ_END_LOST, -1};
        fix_finish(page);
}

/* ---- one line, and thousands of stacks ---- */

static void fix_one_line(struct fix_page *page)
{
        fix_head(page, "./trainer", 15.5, 0, 4);
        fix_site(page, 5, "trainer+0x1234", ":0", "libc.so.6+0x1\ntrainer+0x1234");
        fix_held(page, 5, 500, 64.0 * FIX_MIB, 1);
        fix_at(page, AFZ_HOLD_NEED, 0, 3000, 65.0 * FIX_MIB);
        page->outcome.end = (struct afz_end){AFZ_END_EXIT, 0};
        fix_finish(page);
}

static void fix_many_stacks(struct fix_page *page)
{
        enum { SITES = 5000, DEEP = 64 };
        char name[64], *stack = malloc(DEEP * 64);
        fix_head(page, "python3 wide.py", 15.5, 0, 4);
        for (unsigned i = 1; i <= SITES; i++) {
                size_t n = 0;
                for (unsigned f = 0; f < DEEP; f++) {
                        unsigned way = i % (f < 8 ? 200 : 25);
                        n += (size_t)snprintf(stack + n, 64, "%sm%u.py:%u in f%u()", f ? "\n" : "",
                                              way, f + 1, f);
                }
                snprintf(name, sizeof name, "m%u.py:1 in f0()", i % 200);
                fix_site(page, i, name, name, stack);
                fix_held(page, i, 1000 + i, (2.0 + i % 900) * FIX_MIB, 1);
        }
        free(stack);
        page->outcome.end = (struct afz_end){AFZ_END_EXIT, 0};
        fix_finish(page);
}

static const struct fix_run {
        const char *name;
        void (*make)(struct fix_page *page);
} fix_runs[] = {{"leak", fix_leak},       {"day", fix_day},      {"hostile", fix_hostile},
                {"nothing", fix_nothing}, {"one", fix_one_line}, {"many", fix_many_stacks}};
enum { FIX_RUNS = sizeof fix_runs / sizeof fix_runs[0] };

static inline struct fix_page *fix_page_new(const char *name)
{
        struct fix_page *page = calloc(1, sizeof *page);
        if (!page)
                abort();
        for (int i = 0; i < FIX_RUNS; i++)
                if (strcmp(fix_runs[i].name, name) == 0) {
                        fix_runs[i].make(page);
                        return page;
                }
        abort();
}

static inline void fix_page_free(struct fix_page *page)
{
        afz_flight_done(&page->flight);
        free(page);
}

/* The whole page of a run; the caller's to free. */
static inline char *fix_page_text(const char *name, size_t *ret_len)
{
        enum { PAGE_CAP = 4 << 20 };
        char *text = malloc(PAGE_CAP);
        if (!text)
                abort();
        struct afz_out out = afz_out_to(-1, text, PAGE_CAP - 1);
        struct fix_page *page = fix_page_new(name);
        if (afz_report_put(&out, &page->report) != 0)
                abort();
        fix_page_free(page);
        text[out.len] = '\0';
        *ret_len = out.len;
        return text;
}

#endif
