/* The kmsg sense: what the kernel says while we look. It has events and no samples.
 *
 * /dev/kmsg gives one record a read(), and we start at its end: what happened before is not ours to
 * report. In a recorded tree it is a plain file with one record a line, and there we start at its
 * beginning, because a recording holds what was said while somebody looked; lines added to the file
 * are seen in the next reading.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmsg_parse.h"
#include "sense.h"

enum {
        /* A record is at most 8 KiB, escapes and properties included. */
        RECORD_BYTES = 8192,
        /* Records taken in one reading, at about 1 us each. A kernel that says more than that in a
         * tick has its say in the next ones; its own buffer holds thousands. */
        MAX_RECORDS = 256,
};

struct kmsg_sense {
        int fd;
        bool is_device;
        off_t place; /* in a plain file */
        bool has_sequence;
        uint64_t sequence; /* of the last record */
        bool overrun;      /* records were lost before the next one */
        char record[RECORD_BYTES];
};

static void kmsg_close(void *state)
{
        struct kmsg_sense *k = state;
        if (!k)
                return;
        if (k->fd >= 0)
                close(k->fd);
        free(k);
}

static int kmsg_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        (void)target;
        struct kmsg_sense *k = calloc(1, sizeof *k);
        struct stat st;
        if (!k)
                return -ENOMEM;
        k->fd = afz_env_open(env, AFZ_ROOT_DEV, "kmsg", O_NONBLOCK);
        int r = k->fd;
        if (r >= 0)
                r = fstat(k->fd, &st) < 0 ? -errno : 0;
        if (r >= 0) {
                k->is_device = S_ISCHR(st.st_mode);
                if (!k->is_device && !S_ISREG(st.st_mode))
                        r = -ENODATA;
                else if (k->is_device && lseek(k->fd, 0, SEEK_END) < 0)
                        r = -errno;
        }
        if (r < 0) {
                kmsg_close(k);
                return r == -EPERM ? -EACCES : afz_sense_missing(r);
        }
        *ret_state = k;
        return 0;
}

/* 1 and the next record, 0 when there is none now, else -errno; -EPIPE: some were overwritten. */
static int next_from_device(struct kmsg_sense *k, struct afz_span *ret)
{
        ssize_t n;
        do
                n = read(k->fd, k->record, sizeof k->record);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return errno == EAGAIN ? 0 : -errno;
        *ret = (struct afz_span){k->record, (size_t)n};
        return n > 0;
}

static int next_from_file(struct kmsg_sense *k, struct afz_span *ret)
{
        ssize_t n = pread(k->fd, k->record, sizeof k->record, k->place);
        if (n <= 0)
                return n < 0 ? -errno : 0;
        struct afz_span text = {k->record, (size_t)n};
        if (afz_span_take_line(&text, ret) == 0) {
                k->place += (off_t)ret->n + 1;
                return 1;
        }
        if ((size_t)n < sizeof k->record)
                return 0; /* the end of this line is still to be written */
        k->place += (off_t)n;
        *ret = (struct afz_span){k->record, 0};
        return 1; /* longer than any record: nothing that we know */
}

static void tell_loss(struct kmsg_sense *k, uint64_t sequence, struct afz_batch *out)
{
        char text[96];
        uint64_t lost = k->has_sequence && sequence > k->sequence ? sequence - k->sequence - 1 : 0;
        int n = lost > 0 ? snprintf(text, sizeof text, "%llu lines of the kernel log were lost",
                                    (unsigned long long)lost)
                         : snprintf(text, sizeof text, "lines of the kernel log were lost");
        if (lost <= INT64_MAX)
                afz_batch_event(out, AFZ_EVENT_LOST_LINES, (int64_t)lost, text, (size_t)n);
        k->overrun = false;
}

static void take_record(struct kmsg_sense *k, struct afz_span record, struct afz_batch *out)
{
        struct afz_kmsg line;
        struct afz_kmsg_event event;
        if (afz_kmsg_parse(record, &line) < 0)
                return;
        if (k->overrun)
                tell_loss(k, line.sequence, out);
        k->has_sequence = true;
        k->sequence = line.sequence;
        if (afz_kmsg_recognise(&line, &event) == 0)
                afz_batch_event(out, event.kind, event.code, line.text.p, line.text.n);
}

static int kmsg_read(void *state, struct afz_batch *out)
{
        struct kmsg_sense *k = state;
        /* A record can make two events; what finds no room in this batch is left for the next. */
        for (int i = 0; i < MAX_RECORDS && out->events + 2 <= AFZ_BATCH_EVENTS; i++) {
                struct afz_span record;
                int r = k->is_device ? next_from_device(k, &record) : next_from_file(k, &record);
                if (r == -EPIPE)
                        k->overrun = true;
                else if (r < 0)
                        return i > 0 ? 0 : r;
                else if (r == 0)
                        break;
                else
                        take_record(k, record, out);
        }
        return 0;
}

const struct afz_sense afz_sense_kmsg = {
        .name = "kmsg",
        .what = "the kernel log: kills for memory, GPU and hardware errors, hung tasks",
        .every_ns = 200000000, /* 200 ms: what is in the log has happened already */
        .max_samples = 0,
        .absent = "/dev/kmsg is not there (usual in a container); GPU and hardware errors are not "
                  "seen, kills for memory still are, by the kernel's counters",
        .denied = "the kernel log may not be read (kernel.dmesg_restrict); kills for memory are "
                  "still seen by the kernel's counters. As root: sysctl kernel.dmesg_restrict=0",
        .open = kmsg_open,
        .read = kmsg_read,
        .close = kmsg_close,
};
