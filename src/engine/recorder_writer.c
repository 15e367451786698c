#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "flight_file.h"
#include "quiet.h"
#include "recorder_git.h"
#include "recorder_state.h"

static const struct {
        uint64_t beat_ns; /* what a kill of everybody, us included, may cost at most */
        uint64_t sync_ns; /* the same of a power cut, and the disk's own time: with the age of a
                           * look (100 ms) and our own being late, a second */
        uint64_t thin_ns; /* a file of five minutes is a few megabytes: read and written in a blink
                           */
        uint64_t tell_ns; /* our own cost, and the disk's worst time, are told so often */
        uint64_t late_ns; /* or at once, when the disk takes so much longer than was told */
        int git_ms;       /* for the revision of the job's folder; a local disk takes 0.1 */
        unsigned tries;   /* for a slot whose owner is in the middle of a tick: tens of us */
        int try_ms;
        int keeper_ms; /* for its last words: names of native code may have to be looked up */
} rule = {
        .beat_ns = 400 * AFZ_NS_PER_MS,
        .sync_ns = 800 * AFZ_NS_PER_MS,
        .thin_ns = 300 * AFZ_NS_PER_S,
        .tell_ns = 10 * AFZ_NS_PER_S,
        .late_ns = 50 * AFZ_NS_PER_MS,
        .git_ms = 200,
        .tries = 5,
        .try_ms = 1,
        .keeper_ms = 300,
};

struct writer {
        struct afz_recorder *recorder;
        const struct afz_flight_head *head;
        char git[AFZ_GIT_CAP];
        bool git_known;
        int dir_fd, fd;
        pid_t guard;
        struct afz_flight_writer *file; /* NULL: not made yet */
        bool wrote;                     /* since the last sync */
        bool state_synced;
        uint64_t sync_next_ns, thin_next_ns, tell_next_ns;
        uint64_t disk_ns, told_ns; /* its worst time since it was told, and what was told */
        struct afz_pack own;       /* what we say of ourselves */
        unsigned char own_bytes[512];
};

static uint64_t now_ns(void)
{
        return afz_clock_ns(CLOCK_MONOTONIC);
}

/* A disk that is full today may have room tomorrow: we go on trying, the guard says it. */
static void note(struct writer *w, int err)
{
        atomic_store_explicit(&w->recorder->shared->trouble, err, memory_order_relaxed);
}

/* ---- the file ---- */

static bool make_file(struct writer *w)
{
        struct afz_flight_head head = *w->head;
        if (w->file)
                return true;
        if (!w->git_known)
                afz_git_revision_soon(head.cwd, rule.git_ms, w->git);
        w->git_known = true;
        head.git = w->git;
        head.tier = atomic_load(&w->recorder->shared->tier);
        int err = afz_flight_create(w->dir_fd, &head, w->recorder->start_ns, &w->file);
        if (err < 0)
                w->file = NULL;
        note(w, err < 0 ? err : 0);
        w->wrote = w->file != NULL;
        return w->file != NULL;
}

/* False: something is left, whose owner is at it just now. A pack that the disk did not take is
 * lost; the file's next one says so. */
static bool empty_lane(struct writer *w, struct afz_lane *lane, bool last)
{
        const unsigned char *pack;
        size_t len;
        int r;
        while ((r = afz_lane_take(lane, last, &pack, &len)) > 0) {
                int err = afz_flight_write(w->file, pack, len);
                note(w, err < 0 ? err : 0);
                w->wrote |= err >= 0;
                afz_lane_taken(lane);
        }
        return r == 0;
}

static void empty_lanes(struct writer *w, bool last)
{
        for (unsigned i = 0; i < AFZ_RECORDER_LANES; i++)
                for (unsigned n = 0; !empty_lane(w, &w->recorder->lane[i], last) && n < rule.tries;
                     n++)
                        (void)poll(NULL, 0, rule.try_ms);
}

/* How long a power cut may reach back beyond a second is the disk's affair, so it is told: as the
 * length of our tick. */
static void tell(struct writer *w, uint64_t t_ns)
{
        uint64_t cpu_ns = afz_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        atomic_store_explicit(&w->recorder->shared->cpu_ns, cpu_ns, memory_order_relaxed);
        bool due = t_ns >= w->tell_next_ns || w->disk_ns >= w->told_ns + rule.late_ns;
        if (!w->own.seen || !due)
                return;
        struct afz_sample s = {
                .subject = {.kind = AFZ_KIND_SELF, .id = (uint64_t)getpid()},
                .name = "afz-writer",
        };
        uint64_t boot_ns = afz_clock_ns(CLOCK_BOOTTIME);
        afz_sample_set_u64(&s, AFZ_SELF_CPU, cpu_ns);
        afz_sample_set_u64(&s, AFZ_SELF_TICK, w->disk_ns);
        afz_pack_start(&w->own, w->recorder->start_ns, boot_ns);
        if (afz_pack_sample(&w->own, boot_ns, &s) == 0)
                (void)afz_flight_write(w->file, w->own.buf, w->own.len);
        w->tell_next_ns = t_ns + rule.tell_ns;
        w->told_ns = w->disk_ns;
        w->disk_ns = 0;
}

