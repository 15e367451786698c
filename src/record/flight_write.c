#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "flight_about.h"
#include "flight_writer.h"
#include "pack.h"

/* So much room is taken ahead, where the file system can: a disk that others fill then does not cut
 * off a recording in its most telling half minute. Bytes. */
enum { RESERVE = 1 << 19 };

int afz_flight_write_all(afz_flight_pwritev write, int fd, struct iovec *iov, int n, uint64_t at)
{
        while (n > 0) {
                ssize_t done = write(fd, iov, n, (off_t)at);
                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return -errno;
                if (done == 0)
                        return -EIO;
                at += (uint64_t)done;
                while (n > 0 && (size_t)done >= iov->iov_len) {
                        done -= (ssize_t)iov->iov_len;
                        iov++;
                        n--;
                }
                if (n > 0) {
                        iov->iov_base = (char *)iov->iov_base + done;
                        iov->iov_len -= (size_t)done;
                }
        }
        return 0;
}

void afz_frame_out(struct afz_frame_out *ret, enum afz_frame_type type, const void *payload,
                   size_t len)
{
        afz_frame_head(ret->head, type, payload, len);
        ret->iov[0] = (struct iovec){ret->head, sizeof ret->head};
        ret->iov[1] = (struct iovec){(void *)(uintptr_t)payload, len};
}

int64_t afz_flight_begin(const struct afz_flight_writer *w, int fd)
{
        unsigned char head[AFZ_FILE_HEAD];
        struct afz_frame_out out;
        afz_file_head(head, w->names_sum);
        afz_frame_out(&out, AFZ_FRAME_ABOUT, w->about, w->about_len);
        struct iovec iov[] = {{head, sizeof head}, out.iov[0], out.iov[1]};
        int r = afz_flight_write_all(w->pwritev, fd, iov, 3, 0);
        return r < 0 ? r : (int64_t)(AFZ_FILE_HEAD + AFZ_FRAME_HEAD + w->about_len);
}

static int make_about(struct afz_flight_writer *w, const struct afz_flight_head *head)
{
        w->about = malloc(AFZ_ABOUT_MAX);
        if (!w->about)
                return -ENOMEM;
        struct afz_put put = {.p = w->about, .cap = AFZ_ABOUT_MAX};
        afz_about_put(&put, head, w->start_ns);
        w->about_len = put.len;
        w->names_sum = afz_names_sum();
        return put.full ? -E2BIG : 0;
}

static void free_writer(struct afz_flight_writer *w)
{
        afz_fd_close(&w->fd);
        afz_fd_close(&w->dir_fd);
        free(w->about);
        free(w);
}

