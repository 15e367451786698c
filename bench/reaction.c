/* bench-reaction: how fast tier none stops a job that fills memory.
 *
 *      bench-reaction native KIND ROUNDS      a minimal guard (look and brake, every 2 ms) and a
 * filler bench-reaction fill KIND FILE          the filler alone: to be run under a guard
 *      bench-reaction read FILE LINE_BYTES    what its timeline says: ms and MiB beyond the line
 *
 * KIND: "faults" touches page after page at 2 GB/s, "read" fills by one read() of a
 * file, "populate" by one mmap(MAP_POPULATE). The filler writes its own timeline (time, bytes) into
 * FILE, which is shared memory, so that it is there when the filler was stopped or killed; "native"
 * prints one line a round: milliseconds from crossing the line to the last growth, MiB beyond the
 * line. Memory that the kernel fills within one call shows in the timeline only when the call is
 * over; there the guard's own looks, 2 ms apart, tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "hold_tier.h"

#define MIB (UINT64_C(1) << 20)

static const struct {
        uint64_t line_bytes;   /* the job is to be stopped at */
        uint64_t most_bytes;   /* and is not let go beyond, should nobody stop it */
        uint64_t bytes_per_s;  /* of "faults" */
        uint64_t beside_bytes; /* in RSS before the timeline says so: a huge page, the filler's own
                                */
        uint64_t step_bytes;   /* between two entries of the timeline */
        uint64_t look_ns;      /* the ladder's fastest pace */
        uint64_t grows_still_ns; /* after a brake: then the kernel is filling, and it is killed */
        uint64_t flat_ns;        /* no growth for so long: it is over */
        uint64_t give_up_ns;     /* a machine too busy to fill anything */
} set = {
        .line_bytes = 256 * MIB,
        .most_bytes = 2048 * MIB,
        .bytes_per_s = 2000000000,
        .beside_bytes = 4 * MIB,
        .step_bytes = MIB / 4,
        .look_ns = 2 * AFZ_NS_PER_MS,
        .grows_still_ns = 20 * AFZ_NS_PER_MS,
        .flat_ns = 100 * AFZ_NS_PER_MS,
        .give_up_ns = 20 * AFZ_NS_PER_S,
};

struct timeline {
        volatile uint64_t count;
        struct {
                uint64_t t_ns, bytes;
        } entry[16384];
};

static uint64_t now(void)
{
        return afz_clock_ns(CLOCK_MONOTONIC);
}

