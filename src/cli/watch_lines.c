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

static void take(struct afz_lines_now *now, const struct afz_keeper_answer *a)
{
        *now = (struct afz_lines_now){.known = a->looked_ns > 0,
                                      .live_bytes = a->live_bytes,
                                      .step = a->step,
                                      .growth_s = a->growth_s,
                                      .processes = a->processes,
                                      .rows = a->rows};
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
