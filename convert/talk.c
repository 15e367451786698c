#include "talk.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "now.h"
#include "quantity.h"

#define S UINT64_C(1000000000)

enum {
        BAR_LEAST = 10, /* columns; a shorter one says nothing */
        BAR_MOST = 40,
        SURE_S = 2,   /* before that, the time that is left is a guess */
        LINES_S = 10, /* between two lines where there is no terminal */
};

struct afz_talk afz_talk_new(bool is_quiet)
{
        return (struct afz_talk){.is_quiet = is_quiet, .is_terminal = isatty(STDERR_FILENO)};
}

static int columns_here(void)
{
        struct winsize size;
        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 ? 80 : size.ws_col;
}

static size_t put_bar(double part, int columns, char *to)
{
        int wide = columns > BAR_MOST ? BAR_MOST : columns, full = (int)(part * wide);
        to[0] = '[';
        memset(to + 1, '#', (size_t)full);
        memset(to + 1 + full, ' ', (size_t)(wide - full));
        memcpy(to + 1 + wide, "] ", 3);
        return (size_t)wide + 3;
}

char *afz_talk_line(const struct afz_outcome *o, uint64_t spent_ns, int columns,
                    char ret[AFZ_TALK_CAP])
{
        char words[128], all[AFZ_SIZE_TEXT_CAP], done[AFZ_SIZE_TEXT_CAP], rate[AFZ_SIZE_TEXT_CAP],
                left[AFZ_DURATION_TEXT_CAP];
        uint64_t each = o->layout.sample_bytes, made = (o->done_samples - o->begun_samples) * each;
        double part = o->layout.samples ? (double)o->done_samples / (double)o->layout.samples : 0;
        double rate_s = spent_ns ? (double)made * (double)S / (double)spent_ns : 0;
        double left_s =
                rate_s > 0 ? (double)((o->layout.samples - o->done_samples) * each) / rate_s : 0;
        int n = snprintf(words, sizeof words, "%.0f %%, %s of %s, %s/s", 100 * part,
                         afz_format_size(done, sizeof done, o->done_samples * each),
                         afz_format_size(all, sizeof all, o->layout.samples * each),
                         afz_format_size(rate, sizeof rate, (uint64_t)rate_s));
        if (spent_ns > SURE_S * S && left_s > 0)
                snprintf(words + n, sizeof words - (size_t)n, ", %s left",
                         afz_format_duration(left, sizeof left, (uint64_t)(left_s * 1e9)));
        int room = columns - (int)strlen(words) - 4; /* "[] ", and the last column free */
        size_t used = room >= BAR_LEAST ? put_bar(part, room, ret) : 0;
        snprintf(ret + used, AFZ_TALK_CAP - used, "%s", words);
        if (columns > 0 && strlen(ret) >= (size_t)columns)
                ret[columns - 1] = '\0';
        return ret;
}

void afz_talk_show(const struct afz_outcome *outcome, void *about)
{
        struct afz_talk *talk = about;
        uint64_t now = afz_now_ns();
        char line[AFZ_TALK_CAP];
        if (talk->began_ns == 0)
                talk->began_ns = talk->said_ns = now;
        if (talk->is_quiet || now == talk->began_ns)
                return;
        uint64_t spent = now - talk->began_ns;
        if (talk->is_terminal) {
                fprintf(stderr, "\r\033[K%s", afz_talk_line(outcome, spent, columns_here(), line));
                fflush(stderr);
                talk->is_shown = true;
        } else if (now - talk->said_ns >= LINES_S * S) {
                fprintf(stderr, "antifreeze: %s\n", afz_talk_line(outcome, spent, 0, line));
                talk->said_ns = now;
        }
}

void afz_talk_clear(struct afz_talk *talk)
{
        if (talk->is_shown)
                fputs("\r\033[K", stderr);
        talk->is_shown = false;
}
