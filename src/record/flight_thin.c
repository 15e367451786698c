/* Thinning by age: what is old is told by spans. A new file is written beside the old one, synced
 * and renamed over it; who reads the old one keeps it. When anything fails the old one stays.
 *
 * In the new file, as in the old one: blocks of the longest spans first, then shorter ones, old
 * marks, and what was never thinned. So a reader meets each column in the order of time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "flight_block.h"
#include "flight_marks.h"
#include "flight_sink.h"
#include "flight_writer.h"

#define MINUTE_MS (UINT32_C(60) * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

/* How old it must be, and the spans it is then told by. The first grade loses nothing: columns of
 * a minute take a third of the bytes of packs of half a second, each with all names in it. What was
 * thinned once waits until there is a batch of it: many rows in one block take fewer bytes than a
 * few in many. */
static const struct grade {
        uint32_t older_ms, span_ms, batch_ms;
} grades[AFZ_GRADES] = {
        {10 * 1000, 0, 0},
        {5 * MINUTE_MS, 1000, 2 * MINUTE_MS},
        {HOUR_MS, 10 * 1000, 15 * MINUTE_MS},
        {24 * HOUR_MS, MINUTE_MS, 4 * HOUR_MS},
};

enum {
        /* The file is written anew when so many bytes of it, and such a part, are worth thinning:
         * a day's recording is then written a few hundred times over, not thousands. (How many
         * bytes is AFZ_FLIGHT_WORTH.) */
        WORTH_PART = 5,
        /* At the end it is written anew for less: short recordings are most of what is ever kept,
         * and become a fifth of their size. */
        TIDY_BYTES = 1 << 14,
        TIDY_PART = 20,
        /* So many points are gathered at once: 16 MB. A writer that could not thin for hours must
         * not take gigabytes when it can. */
        GATHER_POINTS = 1 << 19,
};

struct thinning {
        struct afz_flight_writer *writer;
        int fd;
        bool nameless; /* the new file has no name yet */
        uint64_t end;
        uint32_t cut_ms[AFZ_GRADES]; /* what is older goes into this grade; 0: nothing does */
        struct afz_flight flight[AFZ_GRADES], marks;
        struct afz_sink sink[AFZ_GRADES], mark_sink;
        bool marks_told, last; /* last: nothing is written after this */
        uint32_t damaged;
        /* The writer's, of the new file. */
        uint64_t raw_at;
        uint32_t raw_from_ms, oldest_ms[AFZ_GRADES];
};

static int emit(struct thinning *t, enum afz_frame_type type, const unsigned char *payload,
                size_t len)
{
        struct afz_frame_out out;
        afz_frame_out(&out, type, payload, len);
        int r = afz_flight_write_all(t->writer->pwritev, t->fd, out.iov, len ? 2 : 1, t->end);
        if (r == 0)
                t->end += AFZ_FRAME_HEAD + len;
        return r;
}

/* As it is, with its sum. */
static int emit_copy(struct thinning *t, const struct afz_frame *frame)
{
        size_t len = AFZ_FRAME_HEAD + frame->len;
        struct iovec iov = {(void *)(uintptr_t)(frame->payload - AFZ_FRAME_HEAD), len};
        int r = afz_flight_write_all(t->writer->pwritev, t->fd, &iov, 1, t->end);
        if (r == 0)
                t->end += len;
        return r;
}

static int emit_block(void *ctx, const unsigned char *bytes, size_t len)
{
        return emit(ctx, AFZ_FRAME_BLOCK, bytes, len);
}

static int emit_marks(void *ctx, const unsigned char *bytes, size_t len)
{
        return emit(ctx, AFZ_FRAME_MARKS, bytes, len);
}

/* Writes what a grade has gathered. */
static int flush(struct thinning *t, int grade)
{
        struct afz_sink *sink = &t->sink[grade];
        if (sink->points == 0)
                return 0;
        int r = afz_sink_settle(sink);
        if (r >= 0)
                r = afz_block_write(sink->flight, sink->span_ms, emit_block, t);
        afz_flight_done(sink->flight);
        sink->points = 0;
        return r;
}

static int flush_from(struct thinning *t, int grade)
{
        int r = 0;
        for (int g = AFZ_GRADES - 1; g >= grade && r >= 0; g--)
                r = flush(t, g);
        return r;
}

/* The marks go in once, behind the last block. */
static int flush_all(struct thinning *t)
{
        int r = flush_from(t, 0);
        if (r < 0 || t->marks_told)
                return r;
        t->marks_told = true;
        r = afz_flight_settle(&t->marks);
        if (r < 0)
                return r;
        return afz_marks_write(&t->marks, emit_marks, t);
}

