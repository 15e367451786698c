#include "watch_lines.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "keeper_ask.h"
#include "span.h"

static const struct {
        unsigned wait_ms;   /* for an answer: it is a look at memory, and the view must not stand */
        uint64_t every_ns;  /* the keeper itself looks once a second */
        uint64_t seldom_ns; /* the longest time between two questions that nobody answers */
        uint64_t keep_ns;   /* an answer older than this is of another time */
} rule = {
        .wait_ms = 60,
        .every_ns = AFZ_NS_PER_S,
        .seldom_ns = 16 * AFZ_NS_PER_S,
        .keep_ns = 15 * AFZ_NS_PER_S,
};

_Static_assert((int)AFZ_LINES_NOW_ROWS >= (int)AFZ_KEEPER_ROWS, "room for all rows");

void afz_watch_lines_init(struct afz_watch_lines *w, const char *control_socket)
{
        *w = (struct afz_watch_lines){0};
        if (!control_socket[0] ||
            !afz_keeper_socket_path(control_socket, w->socket, sizeof w->socket))
                w->socket[0] = '\0';
}

static const char *memory_name(uint32_t kind)
{
        static const char *const names[] = {"",       "heap",  "mapped", "Python objects",
                                            "pinned", "shared"};
        return kind < sizeof names / sizeof names[0] ? names[kind] : "";
}

static void add_use(struct afz_lines_now *now, int gpu, const char *name, uint64_t bytes)
{
        if (bytes > 0 && now->uses[gpu] < AFZ_USES_NOW)
                now->use[gpu][now->uses[gpu]++] = (struct afz_use_now){name, bytes};
}

static void take_uses(struct afz_lines_now *now, const struct afz_keeper_answer *a)
{
        for (int gpu = 0; gpu < 2; gpu++) {
                const struct afz_keeper_use *use = &a->use[gpu];
                add_use(now, gpu, "parameters", use->parameters);
                add_use(now, gpu, "gradients", use->gradients);
                add_use(now, gpu, "optimizer", use->optimizer);
                add_use(now, gpu, "activations", use->activations);
                add_use(now, gpu, "batch", use->batch);
                add_use(now, gpu, "buffers", use->buffers);
        }
        add_use(now, 0, "fetched ahead", a->loader_bytes);
        add_use(now, 0, "shuffle", a->shuffle_bytes);
        if (a->gpu_held_bytes > a->gpu_tensors_bytes)
                add_use(now, 1, "allocator cache", a->gpu_held_bytes - a->gpu_tensors_bytes);
        now->gpu_peak_bytes = a->gpu_peak_bytes;
        now->batch = a->batch_count;
        now->micro = a->micro_count;
        now->ooms = a->ooms_count;
}

static void take(struct afz_lines_now *now, const struct afz_keeper_answer *a)
{
        *now = (struct afz_lines_now){.known = a->looked_ns > 0,
                                      .live_bytes = a->live_bytes,
                                      .step = a->step,
                                      .growth_s = a->growth_s,
                                      .processes = a->processes,
                                      .rows = a->rows};
        take_uses(now, a);
        afz_span_copy(afz_span_str(a->words), now->words, sizeof now->words);
        for (uint32_t i = 0; i < a->rows; i++) {
                const struct afz_keeper_row *row = &a->row[i];
                struct afz_line_now *line = &now->row[i];
                *line = (struct afz_line_now){.live_bytes = row->live_bytes,
                                              .growth_bytes = row->growth_bytes,
                                              .memory = memory_name(row->kind),
                                              .processes = row->processes};
                afz_span_copy(afz_span_str(row->name), line->name, sizeof line->name);
        }
}

void afz_watch_lines_look(struct afz_watch_lines *w, uint64_t now_ns)
{
        struct afz_keeper_answer answer;
        if (!w->socket[0] || now_ns < w->next_ns)
                return;
        int r = afz_keeper_ask(w->socket, rule.wait_ms, &answer);
        if (r == 0) {
                take(&w->now, &answer);
                w->heard_ns = now_ns;
                w->silent = 0;
        } else if (w->silent < 32) {
                w->silent++;
        }
        if (r == -ENOENT || r == -ECONNREFUSED || now_ns - w->heard_ns > rule.keep_ns)
                w->now.known = false;
        uint64_t wait = rule.every_ns << (w->silent > 2 ? w->silent - 2 : 0);
        w->next_ns = now_ns + (wait < rule.seldom_ns && w->silent < 30 ? wait : rule.seldom_ns);
}
