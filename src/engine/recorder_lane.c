#include "recorder_lane.h"

#include <errno.h>
#include <stdlib.h>

enum { OPEN, BUSY, SEALED };

static uint64_t word_of(unsigned state, size_t len)
{
        return (uint64_t)state << 32 | (uint32_t)len;
}

static unsigned state_of(uint64_t word)
{
        return (unsigned)(word >> 32);
}

static size_t len_of(uint64_t word)
{
        return (uint32_t)word;
}

static _Atomic uint64_t *word_at(const struct afz_lane *lane, uint32_t index)
{
        return &lane->shared->word[index % AFZ_LANE_SLOTS];
}

static unsigned char *data_at(const struct afz_lane *lane, uint32_t index)
{
        return lane->data + (size_t)(index % AFZ_LANE_SLOTS) * lane->slot_bytes;
}

/* The first slot is one that is done with: so who comes first begins as all others do. */
void afz_lane_make(struct afz_lane_shared *shared)
{
        atomic_store(&shared->word[0], word_of(SEALED, 0));
}

void afz_lane_init(struct afz_lane *lane, struct afz_lane_shared *shared, void *data,
                   uint32_t slot_bytes, uint64_t start_ns)
{
        *lane = (struct afz_lane){
                .shared = shared, .data = data, .slot_bytes = slot_bytes, .start_ns = start_ns};
}

/* ---- who puts ---- */

int afz_lane_join(struct afz_lane *lane)
{
        lane->pack.seen = calloc(AFZ_PACK_SUBJECTS, sizeof *lane->pack.seen);
        if (!lane->pack.seen)
                return -ENOMEM;
        lane->index = atomic_load_explicit(&lane->shared->head, memory_order_acquire);
        _Atomic uint64_t *word = word_at(lane, lane->index);
        uint64_t is = atomic_load(word);
        while (!atomic_compare_exchange_weak(word, &is, word_of(SEALED, len_of(is))))
                ;
        lane->joined = true;
        return 0;
}

void afz_lane_leave(struct afz_lane *lane)
{
        free(lane->pack.seen);
        lane->pack.seen = NULL;
        lane->joined = false;
}

static bool open_next(struct afz_lane *lane, uint64_t t_ns)
{
        uint32_t next = lane->index + 1;
        uint32_t tail = atomic_load_explicit(&lane->shared->tail, memory_order_acquire);
        if (next - tail >= AFZ_LANE_SLOTS)
                return false;
        atomic_store_explicit(word_at(lane, next), word_of(BUSY, 0), memory_order_relaxed);
        atomic_store_explicit(&lane->shared->head, next, memory_order_release);
        lane->index = next;
        lane->pack.buf = data_at(lane, next);
        lane->pack.cap = lane->slot_bytes;
        afz_pack_start(&lane->pack, lane->start_ns, t_ns);
        lane->empty = lane->pack.len;
        return true;
}

static void publish(struct afz_lane *lane, unsigned state)
{
        size_t len = lane->pack.len > lane->empty ? lane->pack.len : 0;
        atomic_store_explicit(word_at(lane, lane->index), word_of(state, len),
                              memory_order_release);
}

void afz_lane_begin(struct afz_lane *lane, uint64_t t_ns)
{
        _Atomic uint64_t *word = word_at(lane, lane->index);
        uint64_t is = atomic_load_explicit(word, memory_order_relaxed);
        lane->room = lane->joined &&
                     ((state_of(is) == OPEN &&
                       atomic_compare_exchange_strong(word, &is, word_of(BUSY, len_of(is)))) ||
                      open_next(lane, t_ns));
        if (!lane->room || lane->dropped == 0)
                return;
        if (afz_pack_mark(&lane->pack, t_ns, AFZ_MARK_GAP, lane->dropped, "found no room") == 0)
                lane->dropped = 0;
}

/* The record found no room: whether there is a fresh slot to try again. */
static bool turn_over(struct afz_lane *lane, uint64_t t_ns)
{
        if (lane->pack.len == lane->empty) /* nor does it in one that is empty */
                return false;
        publish(lane, SEALED);
        lane->room = open_next(lane, t_ns);
        return lane->room;
}

void afz_lane_sample(struct afz_lane *lane, uint64_t t_ns, const struct afz_sample *sample)
{
        if (lane->room &&
            (afz_pack_sample(&lane->pack, t_ns, sample) == 0 ||
             (turn_over(lane, t_ns) && afz_pack_sample(&lane->pack, t_ns, sample) == 0)))
                return;
        lane->dropped++;
}

void afz_lane_mark(struct afz_lane *lane, uint64_t t_ns, enum afz_mark_kind kind, int64_t code,
                   const char *text)
{
        if (lane->room &&
            (afz_pack_mark(&lane->pack, t_ns, kind, code, text) == 0 ||
             (turn_over(lane, t_ns) && afz_pack_mark(&lane->pack, t_ns, kind, code, text) == 0)))
                return;
        lane->dropped++;
}

void afz_lane_end(struct afz_lane *lane)
{
        if (lane->room)
                publish(lane, OPEN);
        lane->room = false;
}

/* ---- who takes ---- */

/* The slot that is being filled: what of it can be had? */
static int take_open(struct afz_lane *lane, bool last, uint32_t index, uint64_t *is)
{
        _Atomic uint64_t *word = word_at(lane, index);
        if (state_of(*is) == SEALED)
                return 1;
        if (state_of(*is) == BUSY && !last)
                return -EAGAIN;
        if (len_of(*is) == 0)
                return 0;
        if (atomic_compare_exchange_strong(word, is, word_of(SEALED, len_of(*is))))
                return 1;
        return -EAGAIN; /* a tick began just now */
}

int afz_lane_take(struct afz_lane *lane, bool last, const unsigned char **ret, size_t *ret_len)
{
        for (;;) {
                uint32_t tail = atomic_load_explicit(&lane->shared->tail, memory_order_relaxed);
                uint32_t head = atomic_load_explicit(&lane->shared->head, memory_order_acquire);
                if (tail == head + 1)
                        return 0;
                uint64_t is = atomic_load_explicit(word_at(lane, tail), memory_order_acquire);
                int r = tail == head ? take_open(lane, last, tail, &is) : 1;
                if (r <= 0)
                        return r;
                if (len_of(is) > 0 && len_of(is) <= lane->slot_bytes) {
                        *ret = data_at(lane, tail);
                        *ret_len = len_of(is);
                        return 1;
                }
                afz_lane_taken(lane);
        }
}

void afz_lane_taken(struct afz_lane *lane)
{
        uint32_t tail = atomic_load_explicit(&lane->shared->tail, memory_order_relaxed);
        atomic_store_explicit(&lane->shared->tail, tail + 1, memory_order_release);
}
