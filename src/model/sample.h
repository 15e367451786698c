#ifndef AFZ_SAMPLE_H
#define AFZ_SAMPLE_H
/* A sample is one subject at one instant; a batch is what one sense saw in one reading.
 *
 * Absent is not zero: a value counts only where its validity bit is set, and the only way to read
 * one is afz_sample_get(), which says whether it is there. A sense that cannot learn a metric does
 * not set it; nobody ever writes a default.
 *
 * Texts (name, detail, note) are borrowed from the sense that filled the sample, and hold for as
 * long as the batch is that sense's newest.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric.h"

struct afz_subject {
        enum afz_kind kind;
        uint64_t id;    /* see enum afz_kind */
        uint64_t start; /* of a process: start time in clock ticks since boot, so that a pid that is
                         * used again is another subject. Of a cgroup: how often the job had been
                         * moved before it came there. Else 0 */
};

struct afz_sample {
        uint64_t t_ns;
        struct afz_subject subject;
        const char *name;   /* "vda", "python3", "NVIDIA H200"; never NULL */
        const char *detail; /* a command line, a mount point's type, a GPU's UUID; may be NULL */
        const char *note;   /* a role's words, a wait channel; may be NULL */
        uint64_t present;
        int64_t value[AFZ_METRICS_PER_KIND];
};

/* Things that happen at an instant rather than stand for a while. */
enum afz_event_kind {
        AFZ_EVENT_OOM_KILL,      /* code: pid of the victim */
        AFZ_EVENT_XID,           /* code: the Xid number */
        AFZ_EVENT_MACHINE_CHECK, /* code: 0 */
        AFZ_EVENT_HUNG_TASK,     /* code: pid */
        AFZ_EVENT_GPU_LOST,      /* code: number of the GPU */
        AFZ_EVENT_GPU_STUCK,     /* code: seconds that the driver has not answered */
        AFZ_EVENT_SEGFAULT,      /* code: pid */
        AFZ_EVENT_IO_ERROR,      /* code: 0 */
        AFZ_EVENT_LOST_LINES,    /* code: how many lines of the kernel log we came too late for */
        AFZ_EVENT_COUNT
};

struct afz_event {
        uint64_t t_ns;
        enum afz_event_kind kind;
        int64_t code;
        char text[192]; /* one line, printable */
};

#define AFZ_BATCH_EVENTS 16

struct afz_batch {
        uint64_t t_ns; /* of the reading; 0: never filled */
        size_t count, cap;
        uint32_t kinds;   /* bit k: samples of kind k were added */
        uint64_t dropped; /* samples and events that found no room, since birth */
        size_t events;
        struct afz_event event[AFZ_BATCH_EVENTS];
        struct afz_sample sample[];
};

/* Room for cap samples, pages of which are only taken as they are used. */
int afz_batch_new(size_t cap, struct afz_batch **ret);
void afz_batch_free(struct afz_batch *batch);

/* Empties it for a new reading at t_ns. */
void afz_batch_start(struct afz_batch *batch, uint64_t t_ns);

/* The next sample, with nothing present, or NULL when the batch is full (which is counted). */
struct afz_sample *afz_batch_add(struct afz_batch *batch, struct afz_subject subject,
                                 const char *name);

/* Adds an event; the text is copied, cut to fit and made printable. */
void afz_batch_event(struct afz_batch *batch, enum afz_event_kind kind, int64_t code,
                     const char *text, size_t text_len);

/* For afz_span_each_key(), with the sample as its ctx and metrics as ids: sets the metric, or adds
 * to what it has (where several keys make one metric). What does not fit is left as it was. */
void afz_sample_set_key(void *sample, int metric, uint64_t value);
void afz_sample_add_key(void *sample, int metric, uint64_t value);

/* "oom-kill", "xid", ... */
const char *afz_event_name(enum afz_event_kind kind);

static inline void afz_sample_set(struct afz_sample *s, enum afz_metric m, int64_t value)
{
        assert(afz_metric_kind(m) == s->subject.kind);
        s->value[afz_metric_index(m)] = value;
        s->present |= UINT64_C(1) << afz_metric_index(m);
}

/* For what the kernel gives as unsigned: a value beyond int64_t is left absent. */
static inline void afz_sample_set_u64(struct afz_sample *s, enum afz_metric m, uint64_t value)
{
        if (value <= INT64_MAX)
                afz_sample_set(s, m, (int64_t)value);
}

/* The same for what the kernel counts in pages, ticks or kHz. */
static inline void afz_sample_set_scaled(struct afz_sample *s, enum afz_metric m, uint64_t value,
                                         uint64_t unit)
{
        if (!__builtin_mul_overflow(value, unit, &value))
                afz_sample_set_u64(s, m, value);
}

/* Makes it absent again. */
static inline void afz_sample_forget(struct afz_sample *s, enum afz_metric m)
{
        assert(afz_metric_kind(m) == s->subject.kind);
        s->present &= ~(UINT64_C(1) << afz_metric_index(m));
}

static inline bool afz_sample_has(const struct afz_sample *s, enum afz_metric m)
{
        assert(afz_metric_kind(m) == s->subject.kind);
        return s->present >> afz_metric_index(m) & 1;
}

static inline bool afz_sample_get(const struct afz_sample *s, enum afz_metric m, int64_t *ret)
{
        if (!afz_sample_has(s, m))
                return false;
        *ret = s->value[afz_metric_index(m)];
        return true;
}

/* A value that cannot be below zero, of a sample that may not be there. */
static inline bool afz_sample_get_u64(const struct afz_sample *s, enum afz_metric m, uint64_t *ret)
{
        int64_t v;
        if (!s || !afz_sample_get(s, m, &v) || v < 0)
                return false;
        *ret = (uint64_t)v;
        return true;
}

/* For words only: where a missing value reads as `otherwise`. Never for a decision. */
static inline int64_t afz_sample_or(const struct afz_sample *s, enum afz_metric m,
                                    int64_t otherwise)
{
        return s && afz_sample_has(s, m) ? s->value[afz_metric_index(m)] : otherwise;
}

/* Takes over what `from` (of the same kind) has and `to` has not: slow facts into a fresh sample.
 */
static inline void afz_sample_merge(struct afz_sample *to, const struct afz_sample *from)
{
        uint64_t more = from->present & ~to->present;
        to->present |= more;
        for (; more; more &= more - 1) {
                int i = __builtin_ctzll(more);
                to->value[i] = from->value[i];
        }
}

static inline bool afz_subject_same(const struct afz_subject *a, const struct afz_subject *b)
{
        return a->kind == b->kind && a->id == b->id && a->start == b->start;
}

#endif