static void took(struct writer *w, uint64_t since_ns)
{
        uint64_t ns = now_ns() - since_ns;
        if (ns > w->disk_ns)
                w->disk_ns = ns;
}

/* Before thinning, too, which takes a while. */
static void sync_file(struct writer *w, uint64_t t_ns)
{
        uint64_t file_ns, since_ns = now_ns();
        if ((t_ns < w->sync_next_ns && t_ns < w->thin_next_ns) || !w->wrote)
                return;
        w->wrote = false;
        if (!w->state_synced)
                (void)afz_run_sync(w->dir_fd); /* a recording that `why` cannot find is none */
        w->state_synced = true;
        int err = afz_flight_sync(w->file, &file_ns);
        took(w, since_ns);
        if (err < 0)
                note(w, err);
        else
                tell(w, t_ns);
        w->sync_next_ns = t_ns + rule.sync_ns;
}

static void thin_file(struct writer *w, uint64_t t_ns)
{
        if (t_ns < w->thin_next_ns)
                return;
        uint64_t since_ns = now_ns();
        if (afz_flight_thin(w->file, afz_clock_ns(CLOCK_BOOTTIME)) > 0) {
                took(w, since_ns);
                w->wrote = true; /* its name is not on the disk yet */
        }
        w->thin_next_ns = t_ns + rule.thin_ns;
}

static void beat(struct writer *w)
{
        if (!make_file(w))
                return;
        uint64_t t_ns = now_ns();
        empty_lanes(w, false);
        sync_file(w, t_ns);
        thin_file(w, t_ns);
}

/* The keeper sees the guard's end when we do, and has last words. */
static void wait_for_keeper(const struct writer *w)
{
        _Atomic int32_t *pid = &w->recorder->shared->keeper;
        for (int ms = 0; ms < rule.keeper_ms && atomic_load(pid) > 0; ms += rule.try_ms) {
                if (kill(atomic_load(pid), 0) < 0 && errno == ESRCH)
                        return;
                (void)poll(NULL, 0, rule.try_ms);
        }
}

/* Who waits for us waits for a file that can be read; the disk may take its time after that. */
static void finish(struct writer *w)
{
        if (!make_file(w))
                return;
        wait_for_keeper(w);
        empty_lanes(w, true);
        (void)afz_flight_end(w->file);
        (void)send(w->fd, "c", 1, MSG_DONTWAIT | MSG_NOSIGNAL); /* nobody waits for the disk */
        (void)afz_flight_close(w->file);
}

/* ---- the process ---- */

enum word { NOTHING, GO, OVER };

/* Waits for a word of the guard; that it is gone is one. Its end of the pair may be held by what it
 * forked, so it is asked for, too. */
static enum word wait_for_word(const struct writer *w, int timeout_ms)
{
        struct pollfd p = {.fd = w->fd, .events = POLLIN};
        char word;
        if (poll(&p, 1, timeout_ms) > 0)
                return recv(w->fd, &word, 1, MSG_DONTWAIT) == 1 ? GO : OVER;
        return getppid() == w->guard ? NOTHING : OVER;
}

static void work(struct writer *w)
{
        const int beat_ms = (int)(rule.beat_ns / AFZ_NS_PER_MS);
        enum word word;
        while ((word = wait_for_word(w, beat_ms)) == NOTHING)
                ;
        if (word == OVER) /* the job never ran */
                return;
        uint64_t next_ns = now_ns();
        /* Soon, so that a power cut leaves word of the run; a job that ends at once need not wait
         * for the disk. */
        w->sync_next_ns = next_ns + rule.beat_ns;
        w->thin_next_ns = next_ns + rule.thin_ns;
        do {
                uint64_t t_ns = now_ns();
                if (t_ns >= next_ns) {
                        next_ns = t_ns + rule.beat_ns;
                        beat(w);
                        t_ns = now_ns();
                }
                uint64_t left_ns = next_ns > t_ns ? next_ns - t_ns : 0;
                word = wait_for_word(w, (int)((left_ns + AFZ_NS_PER_MS - 1) / AFZ_NS_PER_MS));
        } while (word != OVER);
        finish(w);
}

_Noreturn void afz_recorder_write(struct afz_recorder *recorder, struct afz_run *run,
                                  const struct afz_flight_head *head, int fd, pid_t guard)
{
        struct writer w = {.recorder = recorder, .head = head, .fd = fd, .guard = guard};
        afz_quiet_process("afz-writer");
        w.dir_fd = fcntl(run->dir_fd, F_DUPFD_CLOEXEC, 3);
        afz_run_leave(run); /* a mapping holds the run's lock as a descriptor does */
        int err = 0;
        for (unsigned i = AFZ_LANE_OF_SCOUT; i < AFZ_RECORDER_LANES && err >= 0; i++)
                err = afz_recorder_map_far(recorder, i);
        afz_quiet_fds((int[]){w.dir_fd, w.fd}, 2);
        w.own.seen = calloc(AFZ_PACK_SUBJECTS, sizeof *w.own.seen);
        w.own.buf = w.own_bytes;
        w.own.cap = sizeof w.own_bytes;
        if (err >= 0 && w.dir_fd >= 0)
                work(&w);
        _exit(0);
}
