#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flight_about.h"
#include "flight_file.h"
#include "flight_frame.h"
#include "flight_sink.h"

enum { WHY_CAP = 256 };

/* A day of a job of 32 processes has 20 million points. A file that was made to deceive has a
 * hundred of them in each of its bytes: what is beyond this, in points (32 bytes), is not read. */
#define POINTS_MOST      (UINT64_C(1) << 26)
#define POINTS_PER_TRACK 16
#define POINTS_PER_MARK  4

__attribute__((format(printf, 3, 4))) static int say(char *why, int r, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        if (why)
                vsnprintf(why, WHY_CAP, fmt, args);
        va_end(args);
        return r;
}

static int check(int fd, const char *name, uint32_t *ret_names_sum, char *why)
{
        unsigned version = 0;
        struct stat st;
        if (fstat(fd, &st) < 0)
                return say(why, -errno, "%s cannot be read (%s)", name, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return say(why, -EBADMSG, "%s is not a file", name);
        int r = afz_file_check(fd, ret_names_sum, &version);
        switch (r) {
        case 0:
                return 0;
        case -ENODATA:
                return say(why, -EBADMSG, "%s is empty: nothing was recorded", name);
        case -EBADMSG:
                return say(why, r, "%s is not a recording of Antifreeze", name);
        case -EPROTO:
                return say(why, r,
                           "%s is a recording of version %u, and this Antifreeze reads version %d",
                           name, version, AFZ_FILE_VERSION);
        default:
                return say(why, r, "%s cannot be read (%s)", name, strerror(-r));
        }
}

struct reading {
        struct afz_flight flight;
        struct afz_sink sink;
        struct afz_names names;
        bool known; /* how the file numbers things: as it says, or as we do */
        uint32_t damaged;
};

/* A frame whose sum is right and whose inside is not counts as a hole, too. */
static int take_frame(struct reading *r, const struct afz_frame *frame)
{
        uint64_t start_ns;
        int err = 0;
        r->flight.ended = frame->type == AFZ_FRAME_END;
        switch (frame->type) {
        case AFZ_FRAME_ABOUT:
                err = afz_about_read(frame->payload, frame->len, &r->flight.head, &start_ns,
                                     &r->names);
                if (err == 0) {
                        r->sink.names = &r->names;
                        r->known = true;
                }
                break;
        case AFZ_FRAME_PACK:
        case AFZ_FRAME_MARKS:
                err = afz_pack_read(&r->sink, frame->payload, frame->len);
                break;
        case AFZ_FRAME_BLOCK:
                err = afz_block_read(&r->sink, frame->payload, frame->len);
                break;
        default: /* of a newer version, or the end */
                break;
        }
        r->damaged += err == -EBADMSG;
        if (err < 0 && err != -EBADMSG)
                return err;
        return r->sink.points + r->flight.tracks * POINTS_PER_TRACK +
                                       r->flight.marks * POINTS_PER_MARK >
                               POINTS_MOST
                       ? -EFBIG
                       : 0;
}

/* Without the first frame the numbers mean what ours do, or nothing. */
static int read_frames(struct reading *r, int fd, uint32_t names_sum)
{
        struct afz_frames frames;
        struct afz_frame frame;
        int err = afz_frames_open(&frames, fd, AFZ_FILE_HEAD);
        if (err < 0)
                return err;
        while ((err = afz_frames_next(&frames, &frame)) > 0) {
                if (!r->known && frame.type != AFZ_FRAME_ABOUT) {
                        r->known = names_sum == afz_names_sum();
                        err = r->known ? 0 : -EBADMSG;
                }
                if (err < 0 || (err = take_frame(r, &frame)) < 0)
                        break;
        }
        r->flight.holes = frames.holes + r->damaged;
        afz_frames_close(&frames);
        return err;
}

static int read_fd(int fd, const char *name, bool (*wanted)(enum afz_metric metric),
                   struct afz_flight *ret, char *why)
{
        uint32_t names_sum;
        int err = check(fd, name, &names_sum, why);
        if (err < 0)
                return err;
        struct reading r = {.known = false};
        r.sink = (struct afz_sink){.flight = &r.flight, .wanted = wanted};
        afz_flight_init(&r.flight);
        err = afz_about_none(&r.flight.head);
        if (err >= 0)
                err = read_frames(&r, fd, names_sum);
        if (err >= 0)
                err = afz_sink_settle(&r.sink);
        afz_sink_done(&r.sink);
        if (err < 0) {
                afz_flight_done(&r.flight);
                if (err == -EBADMSG)
                        return say(why, err,
                                   "%s is damaged at its start, and of another Antifreeze", name);
                if (err == -EFBIG)
                        return say(why, err, "%s holds more than can be looked at", name);
                return say(why, err, "%s cannot be read (%s)", name, strerror(-err));
        }
        *ret = r.flight;
        return 0;
}

int afz_flight_read_fd(int fd, bool (*wanted)(enum afz_metric metric), struct afz_flight *ret,
                       char *why)
{
        return read_fd(fd, "the recording", wanted, ret, why);
}

int afz_flight_read(int dir_fd, bool (*wanted)(enum afz_metric metric), struct afz_flight *ret,
                    char *why)
{
        /* Whatever is there under that name is not waited for. */
        int fd = openat(dir_fd, AFZ_FLIGHT_NAME, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT)
                return say(why, -ENOENT, "there is no %s: the run was not recorded",
                           AFZ_FLIGHT_NAME);
        if (fd < 0)
                return say(why, -errno, "%s cannot be opened (%s)", AFZ_FLIGHT_NAME,
                           strerror(errno));
        int r = read_fd(fd, AFZ_FLIGHT_NAME, wanted, ret, why);
        close(fd);
        return r;
}
