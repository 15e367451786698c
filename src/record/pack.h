#ifndef AFZ_PACK_H
#define AFZ_PACK_H
/* What one process saw in about half a second, packed into bytes as it comes: the payload of a
 * frame of flight.afz (docs/flight-format.md). Who reads it needs nothing else: subjects and first
 * values are told anew in each pack. Only what is worth keeping is packed (the table in pack.c).
 *
 * In place, in the caller's buffer; nothing is allocated, so the guard may. A pack that is cut off
 * after any whole record (at any value that `len` ever had) can be read up to there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flight.h"
#include "sample.h"

enum { AFZ_PACK_SUBJECTS = 320 }; /* more in one pack find no room, and are counted */

/* Texts are made safe for a terminal and cut to these (with their NUL), never in mid-character. A
 * stack is the longest of them, and the only one that keeps the ends of its lines. */
enum {
        AFZ_PACK_NAME_CAP = 96,
        AFZ_PACK_DETAIL_CAP = 200,
        AFZ_PACK_NOTE_CAP = 96,
        AFZ_PACK_MARK_CAP = 4096,
};

struct afz_pack {
        unsigned char *buf;
        size_t cap, len; /* len: whole records only */
        uint64_t start_ns, t_ns;
        uint32_t dropped;
        unsigned subjects, next; /* next: who is expected, as samples come in the same order */
        struct {
                struct afz_subject subject;
                uint64_t present;
                int64_t value[AFZ_METRICS_PER_KIND];
        } * seen; /* AFZ_PACK_SUBJECTS of them; the caller's */
};

/* Empties it. `start` is CLOCK_BOOTTIME of the run's start, and so are all times that are packed.
 */
void afz_pack_start(struct afz_pack *pack, uint64_t start_ns, uint64_t t_ns);

/* A sample that is not worth keeping is passed over (0). -ENOSPC: there is no room; nothing of it
 * was packed, and it is counted in `dropped`. What is earlier than the run's start is at 0. */
int afz_pack_sample(struct afz_pack *pack, uint64_t t_ns, const struct afz_sample *sample);
int afz_pack_mark(struct afz_pack *pack, uint64_t t_ns, enum afz_mark_kind kind, int64_t code,
                  const char *text);

/* Reads a pack into a flight, also one that has older or newer points. -EBADMSG: it is none, or
 * damaged; what came before that stays in the flight. `wanted` says of which metrics points are
 * kept (NULL: all). */
int afz_unpack(const unsigned char *bytes, size_t len, bool (*wanted)(enum afz_metric metric),
               struct afz_flight *ret);

/* Which metrics of a kind are worth keeping, as bits. */
uint64_t afz_pack_kept(enum afz_kind kind);

#endif
