#include "witness_look.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "flight.h"
#include "native_stack.h"
#include "py_stack.h"
#include "thread_wait.h"

enum {
        NATIVE_BYTES = 2000, /* so that a deep native stack leaves room for the Python frames */
        FRAMES_BYTES = 3900, /* all of them leave room for what finish() adds; the report shows
                              * 4000 bytes */
        PYTHON_FRAMES = 32,
        FREEZE_MS = 20, /* it bites after 1 to 3 ms; who is in the kernel for longer stays there */
};
_Static_assert(FRAMES_BYTES + 100 < AFZ_WITNESS_TEXT_CAP, "finish() has no room");

/* One process, and what its frames are read with. */
struct place {
        pid_t pid;
        int threads;
        struct afz_thread_look thread[AFZ_THREADS_MAX];
        struct afz_py *py;
        struct afz_native *native;
        int native_error;
};

struct told {
        struct afz_witness_text *text;
        bool main;
        unsigned more;  /* threads that stand at the same place */
        uint64_t slept; /* of all of them */
        bool has_slept;
};

struct look {
        const struct afz_env *env;
        bool frozen;
        struct afz_job_pipes pipes;
        size_t places;
        struct place *place;
        size_t told; /* at most AFZ_WITNESS_TEXTS */
        struct told list[AFZ_WITNESS_TEXTS];
};

/* ---- the text of one thread ---- */

/* Adds a line, whole or not at all; whether it did. */
__attribute__((format(printf, 3, 4))) static bool add(char *text, size_t cap, const char *format,
                                                      ...)
{
        size_t len = strlen(text);
        va_list args;
        va_start(args, format);
        int n = len < cap ? vsnprintf(text + len, cap - len, format, args) : -1;
        va_end(args);
        if (n >= 0 && (size_t)n < cap - len)
                return true;
        text[len] = '\0';
        return false;
}

/* Below this all that follows is the interpreter calling itself, and Python's frames tell it. */
static bool is_interpreter(const char *function)
{
        return strncmp(function, "_PyEval_EvalFrame", 17) == 0;
}

static int add_native(const struct place *p, const struct afz_thread_look *t, bool python,
                      char *text)
{
        struct afz_native_frame frame[AFZ_NATIVE_FRAMES];
        int n = p->native && t->placed ? afz_native_thread(p->native, t->tid, t->sp, t->pc, frame,
                                                           AFZ_NATIVE_FRAMES)
                                       : 0;
        for (int i = 0; i < n; i++) {
                if (python && is_interpreter(frame[i].function))
                        break;
                bool named = frame[i].function[0];
                if (!named && i > 0 && !frame[i - 1].function[0] &&
                    strcmp(frame[i].module, frame[i - 1].module) == 0)
                        continue; /* one "?" of a library says as much as three */
                if (!add(text, NATIVE_BYTES, "\n%s (%s)", named ? frame[i].function : "?",
                         frame[i].module[0] ? frame[i].module : "?"))
                        break; /* a hole would make callers of who never called */
        }
        return n;
}

static void add_frames(const struct place *p, const struct afz_thread_look *t, char *text)
{
        struct afz_py_frame frame[PYTHON_FRAMES];
        int python = p->py ? afz_py_thread(p->py, t->tid, frame, PYTHON_FRAMES) : 0;
        int native = add_native(p, t, python > 0, text);
        bool room = true;
        for (int i = 0; i < python && room; i++)
                room = add(text, FRAMES_BYTES, "\npython: %s:%d in %s", frame[i].file,
                           frame[i].line, frame[i].function);
        if (native <= 0 && python <= 0 && p->native_error && t->tid == p->pid)
                add(text, FRAMES_BYTES, "\n(%s)",
                    p->native_error == -ENOTSUP ? "frames are not known: libdw is not here"
                                                : "frames are not known: they may not be read");
}

/* ---- who stands at the same place ---- */

/* Who has a deadline is told alone: whether it woke in between is what counts. */
static bool is_same(const struct told *a, const struct afz_witness_text *b)
{
        return !a->main && a->text->code >> 32 == b->code >> 32 &&
               !strstr(b->text, " with a deadline") && strcmp(a->text->text, b->text) == 0;
}

static void keep(struct look *look, const struct afz_witness_text *text, bool main,
                 const struct afz_thread_look *t, struct afz_witness_text *room)
{
        for (size_t i = 0; i < look->told && !main; i++)
                if (is_same(&look->list[i], text)) {
                        look->list[i].more++;
                        look->list[i].slept += t->switches;
                        look->list[i].has_slept &= t->has_switches;
                        return;
                }
        if (look->told == AFZ_WITNESS_TEXTS)
                return;
        struct told *told = &look->list[look->told];
        *told = (struct told){.text = &room[look->told],
                              .main = main,
                              .slept = t->switches,
                              .has_slept = t->has_switches};
        *told->text = *text;
        look->told++;
}

