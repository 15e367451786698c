#ifndef AFZ_RECORDER_LANE_H
#define AFZ_RECORDER_LANE_H
/* A lane: the slots between one who puts records and one who takes them to disk, in shared memory.
 *
 *   slot   ... | taken | taken | full | full | open |      | ...
 *                          tail ──┘             └── head
 *
 * Who puts packs into the open slot (pack.h) and publishes its length after every whole tick; who
 * takes seals the open slot when it likes (about twice a second), and the next tick begins another.
 * A full slot is sealed by who puts. So neither ever waits for the other: when no slot is free,
 * records are dropped, counted, and told as AFZ_MARK_GAP as soon as there is room.
 *
 * A slot is BUSY from the beginning of a tick to its end, and not sealed meanwhile: what was packed
 * since the last publishing could not be read. One that was left BUSY by a process that died holds
 * all that was published before; who takes gets it when he says that nobody puts any more, or when
 * somebody else goes on in that lane.
 *
 * One puts, one takes. Nothing is allocated but in afz_lane_join().
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack.h"

enum { AFZ_LANE_SLOTS = 8 };

/* In shared memory, zeroed at first. Numbers of slots only grow; slot n stands at n % SLOTS. */
struct afz_lane_shared {
        _Atomic uint32_t head, tail;
        _Atomic uint64_t word[AFZ_LANE_SLOTS]; /* its state, and how many bytes of it count */
};

/* One side of it, in the memory of its process. */
struct afz_lane {
        struct afz_lane_shared *shared;
        unsigned char *data; /* of all slots */
        uint32_t slot_bytes;

        /* For who puts. */
        uint64_t start_ns;
        struct afz_pack pack;
        size_t empty; /* length of a pack without a record */
        uint32_t index;
        bool joined, room;
        uint32_t dropped; /* and not told yet */
};

static inline size_t afz_lane_bytes(uint32_t slot_bytes)
{
        return (size_t)slot_bytes * AFZ_LANE_SLOTS;
}

/* Both sides. Once for the shared memory, before anybody uses it; and for each side. */
void afz_lane_make(struct afz_lane_shared *shared);
void afz_lane_init(struct afz_lane *lane, struct afz_lane_shared *shared, void *data,
                   uint32_t slot_bytes, uint64_t start_ns);

/* Who puts: goes on where another one has left. -ENOMEM. */
int afz_lane_join(struct afz_lane *lane);
void afz_lane_leave(struct afz_lane *lane); /* harmless twice, and without a join */

/* A tick: begin, any number of records, end. t_ns is CLOCK_BOOTTIME. What does not fit is counted.
 */
void afz_lane_begin(struct afz_lane *lane, uint64_t t_ns);
void afz_lane_sample(struct afz_lane *lane, uint64_t t_ns, const struct afz_sample *sample);
void afz_lane_mark(struct afz_lane *lane, uint64_t t_ns, enum afz_mark_kind kind, int64_t code,
                   const char *text);
void afz_lane_end(struct afz_lane *lane);

/* Who takes: the next pack, oldest first, in place; it stays until afz_lane_taken(). `last`: nobody
 * puts any more. 1; 0: there is none; -EAGAIN: somebody is in the middle of a tick just now. */
int afz_lane_take(struct afz_lane *lane, bool last, const unsigned char **ret, size_t *ret_len);
void afz_lane_taken(struct afz_lane *lane);

#endif