/* What an earlier run left in the folder goes; who reads it keeps it. */
static int open_file(struct afz_flight_writer *w, int dir_fd)
{
        w->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
        if (w->dir_fd < 0)
                return -errno;
        unlinkat(dir_fd, AFZ_FLIGHT_NAME, 0);
        unlinkat(dir_fd, AFZ_FLIGHT_NAME ".new", 0);
        w->fd = openat(dir_fd, AFZ_FLIGHT_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (w->fd < 0)
                return -errno;
        int64_t end = afz_flight_begin(w, w->fd);
        if (end < 0) {
                unlinkat(dir_fd, AFZ_FLIGHT_NAME, 0);
                return (int)end;
        }
        w->end = w->raw_at = (uint64_t)end;
        return 0;
}

int afz_flight_create(int dir_fd, const struct afz_flight_head *head, uint64_t start_ns,
                      struct afz_flight_writer **ret)
{
        struct afz_flight_writer *w = calloc(1, sizeof *w);
        if (!w)
                return -ENOMEM;
        w->fd = w->dir_fd = -1;
        w->start_ns = start_ns;
        w->pwritev = pwritev;
        w->raw_from_ms = UINT32_MAX;
        w->worth_bytes = AFZ_FLIGHT_WORTH;
        for (int i = 0; i < AFZ_GRADES; i++)
                w->oldest_ms[i] = UINT32_MAX;
        int r = make_about(w, head);
        if (r >= 0)
                r = open_file(w, dir_fd);
        if (r < 0) {
                free_writer(w);
                return r;
        }
        *ret = w;
        return 0;
}

/* Not being able to is no failure; a full disk will say so itself. */
static void reserve(struct afz_flight_writer *w, uint64_t up_to)
{
        if (w->cannot_reserve || up_to <= w->reserved)
                return;
        int r = fallocate(w->fd, FALLOC_FL_KEEP_SIZE, (off_t)w->end,
                          (off_t)(up_to - w->end + RESERVE));
        if (r == 0)
                w->reserved = up_to + RESERVE;
        else
                w->cannot_reserve = errno != ENOSPC && errno != EINTR && errno != EDQUOT;
}

/* Puts the file back to where it was. What stays behind when even that fails is overwritten by the
 * next frame. */
static void lose(struct afz_flight_writer *w, uint32_t t_ms, int why)
{
        if (ftruncate(w->fd, (off_t)w->end) == 0)
                w->reserved = w->end;
        if (w->lost == 0 || t_ms < w->lost_from_ms)
                w->lost_from_ms = t_ms;
        w->lost++;
        w->lost_why = -why;
}

/* What was lost, as a pack with one mark. */
static size_t tell_lost(const struct afz_flight_writer *w, unsigned char *buf, size_t cap)
{
        char text[160];
        struct afz_pack pack = {.buf = buf, .cap = cap};
        uint64_t t_ns = w->lost_from_ms * AFZ_NS_PER_MS;
        snprintf(text, sizeof text, "%u parts of the recording could not be written: %s", w->lost,
                 strerror(w->lost_why));
        afz_pack_start(&pack, 0, t_ns);
        (void)afz_pack_mark(&pack, t_ns, AFZ_MARK_GAP, w->lost, text);
        return pack.len;
}

static int write_frame(struct afz_flight_writer *w, enum afz_frame_type type, const void *payload,
                       size_t len, uint32_t t_ms)
{
        unsigned char gap[256];
        struct afz_frame_out out[2];
        struct iovec iov[4];
        int n = 0;
        uint64_t size = 0;
        if (w->lost) {
                size_t gap_len = tell_lost(w, gap, sizeof gap);
                afz_frame_out(&out[0], AFZ_FRAME_PACK, gap, gap_len);
                iov[n++] = out[0].iov[0];
                iov[n++] = out[0].iov[1];
                size += AFZ_FRAME_HEAD + gap_len;
        }
        afz_frame_out(&out[1], type, payload, len);
        iov[n++] = out[1].iov[0];
        if (len)
                iov[n++] = out[1].iov[1];
        size += AFZ_FRAME_HEAD + len;
        reserve(w, w->end + size);
        int r = afz_flight_write_all(w->pwritev, w->fd, iov, n, w->end);
        if (r < 0) {
                lose(w, t_ms, r);
                return r;
        }
        w->end += size;
        w->lost = 0;
        return 0;
}

int afz_flight_write(struct afz_flight_writer *w, const void *pack, size_t len)
{
        uint32_t t_ms;
        if (len > AFZ_FRAME_MAX)
                return -E2BIG;
        int r = afz_pack_time(pack, len, &t_ms);
        if (r < 0)
                return r;
        r = write_frame(w, AFZ_FRAME_PACK, pack, len, t_ms);
        if (r < 0)
                return r;
        if (w->raw_from_ms == UINT32_MAX)
                w->raw_from_ms = t_ms;
        if (t_ms > w->last_ms)
                w->last_ms = t_ms;
        return 0;
}

int afz_flight_sync(struct afz_flight_writer *w, uint64_t *ret_ns)
{
        uint64_t before = afz_clock_ns(CLOCK_MONOTONIC);
        if (fdatasync(w->fd) < 0)
                return -errno;
        /* Its name, too, once; some file systems cannot, and need not. */
        if (!w->dir_synced && fsync(w->dir_fd) < 0 && errno == EIO)
                return -errno;
        w->dir_synced = true;
        *ret_ns = afz_clock_ns(CLOCK_MONOTONIC) - before;
        return 0;
}

int afz_flight_end(struct afz_flight_writer *w)
{
        if (w->ended)
                return 0;
        int r = write_frame(w, AFZ_FRAME_END, NULL, 0, w->last_ms);
        w->ended = r == 0;
        return r;
}

int afz_flight_close(struct afz_flight_writer *w)
{
        if (!w)
                return 0;
        int r = afz_flight_end(w);
        if (ftruncate(w->fd, (off_t)w->end) < 0 && r == 0)
                r = -errno; /* only the room that was taken ahead */
        if (fdatasync(w->fd) < 0 && r == 0)
                r = -errno;
        if (r == 0)
                (void)afz_flight_tidy(w); /* it is as good without */
        free_writer(w);
        return r;
}
