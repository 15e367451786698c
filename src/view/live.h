#ifndef AFZ_LIVE_H
#define AFZ_LIVE_H
/* The live view: draws a window onto a screen, and turns keys into what to show.
 *
 *      struct afz_live_state live = {.host = ..., .interval_ns = ...};
 *      afz_live_init(&live);
 *      each tick:  afz_screen_clear(&screen);
 *                  afz_live_draw(&screen, window, &live);
 *                  afz_screen_encode(&screen, &out);
 *                  afz_out_flush(&out);
 *
 * Drawing allocates nothing and keeps no pointer into the window. Any size of screen is fine; below
 * 40 x 10 there is less to see. What is not known is shown as "–", never as 0.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lines_now.h"
#include "screen.h"
#include "window.h"

enum afz_live_page { AFZ_LIVE_MAIN, AFZ_LIVE_GPUS, AFZ_LIVE_INFO, AFZ_LIVE_LINES };
enum afz_live_sort { AFZ_LIVE_BY_TREE, AFZ_LIVE_BY_NEED, AFZ_LIVE_BY_CPU, AFZ_LIVE_SORTS };

struct afz_live_rows;

struct afz_live_state {
        /* Set by the caller, who keeps the texts alive; all of it may be left 0. */
        const char *host;      /* the machine's name */
        const char *command;   /* what the job was started with; NULL: its root's command line */
        const char *clock;     /* time of day, "12:03:11" */
        uint64_t job_start_ns; /* on the clock of window->t_ns; 0: not known */
        uint64_t line_bytes; /* RAM in use (total - available) that must not be exceeded; 0: none */
        const struct afz_lines_now *lines; /* NULL: not known, as when lines->known is false */
        bool job_ended;                    /* also seen from a job that has no process any more */

        /* Changed by keys; the caller may preset them and obeys interval_ns and paused. */
        uint64_t interval_ns;
        bool paused;
        bool help;
        enum afz_live_page page;
        enum afz_live_sort sort;
        int scroll; /* rows; kept within what there is when drawn */

        struct afz_live_rows *rows; /* private */
};

/* Room for the rows of the process list; the rest of *state is left as it is. -ENOMEM. */
int afz_live_init(struct afz_live_state *state);
void afz_live_done(struct afz_live_state *state);

void afz_live_draw(struct afz_screen *screen, const struct afz_window *window,
                   struct afz_live_state *state);

enum afz_live_answer {
        AFZ_LIVE_NOTHING, /* the key means nothing here */
        AFZ_LIVE_REDRAW,
        AFZ_LIVE_REPAINT, /* redraw all of it (screen.stale) */
        AFZ_LIVE_SUSPEND, /* afz_term_suspend(), then repaint */
        AFZ_LIVE_QUIT
};

/* Applies a key (enum afz_keypress, or a character). */
enum afz_live_answer afz_live_key(struct afz_live_state *state, int key);

#endif
