#ifndef AFZ_SPACE_H
#define AFZ_SPACE_H
/* Disks and /dev/shm that the job fills: told, then braked, never a reason to kill. Pure.
 *
 * The figures are the scout's, some times a second. The word goes to afz_ladder_space(), because
 * there is one brake and the ladder owns it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "hold.h"

enum afz_space_level { AFZ_SPACE_OK, AFZ_SPACE_WARN, AFZ_SPACE_BRAKE };

struct afz_space_word {
        enum afz_space_level level;
        enum afz_cause cause; /* AFZ_CAUSE_DISK or AFZ_CAUSE_SHM where the level is not OK */
        unsigned soon;        /* looks in a row at which the disk would be full soon */
};

/* As in afz_scout_report. Not known is no danger. */
struct afz_space_disk {
        bool known;
        uint64_t free_bytes, size_bytes;
        uint64_t rate_bytes_per_s; /* of the job's own writing there */
        uint64_t left_s;           /* UINT64_MAX: it does not fill */
};
struct afz_space_shm {
        bool known;
        uint64_t free_bytes, size_bytes, job_bytes;
};

/* `last` is the word before (all zero at the start): a line that was crossed must be left by a
 * tenth before the word changes back. */
struct afz_space_word afz_space_judge(const struct afz_space_word *last,
                                      const struct afz_space_disk *disk,
                                      const struct afz_space_shm *shm);

#endif