static int gather(struct thinning *t, int grade, const struct afz_frame *frame)
{
        struct afz_sink *sink = &t->sink[grade];
        int r = frame->type == AFZ_FRAME_BLOCK ? afz_block_read(sink, frame->payload, frame->len)
                                               : afz_pack_read(sink, frame->payload, frame->len);
        t->damaged += r == -EBADMSG;
        if (r < 0 && r != -EBADMSG)
                return r;
        return sink->points > GATHER_POINTS ? flush_from(t, grade) : 0;
}

static int take_pack(struct thinning *t, const struct afz_frame *frame)
{
        uint32_t t_ms;
        if (afz_pack_time(frame->payload, frame->len, &t_ms) < 0) {
                t->damaged++;
                return 0;
        }
        if (t_ms < t->cut_ms[0] && !t->marks_told) {
                if (t_ms < t->oldest_ms[0])
                        t->oldest_ms[0] = t_ms;
                return gather(t, 0, frame);
        }
        int r = flush_all(t);
        if (r < 0)
                return r;
        if (t->raw_from_ms == UINT32_MAX) {
                t->raw_from_ms = t_ms;
                t->raw_at = t->end;
        }
        return emit_copy(t, frame);
}

static int grade_of(uint32_t span_ms)
{
        for (int g = 0; g < AFZ_GRADES; g++)
                if (grades[g].span_ms == span_ms)
                        return g;
        return -1;
}

static int take_block(struct thinning *t, const struct afz_frame *frame)
{
        struct afz_block_about about;
        if (afz_block_about(frame->payload, frame->len, &about) < 0) {
                t->damaged++;
                return 0;
        }
        int g = grade_of(about.span_ms), next = g + 1;
        bool older = g >= 0 && next < AFZ_GRADES && about.to_ms <= t->cut_ms[next];
        if (g >= 0) {
                uint32_t *oldest = &t->oldest_ms[older ? next : g];
                *oldest = about.from_ms < *oldest ? about.from_ms : *oldest;
        }
        if (older)
                return gather(t, next, frame);
        int r = flush_from(t, next);
        return r < 0 ? r : emit_copy(t, frame);
}

/* Marks that were told later stay where they are. */
static int take_marks(struct thinning *t, const struct afz_frame *frame)
{
        if (t->marks_told)
                return emit_copy(t, frame);
        int r = afz_pack_read(&t->mark_sink, frame->payload, frame->len);
        t->damaged += r == -EBADMSG;
        return r == -EBADMSG ? 0 : r;
}

static int take_frame(struct thinning *t, const struct afz_frame *frame)
{
        switch (frame->type) {
        case AFZ_FRAME_PACK:
                return take_pack(t, frame);
        case AFZ_FRAME_BLOCK:
                return take_block(t, frame);
        case AFZ_FRAME_MARKS:
                return take_marks(t, frame);
        default: /* the first frame is written anew */
                return 0;
        }
}

/* Damage would be forgotten with the old file. */
static int mark_holes(struct thinning *t, uint32_t holes)
{
        char text[96];
        struct afz_flight marks = {0};
        if (holes == 0)
                return 0;
        int n = snprintf(text, sizeof text, "%u parts of the recording were damaged", holes);
        int r = afz_flight_mark(&marks, t->writer->last_ms, AFZ_MARK_GAP, holes, text, (size_t)n);
        if (r >= 0)
                r = afz_marks_write(&marks, emit_marks, t);
        afz_flight_done(&marks);
        return r;
}

static int copy(struct thinning *t)
{
        struct afz_frames frames;
        struct afz_frame frame;
        int64_t end = afz_flight_begin(t->writer, t->fd);
        if (end < 0)
                return (int)end;
        t->end = (uint64_t)end;
        int r = afz_frames_open(&frames, t->writer->fd, AFZ_FILE_HEAD);
        if (r < 0)
                return r;
        while ((r = afz_frames_next(&frames, &frame)) > 0)
                if ((r = take_frame(t, &frame)) < 0)
                        break;
        afz_frames_close(&frames);
        if (r >= 0)
                r = flush_all(t);
        if (r >= 0)
                r = mark_holes(t, frames.holes + t->damaged);
        if (r >= 0 && t->raw_from_ms == UINT32_MAX)
                t->raw_at = t->end;
        if (r >= 0 && t->last)
                r = emit(t, AFZ_FRAME_END, NULL, 0);
        return r;
}

/* The next run in the same --run-dir may have begun its own while we wait for the disk with ours.
 */
