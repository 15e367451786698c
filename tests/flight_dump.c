/* What a test asks of a run and of its recording.
 *
 *   flight_dump start RUN      when it began, CLOCK_BOOTTIME in ns (while its page is there)
 *   flight_dump read FOLDER    "end_ms 1234 ended 1 holes 0 points 99 looks 12 gaps 0 attempts 1
 *                              said 0 disk_us 900": the last is the disk's worst time, as told
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "flight_file.h"
#include "run.h"

static int tell_start(const char *run)
{
        struct afz_run_ref ref;
        struct afz_run_page page;
        if (afz_run_find(run, &ref) < 0 || afz_run_peek(&ref, &page) < 0)
                return 1;
        printf("%llu\n", (unsigned long long)page.started_ns);
        return 0;
}

static size_t count_points(const struct afz_flight *flight)
{
        size_t n = 0;
        for (size_t i = 0; i < flight->tracks; i++)
                for (size_t k = 0; k < flight->track[i].columns; k++)
                        n += flight->track[i].column[k].count;
        return n;
}

static size_t count_marks(const struct afz_flight *flight, enum afz_mark_kind kind)
{
        size_t n = 0;
        for (size_t i = 0; i < flight->marks; i++)
                n += flight->mark[i].kind == kind;
        return n;
}

static int tell_flight(const char *folder)
{
        struct afz_flight flight;
        char why[256] = "";
        int dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        afz_flight_init(&flight);
        int r = afz_flight_read(dir_fd, NULL, &flight, why);
        if (r < 0) {
                fprintf(stderr, "%s: %s (%s)\n", folder, strerror(-r), why);
                return 1;
        }
        const struct afz_column *needs = afz_flight_need(&flight);
        printf("end_ms %u ended %d holes %u points %zu looks %zu gaps %zu attempts %zu said %zu "
               "disk_us %llu\n",
               flight.end_ms, flight.ended, flight.holes, count_points(&flight),
               needs ? needs->count : 0, count_marks(&flight, AFZ_MARK_GAP),
               count_marks(&flight, AFZ_MARK_ATTEMPT), count_marks(&flight, AFZ_MARK_SAID),
               (unsigned long long)afz_flight_disk_ns(&flight) / 1000);
        afz_flight_done(&flight);
        return 0;
}

int main(int argc, char **argv)
{
        if (argc == 3 && strcmp(argv[1], "start") == 0)
                return tell_start(argv[2]);
        if (argc == 3 && strcmp(argv[1], "read") == 0)
                return tell_flight(argv[2]);
        fprintf(stderr, "flight_dump start RUN | read FOLDER\n");
        return 2;
}
