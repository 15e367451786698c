#ifndef AFZ_TERM_H
#define AFZ_TERM_H
/* The terminal itself: what it can show, its modes, its size and its keys.
 *
 *      struct afz_term term;
 *      if (afz_term_look(&looks).live && afz_term_open(&term, 0, 1) >= 0) {
 *              ... poll term.in_fd and term.resize_fd, draw, write ...
 *              afz_term_close(&term);
 *      }
 *
 * While it is open the terminal is in raw mode on its alternate screen, without a cursor; ^C and ^Z
 * come as keys. A program that can be killed by a signal calls afz_term_restore() from its handler,
 * so that nobody is left with a terminal that shows nothing.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "screen.h"

/* What to look at; NULL: not set. */
struct afz_term_looks {
        const char *term, *colorterm, *no_color, *lc_all, *lc_ctype, *lang;
        bool tty; /* both input and output are terminals */
};

struct afz_term_caps {
        bool live; /* can show the live view; else plain lines */
        enum afz_depth depth;
        bool utf8;
};

/* Pure. NO_COLOR (no-color.org: set and not empty) takes the colours and nothing else; TERM unset,
 * empty or "dumb" means plain lines. */
struct afz_term_caps afz_term_look(const struct afz_term_looks *looks);

/* The process's own environment and descriptors. */
struct afz_term_looks afz_term_looks_here(int in_fd, int out_fd);

struct afz_term {
        int in_fd, out_fd;
        int resize_fd; /* readable after a change of size; -1: none to be had, ask at each frame */
        struct termios saved;
        sigset_t saved_mask;
};

/* Blocks SIGWINCH in this thread while open (it is delivered to resize_fd); what is started
 * meanwhile inherits that, so start helpers before. -errno: the terminal is as it was. */
int afz_term_open(struct afz_term *term, int in_fd, int out_fd);
void afz_term_close(struct afz_term *term);

/* Gives the terminal back as it was found. Async-signal-safe; may be called more than once. */
void afz_term_restore(const struct afz_term *term);

/* Takes it again, after afz_term_restore(): the screen must then be repainted (screen.stale). */
int afz_term_enter(const struct afz_term *term);

/* For ^Z: gives the terminal back, stops this process as the shell expects, and takes the terminal
 * again once continued. */
void afz_term_suspend(const struct afz_term *term);

/* Columns and rows, also when resize_fd was not readable; empties resize_fd. -errno when unknown.
 */
int afz_term_size(const struct afz_term *term, int *ret_width, int *ret_height);

/* What was typed, at most cap bytes, without waiting. 0: nothing; -EIO: the terminal is gone. */
int afz_term_read(const struct afz_term *term, char *buf, size_t cap);

#endif