static bool is_still_there(const struct afz_flight_writer *w)
{
        struct stat ours, named;
        return fstat(w->fd, &ours) == 0 &&
               fstatat(w->dir_fd, AFZ_FLIGHT_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
               ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

/* Without a name until it is whole: who removes the folder when the run has ended, and we still
 * tidy up, finds it empty. Network file systems may know files with names only. */
static void open_new(struct thinning *t)
{
        int dir_fd = t->writer->dir_fd;
        t->fd = openat(dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
        t->nameless = t->fd >= 0;
        if (!t->nameless)
                t->fd = openat(dir_fd, AFZ_FLIGHT_NAME ".new",
                               O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int give_name(const struct thinning *t)
{
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", t->fd);
        return linkat(AT_FDCWD, path, t->writer->dir_fd, AFZ_FLIGHT_NAME ".new", AT_SYMLINK_FOLLOW);
}

/* The new file takes the old one's place. */
static int install(struct thinning *t)
{
        struct afz_flight_writer *w = t->writer;
        if (fsync(t->fd) < 0)
                return -errno;
        if (!is_still_there(w))
                return -ESTALE;
        if (t->nameless && give_name(t) < 0)
                return -errno;
        if (renameat(w->dir_fd, AFZ_FLIGHT_NAME ".new", w->dir_fd, AFZ_FLIGHT_NAME) < 0)
                return -errno;
        close(w->fd);
        w->fd = t->fd;
        t->fd = -1;
        w->end = w->reserved = t->end;
        w->raw_at = t->raw_at;
        w->raw_from_ms = t->raw_from_ms;
        memcpy(w->oldest_ms, t->oldest_ms, sizeof w->oldest_ms);
        w->dir_synced = false;
        return 0;
}

static void start(struct thinning *t, struct afz_flight_writer *w, uint32_t now_ms)
{
        memset(t, 0, sizeof *t);
        t->writer = w;
        t->raw_from_ms = UINT32_MAX;
        t->mark_sink = (struct afz_sink){.flight = &t->marks};
        for (int g = 0; g < AFZ_GRADES; g++) {
                const struct grade *grade = &grades[g];
                t->oldest_ms[g] = UINT32_MAX;
                t->sink[g] = (struct afz_sink){
                        .flight = &t->flight[g], .marks = &t->marks, .span_ms = grade->span_ms};
                /* Whole minutes, so that no span of any grade is cut in two. */
                uint32_t whole = grade->span_ms ? MINUTE_MS : 1;
                uint32_t cut =
                        now_ms > grade->older_ms ? (now_ms - grade->older_ms) / whole * whole : 0;
                uint32_t from = g > 0 ? w->oldest_ms[g - 1] : 0;
                if (cut > from && cut - from >= grade->batch_ms)
                        t->cut_ms[g] = cut;
        }
}

static void done(struct thinning *t)
{
        for (int g = 0; g < AFZ_GRADES; g++) {
                afz_flight_done(&t->flight[g]);
                afz_sink_done(&t->sink[g]);
        }
        afz_flight_done(&t->marks);
        afz_sink_done(&t->mark_sink);
}

/* As if what was never thinned were spread evenly over its time. */
static bool is_worth(const struct afz_flight_writer *w, uint32_t cut_ms)
{
        if (w->raw_from_ms >= cut_ms || w->last_ms <= w->raw_from_ms)
                return false;
        uint32_t old = (cut_ms < w->last_ms ? cut_ms : w->last_ms) - w->raw_from_ms;
        double bytes = (double)(w->end - w->raw_at) * old / (w->last_ms - w->raw_from_ms);
        return bytes >= (double)w->worth_bytes && bytes * WORTH_PART >= (double)w->end;
}

/* Writes the new file and puts it in the old one's place. */
static int renew(struct thinning *t)
{
        struct afz_flight_writer *w = t->writer;
        unlinkat(w->dir_fd, AFZ_FLIGHT_NAME ".new", 0);
        open_new(t);
        if (t->fd < 0)
                return -errno;
        int r = copy(t);
        if (r >= 0)
                r = install(t);
        if (r < 0)
                unlinkat(w->dir_fd, AFZ_FLIGHT_NAME ".new", 0);
        afz_fd_close(&t->fd);
        done(t);
        return r < 0 ? r : 1;
}

int afz_flight_thin(struct afz_flight_writer *w, uint64_t now_ns)
{
        uint64_t now_ms = now_ns > w->start_ns ? (now_ns - w->start_ns) / AFZ_NS_PER_MS : 0;
        struct thinning t;
        start(&t, w, now_ms < UINT32_MAX ? (uint32_t)now_ms : UINT32_MAX);
        return is_worth(w, t.cut_ms[0]) ? renew(&t) : 0;
}

int afz_flight_tidy(struct afz_flight_writer *w)
{
        uint64_t bytes = w->end - w->raw_at;
        struct thinning t;
        if (bytes < TIDY_BYTES || bytes * TIDY_PART < w->end)
                return 0;
        start(&t, w, w->last_ms);
        t.cut_ms[0] = UINT32_MAX;
        t.last = true;
        return renew(&t);
}
