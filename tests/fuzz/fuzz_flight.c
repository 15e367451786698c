/* Any bytes as a recording: as they are, and as the insides of frames with right sums, which is how
 * they get to the decoders at all. What comes out is in order. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flight_about.h"
#include "flight_file.h"
#include "flight_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
        if (!holds)
                abort();
}

static unsigned char file[1 << 17];
static size_t file_len;

static void put(const void *bytes, size_t n)
{
        require(n <= sizeof file - file_len);
        if (n)
                memcpy(file + file_len, bytes, n);
        file_len += n;
}

static void put_frame(unsigned type, const uint8_t *payload, size_t len)
{
        unsigned char head[AFZ_FRAME_HEAD];
        afz_frame_head(head, (enum afz_frame_type)type, payload, len);
        put(head, sizeof head);
        put(payload, len);
}

/* Frames: a byte for the type (behind one above 15 there is damage), one for the length. */
static void put_frames(const uint8_t *data, size_t size)
{
        static uint32_t names_sum;
        unsigned char head[AFZ_FILE_HEAD];
        if (names_sum == 0)
                names_sum = afz_names_sum();
        afz_file_head(head, names_sum);
        put(head, sizeof head);
        while (size >= 2) {
                size_t len = data[1] * 4U < size - 2 ? data[1] * 4U : size - 2;
                put_frame(data[0] % 6, data + 2, len);
                if (data[0] > 15)
                        put("damage", 6);
                data += 2 + len;
                size -= 2 + len;
        }
}

static void check(const struct afz_flight *f)
{
        require(f->head.cmd && f->head.cwd && f->head.git);
        for (size_t i = 0; i < f->tracks; i++) {
                const struct afz_track *t = &f->track[i];
                require(t->name && t->detail && t->note && t->last_ms <= f->end_ms);
                for (size_t c = 0; c < t->columns; c++)
                        for (size_t p = 0; p < t->column[c].count; p++) {
                                const struct afz_point *point = &t->column[c].point[p];
                                require(point->least <= point->most);
                                require(p == 0 || point->t_ms >= point[-1].t_ms);
                        }
        }
        for (size_t i = 1; i < f->marks; i++)
                require(f->mark[i].t_ms >= f->mark[i - 1].t_ms);
}

static void read_it(int fd)
{
        struct afz_flight f;
        char why[256] = "";
        int r = afz_flight_read_fd(fd, NULL, &f, why);
        require(r == 0 || r == -EBADMSG || r == -EPROTO);
        require(r == 0 || why[0]);
        if (r == 0) {
                check(&f);
                afz_flight_done(&f);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int fd = -1;
        if (fd < 0)
                fd = memfd_create("flight", MFD_CLOEXEC);
        if (size == 0 || size > 4096)
                return 0;
        file_len = 0;
        if (data[0] & 1)
                put(data + 1, size - 1);
        else
                put_frames(data + 1, size - 1);
        require(ftruncate(fd, 0) == 0 && pwrite(fd, file, file_len, 0) == (ssize_t)file_len);
        read_it(fd);
        return 0;
}
