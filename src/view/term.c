#include "term.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "count_of.h"

static bool is_set(const char *value)
{
        return value && *value;
}

static bool says_utf8(const char *locale)
{
        return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
}

/* The first that is set decides, as setlocale() has it. */
static bool find_utf8(const struct afz_term_looks *looks)
{
        const char *order[] = {looks->lc_all, looks->lc_ctype, looks->lang};
        for (size_t i = 0; i < AFZ_COUNT_OF(order); i++)
                if (is_set(order[i]))
                        return says_utf8(order[i]);
        return false;
}

static enum afz_depth find_depth(const struct afz_term_looks *looks)
{
        static const char *const two_tone[] = {"vt52", "vt100", "vt102", "vt220", "xterm-mono"};
        const char *term = looks->term;
        if (is_set(looks->no_color))
                return AFZ_DEPTH_NONE;
        for (size_t i = 0; i < AFZ_COUNT_OF(two_tone); i++)
                if (strcmp(term, two_tone[i]) == 0)
                        return AFZ_DEPTH_NONE;
        if (looks->colorterm &&
            (strcmp(looks->colorterm, "truecolor") == 0 || strcmp(looks->colorterm, "24bit") == 0))
                return AFZ_DEPTH_RGB;
        if (strstr(term, "direct") || strstr(term, "truecolor"))
                return AFZ_DEPTH_RGB;
        return strstr(term, "256") ? AFZ_DEPTH_256 : AFZ_DEPTH_16;
}

struct afz_term_caps afz_term_look(const struct afz_term_looks *looks)
{
        if (!looks->tty || !is_set(looks->term) || strcmp(looks->term, "dumb") == 0)
                return (struct afz_term_caps){.utf8 = find_utf8(looks)};
        return (struct afz_term_caps){
                .live = true, .depth = find_depth(looks), .utf8 = find_utf8(looks)};
}

struct afz_term_looks afz_term_looks_here(int in_fd, int out_fd)
{
        return (struct afz_term_looks){
                .term = getenv("TERM"),
                .colorterm = getenv("COLORTERM"),
                .no_color = getenv("NO_COLOR"),
                .lc_all = getenv("LC_ALL"),
                .lc_ctype = getenv("LC_CTYPE"),
                .lang = getenv("LANG"),
                .tty = isatty(in_fd) && isatty(out_fd),
        };
}

static int write_text(int fd, const char *text)
{
        size_t n = strlen(text);
        while (n > 0) {
                ssize_t w = write(fd, text, n);
                if (w < 0 && errno == EINTR)
                        continue;
                if (w < 0)
                        return -errno;
                text += w;
                n -= (size_t)w;
        }
        return 0;
}

/* Alternate screen, no cursor, no wrapping at the edge; and all of it back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

int afz_term_enter(const struct afz_term *term)
{
        struct termios raw = term->saved;
        cfmakeraw(&raw);
        raw.c_oflag |= OPOST; /* so that a stray message of ours does not run down the screen */
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        if (tcsetattr(term->in_fd, TCSADRAIN, &raw) < 0)
                return -errno;
        return write_text(term->out_fd, ENTER);
}

void afz_term_restore(const struct afz_term *term)
{
        int saved_errno = errno;
        write_text(term->out_fd, LEAVE);
        /* Not TCSADRAIN: a handler must not wait for a terminal that takes nothing any more. */
        tcsetattr(term->in_fd, TCSANOW, &term->saved);
        errno = saved_errno;
}

static int watch_resize(struct afz_term *term)
{
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGWINCH);
        if (pthread_sigmask(SIG_BLOCK, &set, &term->saved_mask) != 0)
                return -1;
        return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int afz_term_open(struct afz_term *term, int in_fd, int out_fd)
{
        *term = (struct afz_term){.in_fd = in_fd, .out_fd = out_fd, .resize_fd = -1};
        if (tcgetattr(in_fd, &term->saved) < 0)
                return -errno;
        term->resize_fd = watch_resize(term);
        int r = afz_term_enter(term);
        if (r < 0)
                afz_term_close(term);
        return r;
}

void afz_term_close(struct afz_term *term)
{
        afz_term_restore(term);
        if (term->resize_fd >= 0)
                close(term->resize_fd);
        term->resize_fd = -1;
        pthread_sigmask(SIG_SETMASK, &term->saved_mask, NULL);
}

void afz_term_suspend(const struct afz_term *term)
{
        afz_term_restore(term);
        raise(SIGTSTP);
        afz_term_enter(term);
}

int afz_term_size(const struct afz_term *term, int *ret_width, int *ret_height)
{
        struct signalfd_siginfo info;
        struct winsize size;

        while (term->resize_fd >= 0 && read(term->resize_fd, &info, sizeof info) > 0)
                ;
        if (ioctl(term->out_fd, TIOCGWINSZ, &size) < 0)
                return -errno;
        if (size.ws_col == 0 || size.ws_row == 0)
                return -ENODATA;
        *ret_width = size.ws_col;
        *ret_height = size.ws_row;
        return 0;
}

int afz_term_read(const struct afz_term *term, char *buf, size_t cap)
{
        struct pollfd p = {.fd = term->in_fd, .events = POLLIN};
        if (poll(&p, 1, 0) <= 0)
                return 0;
        if (!(p.revents & POLLIN))
                return -EIO;
        ssize_t n = read(term->in_fd, buf, cap);
        if (n < 0)
                return errno == EINTR || errno == EAGAIN ? 0 : -errno;
        /* Readable, and yet nothing there: the other side hung up. */
        return n == 0 ? -EIO : (int)n;
}
