#include "sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "span.h"

int afz_batch_new(size_t cap, struct afz_batch **ret)
{
        /* calloc takes large blocks straight from the kernel: pages not touched are not taken. */
        struct afz_batch *batch = calloc(1, sizeof *batch + cap * sizeof batch->sample[0]);
        if (!batch)
                return -ENOMEM;
        batch->cap = cap;
        *ret = batch;
        return 0;
}

void afz_batch_free(struct afz_batch *batch)
{
        free(batch);
}

void afz_batch_start(struct afz_batch *batch, uint64_t t_ns)
{
        batch->t_ns = t_ns;
        batch->count = 0;
        batch->kinds = 0;
        batch->events = 0;
}

struct afz_sample *afz_batch_add(struct afz_batch *batch, struct afz_subject subject,
                                 const char *name)
{
        if (batch->count == batch->cap) {
                batch->dropped++;
                return NULL;
        }
        struct afz_sample *s = &batch->sample[batch->count++];
        batch->kinds |= UINT32_C(1) << subject.kind;
        s->t_ns = batch->t_ns;
        s->subject = subject;
        s->name = name;
        s->detail = NULL;
        s->note = NULL;
        s->present = 0;
        return s;
}

void afz_batch_event(struct afz_batch *batch, enum afz_event_kind kind, int64_t code,
                     const char *text, size_t text_len)
{
        if (batch->events == AFZ_BATCH_EVENTS) {
                batch->dropped++;
                return;
        }
        struct afz_event *e = &batch->event[batch->events++];
        e->t_ns = batch->t_ns;
        e->kind = kind;
        e->code = code;
        afz_span_copy((struct afz_span){text, text_len}, e->text, sizeof e->text);
}

void afz_sample_set_key(void *sample, int metric, uint64_t value)
{
        afz_sample_set_u64(sample, (enum afz_metric)metric, value);
}

void afz_sample_add_key(void *sample, int metric, uint64_t value)
{
        uint64_t so_far = (uint64_t)afz_sample_or(sample, (enum afz_metric)metric, 0);
        if (!__builtin_add_overflow(so_far, value, &value))
                afz_sample_set_u64(sample, (enum afz_metric)metric, value);
}

const char *afz_event_name(enum afz_event_kind kind)
{
        static const char *const name[AFZ_EVENT_COUNT] = {
                [AFZ_EVENT_OOM_KILL] = "oom-kill",           [AFZ_EVENT_XID] = "xid",
                [AFZ_EVENT_MACHINE_CHECK] = "machine-check", [AFZ_EVENT_HUNG_TASK] = "hung-task",
                [AFZ_EVENT_GPU_LOST] = "gpu-lost",           [AFZ_EVENT_GPU_STUCK] = "gpu-stuck",
                [AFZ_EVENT_SEGFAULT] = "segfault",           [AFZ_EVENT_IO_ERROR] = "io-error",
                [AFZ_EVENT_LOST_LINES] = "lost-lines",
        };
        return (unsigned)kind < AFZ_EVENT_COUNT ? name[kind] : "unknown";
}