/* Only now is it known how many they are. */
static void finish(const struct told *told)
{
        char *text = told->text->text, rest[AFZ_WITNESS_TEXT_CAP];
        size_t first = strcspn(text, "\n");
        snprintf(rest, sizeof rest, "%s", text + first);
        text[first] = '\0';
        if (told->has_slept && first > 0)
                add(text, AFZ_WITNESS_TEXT_CAP, ", slept %llu time%s",
                    (unsigned long long)told->slept, told->slept == 1 ? "" : "s");
        add(text, AFZ_WITNESS_TEXT_CAP, "%s", rest);
        if (told->more > 0)
                add(text, AFZ_WITNESS_TEXT_CAP, "\nand %u more thread%s", told->more,
                    told->more == 1 ? "" : "s");
}

/* A job that we have frozen, or somebody traces, stands still for that reason. */
static bool is_held(const struct afz_thread_look *t)
{
        return t->state == 'T' || t->state == 't' || strstr(t->wait, "freezer") ||
               strstr(t->wait, "refrigerator") || strcmp(t->wait, "get_signal") == 0;
}

/* Of one that is frozen, the kernel's function is the freezer's; its call is what it was in. */
static void tell_wait(const struct look *look, const struct place *p,
                      const struct afz_thread_look *t, char *text)
{
        struct afz_thread_look bare = *t;
        size_t n = 0;
        bare.has_switches = false;
        if (look->frozen) {
                add(text, NATIVE_BYTES, AFZ_STACK_FROZEN);
                n = strlen(text);
                if (!t->in_call && t->placed) {
                        add(text, NATIVE_BYTES, "it ran");
                        return;
                }
                if (is_held(t))
                        bare.wait[0] = '\0';
        }
        afz_thread_wait_line(look->env, p->pid, &bare, &look->pipes, text + n, NATIVE_BYTES - n);
        if (!text[n])
                add(text, NATIVE_BYTES, "%s",
                    t->state == 'R'              ? "it runs"
                    : look->frozen && t->in_call ? "in a system call"
                                                 : "?");
}

static void tell_thread(struct look *look, const struct place *p, const struct afz_thread_look *t,
                        struct afz_witness_text *room)
{
        struct afz_witness_text text = {
                .code = (int64_t)((uint64_t)p->pid << 32 | (uint32_t)t->tid)};
        tell_wait(look, p, t, text.text);
        add_frames(p, t, text.text);
        keep(look, &text, t->tid == p->pid, t, room);
}

static void tell_round(struct look *look, struct afz_witness_text *room, uint32_t *ret_count)
{
        look->told = 0;
        for (int main = 1; main >= 0; main--)
                for (size_t i = 0; i < look->places; i++)
                        for (int k = 0; k < look->place[i].threads; k++)
                                if ((look->place[i].thread[k].tid == look->place[i].pid) == main)
                                        tell_thread(look, &look->place[i],
                                                    &look->place[i].thread[k], room);
        for (size_t i = 0; i < look->told; i++)
                finish(&look->list[i]);
        *ret_count = (uint32_t)look->told;
}

/* ---- all of it ---- */

/* False: there is nothing to be told about a job that is held. */
static bool look_at_threads(struct look *look, const pid_t *pids, size_t n)
{
        for (size_t i = 0; i < n && i < AFZ_WITNESS_PROCESSES; i++) {
                struct place *p = &look->place[look->places];
                p->pid = pids[i];
                p->threads = afz_threads_look(look->env, p->pid, p->thread, AFZ_THREADS_MAX);
                if (p->threads <= 0)
                        continue;
                afz_job_pipes_add(look->env, p->pid, &look->pipes);
                look->places++;
                for (int k = 0; k < p->threads && !look->frozen; k++)
                        if (is_held(&p->thread[k]))
                                return false;
        }
        return true;
}

/* A freeze takes a moment to bite; where a thread stands is known when it stands. */
static void wait_until_frozen(struct look *look)
{
        int naps = 0;
        for (size_t i = 0; i < look->places; i++) {
                struct place *p = &look->place[i];
                for (int k = 0; k < p->threads && naps < FREEZE_MS;) {
                        if (p->thread[k].placed) {
                                k++;
                                continue;
                        }
                        nanosleep(&(struct timespec){0, AFZ_NS_PER_MS}, NULL);
                        p->threads =
                                afz_threads_look(look->env, p->pid, p->thread, AFZ_THREADS_MAX);
                        naps++;
                        k = 0;
                }
        }
}

/* Nothing is given back: the process ends with it. */
void afz_witness_look(const struct afz_env *env, const pid_t *pids, size_t n, bool frozen,
                      struct afz_witness_found *found)
{
        struct look *look = calloc(1, sizeof *look);
        if (!look || !(look->place = calloc(AFZ_WITNESS_PROCESSES, sizeof *look->place)))
                return;
        look->env = env;
        look->frozen = frozen;
        if (!look_at_threads(look, pids, n))
                return;
        if (frozen)
                wait_until_frozen(look);
        for (size_t i = 0; i < look->places; i++)
                if (afz_py_open(look->place[i].pid, &look->place[i].py) < 0)
                        look->place[i].py = NULL;
        for (uint32_t round = 0; round < AFZ_WITNESS_ROUNDS; round++) {
                for (size_t i = 0; i < look->places && round > 0; i++)
                        look->place[i].native_error =
                                afz_native_open(look->place[i].pid, &look->place[i].native);
                tell_round(look, found->round[round].text, &found->round[round].count);
                atomic_store_explicit(&found->rounds, round + 1, memory_order_release);
        }
}
