#include "run_id.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "env.h"

/* Four letters: 26^4 steps of a second, some 2 us each, so that two IDs of one machine differ
 * without a dice. */
enum { LETTERS = 4, LETTER_STEPS = 26 * 26 * 26 * 26, DAY_DIGITS = 8, TIME_DIGITS = 6 };

void afz_run_id_make(uint64_t wall_ns, char ret[AFZ_RUN_ID_CAP])
{
        time_t s = (time_t)(wall_ns / AFZ_NS_PER_S);
        uint64_t step = wall_ns % AFZ_NS_PER_S * LETTER_STEPS / AFZ_NS_PER_S;
        struct tm tm = {.tm_mday = 1};
        char letters[LETTERS + 1] = {0};

        for (int i = LETTERS - 1; i >= 0; i--, step /= 26)
                letters[i] = (char)('a' + step % 26);
        gmtime_r(&s, &tm);
        /* Bounds that a clock gone wild cannot leave: the form is a promise. */
        snprintf(ret, AFZ_RUN_ID_CAP, "%04u%02u%02u-%02u%02u%02u-%s",
                 (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
                 (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
                 (unsigned)tm.tm_sec % 100, letters);
}

bool afz_run_id_is(const char *text)
{
        for (int i = 0; i < AFZ_RUN_ID_LENGTH; i++) {
                char c = text[i];
                bool dash = i == DAY_DIGITS || i == DAY_DIGITS + 1 + TIME_DIGITS;
                bool digit = i < DAY_DIGITS + 1 + TIME_DIGITS;
                if (dash ? c != '-' : digit ? !afz_is_digit(c) : c < 'a' || c > 'z')
                        return false;
        }
        return text[AFZ_RUN_ID_LENGTH] == '\0';
}

bool afz_run_id_fits(const char *id, const char *text)
{
        size_t n = strlen(text);
        bool letters = n == LETTERS && text[0] >= 'a' && text[0] <= 'z';
        return letters ? strcmp(id + strlen(id) - LETTERS, text) == 0 : strncmp(id, text, n) == 0;
}

struct afz_run_name afz_run_name(const char *id, const char *suffix)
{
        struct afz_run_name name;
        snprintf(name.text, sizeof name.text, "%.*s%.7s", AFZ_RUN_ID_CAP - 1, id, suffix);
        return name;
}

void afz_boot_id(char ret[AFZ_BOOT_ID_CAP])
{
        char buf[64];
        ret[0] = '\0';
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        ssize_t n = afz_fd_read(fd, buf, sizeof buf);
        close(fd);
        if (n > 0)
                afz_span_copy(afz_span_trim((struct afz_span){buf, (size_t)n}), ret,
                              AFZ_BOOT_ID_CAP);
}
