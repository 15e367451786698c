/* Judges recordings anew: for each FOLDER (flight.afz and verdict.json) a line
 *
 *   FOLDER<TAB>leak 0.95 act<TAB>host-exhaustion 0.95 act
 *
 * with its verdicts, the strongest first. For the corpus. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "explain.h"
#include "flight_file.h"

static int recall(int dir, struct afz_run_known *ret)
{
        static char text[1 << 20];
        int fd = openat(dir, "verdict.json", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        ssize_t n = read(fd, text, sizeof text);
        close(fd);
        return n < 0 ? -errno : afz_run_known_parse((struct afz_span){text, (size_t)n}, ret);
}

static int judge(const char *folder)
{
        struct afz_run_known known;
        struct afz_flight flight;
        char why[256];
        int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = dir < 0 ? -errno : recall(dir, &known);
        if (r == 0)
                r = afz_flight_read(dir, NULL, &flight, why);
        if (dir >= 0)
                close(dir);
        if (r < 0) {
                fprintf(stderr, "%s: %s\n", folder, strerror(-r));
                return 1;
        }
        afz_explain_flight(&known, &flight);
        printf("%s", folder);
        for (unsigned i = 0; i < known.outcome.verdicts; i++)
                printf("\t%s %.2f %s", known.outcome.verdict[i].id,
                       known.outcome.verdict[i].confidence,
                       afz_level_name(known.outcome.verdict[i].level));
        printf("\n");
        afz_flight_done(&flight);
        return 0;
}

int main(int argc, char **argv)
{
        int bad = argc < 2;
        for (int i = 1; i < argc; i++)
                bad |= judge(argv[i]);
        return bad;
}
