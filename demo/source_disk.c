/*
 * Samples from a file on a disk that is made slow.
 *
 * Every read goes to the device: read-ahead is off and the pages are dropped from the page cache
 * after use, so the kernel counts real input. On top of that comes a wait that brings the rate down
 * to what was asked for, because today's disks are too fast to show the pitfall.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "digits.h"
#include "source_impl.h"

enum {
        RECORD_BYTES = AFZ_DIGIT_PIXELS + 1, /* a byte for each pixel, then the label */
        PAGE = 4096,                         /* what is dropped from the cache is rounded to this */
};

struct disk_source {
        struct afz_source base;
        int fd;
        uint64_t bytes_per_second;
        uint64_t ready_ns; /* when the disk has delivered what was asked for so far */
};

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int sleep_until(uint64_t until_ns)
{
        const struct timespec until = {.tv_sec = (time_t)(until_ns / UINT64_C(1000000000)),
                                       .tv_nsec = (long)(until_ns % UINT64_C(1000000000))};

        return -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* A disk that was idle has not saved up speed: the wait is counted from now or from the last
 * delivery, the later. */
static int throttle(struct disk_source *disk)
{
        const uint64_t now = now_ns();
        const uint64_t from = disk->ready_ns > now ? disk->ready_ns : now;

        disk->ready_ns = from + RECORD_BYTES * UINT64_C(1000000000) / disk->bytes_per_second;
        return sleep_until(disk->ready_ns);
}

static int read_record(int fd, off_t at, uint8_t *record)
{
        for (size_t done = 0; done < RECORD_BYTES;) {
                const ssize_t n = pread(fd, record + done, RECORD_BYTES - done, at + (off_t)done);

                if (n < 0)
                        return -errno;
                if (n == 0)
                        return -EIO;
                done += (size_t)n;
        }
        posix_fadvise(fd, at - at % PAGE, RECORD_BYTES + 2 * PAGE, POSIX_FADV_DONTNEED);
        return 0;
}

static int disk_read(struct afz_source *source, uint64_t sample, float *pixels, uint8_t *label)
{
        struct disk_source *disk = (struct disk_source *)source;
        uint8_t record[RECORD_BYTES];
        int rc = read_record(disk->fd, (off_t)(sample * RECORD_BYTES), record);

        if (rc == 0)
                rc = throttle(disk);
        if (rc < 0)
                return rc;
        for (size_t i = 0; i < AFZ_DIGIT_PIXELS; i++)
                pixels[i] = (float)record[i] / 255;
        *label = record[AFZ_DIGIT_PIXELS];
        return 0;
}

static void disk_free(struct afz_source *source)
{
        struct disk_source *disk = (struct disk_source *)source;

        if (disk->fd >= 0)
                close(disk->fd);
        free(disk);
}

static int write_all(int fd, const uint8_t *bytes, size_t n)
{
        while (n > 0) {
                const ssize_t written = write(fd, bytes, n);

                if (written < 0 && errno != EINTR)
                        return -errno;
                if (written > 0) {
                        bytes += written;
                        n -= (size_t)written;
                }
        }
        return 0;
}

static int write_samples(const struct disk_source *disk, const volatile sig_atomic_t *stop)
{
        float pixels[AFZ_DIGIT_PIXELS];
        uint8_t record[RECORD_BYTES];

        for (uint64_t i = 0; i < disk->base.samples; i++) {
                if (*stop)
                        return -EINTR;
                afz_digit_draw(disk->base.seed, AFZ_DIGITS_TRAINING, i, pixels);
                for (size_t j = 0; j < AFZ_DIGIT_PIXELS; j++)
                        record[j] = (uint8_t)(pixels[j] * 255 + .5F);
                record[AFZ_DIGIT_PIXELS] = afz_digit_label(i);

                const int rc = write_all(disk->fd, record, sizeof(record));

                if (rc < 0)
                        return rc;
        }

        /* Only clean pages can be dropped. */
        if (fdatasync(disk->fd) < 0)
                return -errno;
        posix_fadvise(disk->fd, 0, 0, POSIX_FADV_DONTNEED);
        posix_fadvise(disk->fd, 0, 0, POSIX_FADV_RANDOM);
        return 0;
}

int afz_source_new_slow_disk(uint64_t seed, uint64_t samples, uint64_t bytes_per_second,
                             struct afz_scratch *scratch, const volatile sig_atomic_t *stop,
                             struct afz_source **ret)
{
        static const struct afz_source_ops ops = {.read = disk_read, .free = disk_free};
        struct disk_source *disk = malloc(sizeof(*disk));
        int rc;

        if (!disk)
                return -ENOMEM;
        *disk = (struct disk_source){
                .base = {.ops = &ops, .seed = seed, .samples = samples},
                .fd = -1,
                .bytes_per_second = bytes_per_second,
        };
        rc = afz_scratch_create(scratch, "samples.bin", &disk->fd);
        if (rc == 0)
                rc = write_samples(disk, stop);
        if (rc < 0) {
                disk_free(&disk->base);
                return rc;
        }
        *ret = &disk->base;
        return 0;
}
