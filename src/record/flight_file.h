#ifndef AFZ_FLIGHT_FILE_H
#define AFZ_FLIGHT_FILE_H
/* flight.afz: a run's recording on disk. A head, then frames, each with its length and sum; written
 * at the end only, so a reader may look while it is written, and a cut in mid-frame costs that
 * frame. Old frames are thinned by age (full for 5 minutes, one second for an hour, ten seconds
 * beyond that; marks are kept): a new file is written and renamed over the old one.
 *
 * docs/flight-format.md is the format.
 */
#include "flight.h"

#define AFZ_FLIGHT_NAME "flight.afz"

struct afz_flight_writer; /* allocates; for a process that may block */

/* Makes flight.afz in the folder, 0600, with the head. */
int afz_flight_create(int dir_fd, const struct afz_flight_head *head, uint64_t start_ns,
                      struct afz_flight_writer **ret);

/* Adds a frame with this pack. -ENOSPC, -EIO, ...: it is not in the file, which is as it was
 * before, and the loss is marked in the next frame that goes in. */
int afz_flight_write(struct afz_flight_writer *writer, const void *pack, size_t len);

/* Waits until what was written is on the disk, and says how long that took: at most so much more is
 * lost in a power cut. */
int afz_flight_sync(struct afz_flight_writer *writer, uint64_t *ret_ns);

/* Thins what is old enough, if there is enough of it to be worth the writing. Takes a while. */
int afz_flight_thin(struct afz_flight_writer *writer, uint64_t now_ns);

/* Marks the recording as closed in order and frees the writer; NULL is fine. */
int afz_flight_close(struct afz_flight_writer *writer);

/* Reads a recording, whole or cut off, also while it is written. `wanted` as in afz_unpack().
 * -ENOENT; -EBADMSG: it is no recording; -EPROTO: of a newer version. `why` (256 bytes, or NULL)
 * says which file and what is wrong with it, in one clause. */
int afz_flight_read(int dir_fd, bool (*wanted)(enum afz_metric metric), struct afz_flight *ret,
                    char *why);
int afz_flight_read_fd(int fd, bool (*wanted)(enum afz_metric metric), struct afz_flight *ret,
                       char *why);

#endif