static void sleep_until(uint64_t t_ns)
{
        struct timespec ts = {.tv_sec = (time_t)(t_ns / AFZ_NS_PER_S),
                              .tv_nsec = (long)(t_ns % AFZ_NS_PER_S)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

static void note(struct timeline *line, uint64_t bytes)
{
        uint64_t n = line->count;
        if (n == sizeof line->entry / sizeof line->entry[0])
                return;
        line->entry[n].t_ns = now();
        line->entry[n].bytes = bytes;
        line->count = n + 1;
}

static void fill_by_faults(struct timeline *line, char *p)
{
        uint64_t start = now(), bytes = 0;
        while (bytes < set.most_bytes) {
                for (uint64_t end = bytes + set.step_bytes; bytes < end; bytes += 4096)
                        p[bytes] = 1;
                note(line, bytes);
                while (now() - start < bytes * AFZ_NS_PER_S / set.bytes_per_s)
                        ;
        }
}

static int fill(const char *kind, struct timeline *line)
{
        int flags = MAP_PRIVATE | MAP_ANONYMOUS, zero = memfd_create("hole", MFD_CLOEXEC);
        bool populate = strcmp(kind, "populate") == 0;
        if (zero < 0 || ftruncate(zero, (off_t)set.most_bytes) < 0)
                return 1;
        note(line, 0);
        char *p = mmap(NULL, set.most_bytes, PROT_READ | PROT_WRITE,
                       populate ? flags | MAP_POPULATE : flags, -1, 0);
        if (p == MAP_FAILED)
                return 1;
        if (strcmp(kind, "faults") == 0)
                fill_by_faults(line, p);
        else if (!populate && read(zero, p, set.most_bytes) < 0)
                return 1;
        note(line, set.most_bytes);
        for (;;)
                pause();
}

static struct timeline *open_timeline(const char *path)
{
        int fd = -1;
        if (path) {
                fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
                if (fd < 0 || ftruncate(fd, sizeof(struct timeline)) < 0)
                        return NULL;
        }
        void *p = mmap(NULL, sizeof(struct timeline), PROT_READ | PROT_WRITE,
                       MAP_SHARED | (path ? 0 : MAP_ANONYMOUS), fd, 0);
        if (fd >= 0)
                close(fd);
        return p == MAP_FAILED ? NULL : p;
}

struct outcome {
        uint64_t crossed_ns, last_ns, bytes;
};

static bool read_timeline(const struct timeline *line, uint64_t line_bytes, struct outcome *ret)
{
        struct outcome o = {0};
        for (uint64_t i = 0; i < line->count; i++) {
                if (line->entry[i].bytes + set.beside_bytes >= line_bytes && o.crossed_ns == 0)
                        o.crossed_ns = line->entry[i].t_ns;
                o.last_ns = line->entry[i].t_ns;
                o.bytes = line->entry[i].bytes;
        }
        *ret = o;
        return o.crossed_ns != 0;
}

static void print(const struct outcome *o, uint64_t line_bytes)
{
        printf("%.3f %.2f\n", (double)(o->last_ns - o->crossed_ns) / 1e6,
               ((double)o->bytes - (double)line_bytes) / (double)MIB);
}

static uint64_t need_of(struct afz_hold *hold)
{
        struct afz_pulse pulse = {0};
        uint64_t need = 0;
        if (hold->row->look(hold->state, &pulse) < 0 ||
            !afz_pulse_get(&pulse, AFZ_PULSE_NEED, &need))
                return 0;
        return need;
}

/* Looks until it is flat; what the looks saw goes to `ret`. */
static void guard(struct afz_hold *hold, struct outcome *ret)
{
        uint64_t braked_ns = 0, next_ns = now(), until = next_ns + set.give_up_ns, t;
        bool killed = false;
        struct outcome o = {0};
        do {
                next_ns += set.look_ns;
                sleep_until(next_ns);
                uint64_t need = need_of(hold);
                t = now();
                if (need >= set.line_bytes && o.crossed_ns == 0)
                        o.crossed_ns = t;
                if (need >= set.line_bytes && braked_ns == 0) {
                        hold->row->brake(hold->state);
                        braked_ns = t;
                }
                if (need > o.bytes + MIB / 2) {
                        o.bytes = need;
                        o.last_ns = t;
                        if (braked_ns != 0 && t - braked_ns > set.grows_still_ns && !killed) {
                                hold->row->kill(hold->state);
                                killed = true;
                        }
                }
        } while (t < until && (o.crossed_ns == 0 || t - o.last_ns < set.flat_ns));
        *ret = o;
}

static int one_round(const struct afz_env *env, const char *kind)
{
        struct timeline *line = open_timeline(NULL);
        struct afz_hold hold = {.row = &afz_hold_none};
        struct afz_hold_plan plan = {.id = "bench"};
        struct outcome seen, own;
        char why[AFZ_HOLD_WHY_CAP];
        int go[2];
        char c = 'g';
        if (!line || pipe2(go, O_CLOEXEC) < 0)
                return 1;
        pid_t pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(read(go[0], &c, 1) == 1 ? fill(kind, line) : 1);
        }
        if (hold.row->open(env, &plan, pid, 0, &hold.state, why) < 0) {
                fprintf(stderr, "bench-reaction: %s\n", why);
                return 1;
        }
        if (write(go[1], &c, 1) != 1)
                return 1;
        guard(&hold, &seen);
        bool fills_itself = strcmp(kind, "faults") == 0;
        if (fills_itself && !read_timeline(line, set.line_bytes, &own))
                fputs("bench-reaction: it did not come to the line\n", stderr);
        else
                print(fills_itself ? &own : &seen, set.line_bytes);
        hold.row->kill(hold.state);
        waitpid(pid, NULL, 0);
        hold.row->close(hold.state);
        close(go[0]);
        close(go[1]);
        munmap(line, sizeof *line);
        return 0;
}

/* As the guard has it: the best that is allowed, and nobody inherits it. */
static void be_urgent(void)
{
        struct sched_param rr = {.sched_priority = 1};
        if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &rr) < 0)
                (void)setpriority(PRIO_PROCESS, 0, -20);
}

static int native(const char *kind, long rounds)
{
        struct afz_env env;
        be_urgent();
        int r = afz_env_open_live(&env);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        while (r == 0 && rounds-- > 0)
                r = one_round(&env, kind);
        return r != 0;
}

int main(int argc, char **argv)
{
        if (argc == 4 && strcmp(argv[1], "native") == 0)
                return native(argv[2], atol(argv[3]));
        struct timeline *line =
                argc == 4 ? open_timeline(argv[strcmp(argv[1], "fill") ? 2 : 3]) : NULL;
        if (line && strcmp(argv[1], "fill") == 0)
                return fill(argv[2], line);
        struct outcome o;
        uint64_t line_bytes = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
        if (line && strcmp(argv[1], "read") == 0 && read_timeline(line, line_bytes, &o)) {
                print(&o, line_bytes);
                return 0;
        }
        fputs("usage: bench-reaction native KIND ROUNDS | fill KIND FILE | read FILE BYTES\n",
              stderr);
        return 2;
}
