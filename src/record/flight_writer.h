#ifndef AFZ_FLIGHT_WRITER_H
#define AFZ_FLIGHT_WRITER_H
/* The inside of a writer of flight.afz, for flight_write.c, flight_thin.c and tests. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "flight_file.h"
#include "flight_frame.h"

enum { AFZ_FLIGHT_WORTH = 1 << 20 }; /* bytes that thinning must have to do with, at least */
enum { AFZ_GRADES = 4 };             /* of thinning; the table is in flight_thin.c */

/* As pwritev(2); a test's can fail. */
typedef ssize_t (*afz_flight_pwritev)(int fd, const struct iovec *iov, int n, off_t at);

struct afz_flight_writer {
        int dir_fd, fd;
        uint64_t start_ns;
        uint64_t end;      /* of the last whole frame: where the next one goes */
        uint64_t reserved; /* up to here the disk has promised room */
        bool cannot_reserve, dir_synced, ended;
        afz_flight_pwritev pwritev;
        unsigned char *about; /* the first frame's payload, and the names' sum, to write it again */
        size_t about_len;
        uint32_t names_sum;

        /* What could not be written since the last frame that was. */
        uint32_t lost, lost_from_ms;
        int lost_why;

        /* For thinning. */
        uint64_t worth_bytes; /* AFZ_FLIGHT_WORTH, but in a test */
        uint64_t raw_at;      /* where frames that were never thinned begin */
        uint32_t raw_from_ms, last_ms;
        uint32_t oldest_ms[AFZ_GRADES]; /* the oldest block of each grade; UINT32_MAX: none */
};

/* One frame; at most this many pieces of memory are written at once. */
struct afz_frame_out {
        unsigned char head[AFZ_FRAME_HEAD];
        struct iovec iov[2];
};
void afz_frame_out(struct afz_frame_out *ret, enum afz_frame_type type, const void *payload,
                   size_t len);

/* All of it, or -errno. `iov` is used up. */
int afz_flight_write_all(afz_flight_pwritev write, int fd, struct iovec *iov, int n, uint64_t at);

/* Head and first frame; returns where they end. */
int64_t afz_flight_begin(const struct afz_flight_writer *writer, int fd);

/* After the end was written: puts what was never thinned into columns, if that is worth it. As
 * afz_flight_thin(). */
int afz_flight_tidy(struct afz_flight_writer *writer);

#endif
