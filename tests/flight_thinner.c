/* A recording that is thinned all the time, for who cuts the power meanwhile (tests/vm/cut).
 *
 *   flight_thinner write FOLDER   writes, syncs and thins until it is ended; after each sync one
 * line "ack MS THINNED": up to here it is on the disk, and how often it was thinned so far
 *   flight_thinner check FOLDER   "end_ms 1234 marks 56 points 789 holes 0" when all that it holds
 *                                 is as it was written
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "flight_writer.h"
#include "pack.h"

enum {
        STEP_MS = 100,
        PACK_MS = 500,
        MARK_MS = 10000,
        THIN_MS = 30000, /* of the recording's time, which is some hundred times faster than ours */
        WORTH = 1 << 14,
        PACK_CAP = 1 << 16,
        START_S = 5000,
};

static int64_t need_at(uint32_t t_ms)
{
        uint64_t h = (t_ms + 1) * UINT64_C(0x9e3779b97f4a7c15);
        return ((int64_t)(t_ms / 1000) + (int64_t)(h >> 56)) * 4096;
}

static uint64_t at_ns(uint32_t t_ms)
{
        return START_S * AFZ_NS_PER_S + t_ms * AFZ_NS_PER_MS;
}

/* ---- writing ---- */

static int write_pack(struct afz_flight_writer *w, struct afz_pack *pack, uint32_t from_ms)
{
        afz_pack_start(pack, at_ns(0), at_ns(from_ms));
        for (uint32_t t = from_ms; t < from_ms + PACK_MS; t += STEP_MS) {
                struct afz_sample job = {.subject = {.kind = AFZ_KIND_JOB}, .name = "job"};
                afz_sample_set(&job, AFZ_JOB_NEED, need_at(t));
                if (afz_pack_sample(pack, at_ns(t), &job) < 0)
                        return -1;
                if (t % MARK_MS == 0 &&
                    afz_pack_mark(pack, at_ns(t), AFZ_MARK_SAID, t, "ten seconds") < 0)
                        return -1;
        }
        return afz_flight_write(w, pack->buf, pack->len);
}

static int write_until_ended(int dir_fd)
{
        static char none[] = "";
        struct afz_flight_head head = {.run = "r", .cmd = none, .cwd = none, .git = none};
        struct afz_pack pack = {.buf = malloc(PACK_CAP), .cap = PACK_CAP};
        struct afz_flight_writer *w;
        uint64_t took_ns;
        unsigned thinned = 0;
        pack.seen = calloc(AFZ_PACK_SUBJECTS, sizeof *pack.seen);
        if (!pack.buf || !pack.seen || afz_flight_create(dir_fd, &head, at_ns(0), &w) < 0)
                return 1;
        w->worth_bytes = WORTH;
        for (uint32_t t = 0;; t += PACK_MS) {
                if (write_pack(w, &pack, t) < 0)
                        return 1;
                if (t % THIN_MS == 0) {
                        int r = afz_flight_thin(w, at_ns(t));
                        if (r < 0)
                                return 1;
                        thinned += r > 0;
                }
                if (t / PACK_MS % 7 != 0)
                        continue;
                if (afz_flight_sync(w, &took_ns) < 0)
                        return 1;
                printf("ack %u %u\n", t + PACK_MS - STEP_MS, thinned);
                fflush(stdout);
        }
}

/* ---- checking ---- */

static bool is_as_written(const struct afz_point *p)
{
        int64_t least = INT64_MAX, most = INT64_MIN;
        for (uint32_t t = p->t_ms; t == p->t_ms || t < p->t_ms + p->span_ms; t += STEP_MS) {
                int64_t v = need_at(t);
                least = v < least ? v : least;
                most = v > most ? v : most;
        }
        return p->least == least && p->most == most && p->mean >= least && p->mean <= most;
}

/* Each reading is there once, alone or within a span; so is each mark. */
static const char *what_is_wrong(const struct afz_flight *flight, const struct afz_column *need)
{
        uint32_t next_ms = 0;
        for (size_t i = 0; need && i < need->count; i++) {
                const struct afz_point *p = &need->point[i];
                if (p->t_ms != next_ms)
                        return "readings are missing, or told twice";
                if (!is_as_written(p))
                        return "a reading is other than was written";
                next_ms = p->t_ms + (p->span_ms ? p->span_ms : STEP_MS);
        }
        if (next_ms != flight->end_ms + STEP_MS)
                return "the readings end before the recording does";
        for (size_t i = 0; i < flight->marks; i++)
                if (flight->mark[i].t_ms != i * MARK_MS ||
                    flight->mark[i].code != (int64_t)i * MARK_MS)
                        return "marks are missing, or told twice";
        return flight->marks == flight->end_ms / MARK_MS + 1 ? NULL : "the last marks are missing";
}

static int check(int dir_fd)
{
        struct afz_flight flight;
        char why[256] = "";
        if (afz_flight_read(dir_fd, NULL, &flight, why) < 0) {
                fprintf(stderr, "%s\n", why);
                return 1;
        }
        const struct afz_column *need =
                afz_track_column(afz_flight_one(&flight, AFZ_KIND_JOB), AFZ_JOB_NEED);
        const char *wrong = what_is_wrong(&flight, need);
        if (wrong)
                fprintf(stderr, "%s\n", wrong);
        printf("end_ms %u marks %zu points %zu holes %u\n", flight.end_ms, flight.marks,
               need ? need->count : 0, flight.holes);
        afz_flight_done(&flight);
        return wrong != NULL;
}

int main(int argc, char **argv)
{
        int dir_fd = argc == 3 ? open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (dir_fd >= 0 && strcmp(argv[1], "write") == 0)
                return write_until_ended(dir_fd);
        if (dir_fd >= 0 && strcmp(argv[1], "check") == 0)
                return check(dir_fd);
        fprintf(stderr, "flight_thinner write|check FOLDER\n");
        return 2;
}
