/* A recording without a run, for tests of those who only read recordings.
 *
 *   fake_flight FOLDER RUN CMD GIT NAME   makes FOLDER/flight.afz: 20 s of a job with one process
 * of that name, a brake, and an OOM kill at the end
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "flight_file.h"
#include "pack.h"

enum { TICKS = 200, TICK_MS = 100, PACK_CAP = 1 << 16 };

static void put(struct afz_pack *pack, uint64_t t_ns, struct afz_subject subject, const char *name,
                enum afz_metric metric, int64_t value)
{
        struct afz_sample sample = {.t_ns = t_ns, .subject = subject, .name = name};
        afz_sample_set(&sample, metric, value);
        if (afz_pack_sample(pack, t_ns, &sample) < 0)
                abort();
}

static void fill(struct afz_pack *pack, const char *name)
{
        const struct afz_subject hold = {.kind = AFZ_KIND_HOLD};
        const struct afz_subject process = {.kind = AFZ_KIND_PROC, .id = 4242, .start = 7};
        uint64_t t = AFZ_NS_PER_S;
        afz_pack_start(pack, t, t);
        for (int i = 0; i < TICKS; i++, t += TICK_MS * AFZ_NS_PER_MS) {
                put(pack, t, hold, "", AFZ_HOLD_NEED, (int64_t)i << 20);
                put(pack, t, hold, "", AFZ_HOLD_STALL, (int64_t)i * 1000000);
                put(pack, t, process, name, AFZ_PROC_RSS, (int64_t)i << 19);
        }
        (void)afz_pack_mark(pack, t, AFZ_MARK_ACTION, AFZ_ACTION_BRAKE, name);
        (void)afz_pack_mark(pack, t, AFZ_MARK_ACTION, AFZ_ACTION_RELEASE, "");
        (void)afz_pack_mark(pack, t, AFZ_MARK_EVENT, ((int64_t)AFZ_EVENT_OOM_KILL << 32) + 4242,
                            "killed");
}

int main(int argc, char **argv)
{
        static unsigned char bytes[PACK_CAP];
        struct afz_pack pack = {.buf = bytes, .cap = sizeof bytes};
        struct afz_flight_writer *writer;
        if (argc != 6)
                return 2;
        struct afz_flight_head head = {.started_s = 1794724665,
                                       .cmd = argv[3],
                                       .cwd = argv[1],
                                       .git = argv[4],
                                       .cores = 2,
                                       .ram_total_bytes = UINT64_C(8) << 30,
                                       .budget_bytes = UINT64_C(4) << 30};
        snprintf(head.run, sizeof head.run, "%s", argv[2]);
        snprintf(head.host, sizeof head.host, "box");
        pack.seen = calloc(AFZ_PACK_SUBJECTS, sizeof *pack.seen);
        int dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (!pack.seen || dir < 0)
                return 1;
        fill(&pack, argv[5]);
        int r = afz_flight_create(dir, &head, AFZ_NS_PER_S, &writer);
        if (r == 0 && (r = afz_flight_write(writer, bytes, pack.len)) == 0)
                r = afz_flight_close(writer);
        if (r < 0)
                fprintf(stderr, "fake_flight: %s\n", strerror(-r));
        free(pack.seen);
        close(dir);
        return r < 0;
}
