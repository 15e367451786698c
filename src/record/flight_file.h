#ifndef AFZ_FLIGHT_FILE_H
#define AFZ_FLIGHT_FILE_H
/* flight.afz: a run's recording on disk. A head, then frames, each with its length and sum; written
 * at the end only, so a reader may look while it is written, and a cut in mid-frame costs that
 * frame. Old frames are thinned by age (full for 5 minutes, one second for an hour, ten seconds
 * for a day, a minute beyond that; marks are kept): a new file is written and renamed over the old
 * one.
 *
 * Nothing here locks or maps the file, so that it may lie on NFS. docs/flight-format.md is the
 * format.
 */
#include "flight.h"

#define AFZ_FLIGHT_NAME "flight.afz"

struct afz_flight_writer; /* allocates; for a process that may block */

/* Makes flight.afz in the folder, 0600, with the head; what an earlier run left there goes. The
 * process must ignore SIGXFSZ, or a limit on the size of files ends it. */
int afz_flight_create(int dir_fd, const struct afz_flight_head *head, uint64_t start_ns,
                      struct afz_flight_writer **ret);

/* Adds a frame with this pack. -ENOSPC, -EIO, ...: it is not in the file, which is as it was
 * before, and the loss is marked (AFZ_MARK_GAP, with how many packs) before the next frame that
 * goes in. -EBADMSG: it is no pack; -E2BIG: more than 1 MiB. */
int afz_flight_write(struct afz_flight_writer *writer, const void *pack, size_t len);

/* Waits until what was written is on the disk, and says how long that took: at most so much more is
 * lost in a power cut. */
int afz_flight_sync(struct afz_flight_writer *writer, uint64_t *ret_ns);

/* Thins what is old enough, if there is enough of it to be worth the writing; cheap when there is
 * not, so ask often (once a minute). 1: it did, which takes a while; 0: not yet. On an error the
 * file is as it was. `now` is CLOCK_BOOTTIME, as start_ns. */
int afz_flight_thin(struct afz_flight_writer *writer, uint64_t now_ns);

/* Marks the recording as closed in order: from now on it can be read as a whole, and nothing more
 * is written. Quick, unlike what follows; who waits for the recording need not wait for that. */
int afz_flight_end(struct afz_flight_writer *writer);

/* Ends it, waits until it is on the disk, makes it smaller where that is worth it (it can be read
 * meanwhile, and this may be cut off), and frees the writer, also when it fails; NULL is fine. */
int afz_flight_close(struct afz_flight_writer *writer);

/* Reads a recording, whole or cut off, also while it is written. `wanted` as in afz_unpack(): who
 * wants few metrics is many times faster. -ENOENT; -EBADMSG: it is no recording; -EPROTO: of a
 * newer version. `why` (256 bytes, or NULL) says which file and what is wrong with it, in one
 * clause. */
int afz_flight_read(int dir_fd, bool (*wanted)(enum afz_metric metric), struct afz_flight *ret,
                    char *why);
int afz_flight_read_fd(int fd, bool (*wanted)(enum afz_metric metric), struct afz_flight *ret,
                       char *why);

#endif
