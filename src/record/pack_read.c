/* The reading side of pack.h. A record is decoded whole before anything of it counts. */
#include <errno.h>
#include <stdlib.h>

#include "flight_bytes.h"
#include "flight_sink.h"
#include "pack.h"
#include "pack_form.h"

struct known {
        unsigned kind; /* as the file numbers it */
        enum afz_kind ours;
        size_t track; /* of the flight; of a kind that we know */
        uint64_t present;
        int64_t value[AFZ_METRICS_PER_KIND];
};

struct afz_pack_reader {
        int64_t t_ms;
        unsigned subjects;
        struct known known[AFZ_PACK_SUBJECTS];
};

struct told {
        uint64_t kind, id, start;
        char name[AFZ_PACK_NAME_CAP], detail[AFZ_PACK_DETAIL_CAP], note[AFZ_PACK_NOTE_CAP];
};

static bool take_subject(struct afz_take *take, struct told *ret)
{
        return afz_take_number(take, &ret->kind) && ret->kind < AFZ_NAMES_KINDS &&
               afz_take_number(take, &ret->id) && afz_take_number(take, &ret->start) &&
               afz_take_text(take, ret->name, sizeof ret->name) &&
               afz_take_text(take, ret->detail, sizeof ret->detail) &&
               afz_take_text(take, ret->note, sizeof ret->note);
}

static bool take_time(struct afz_take *take, const struct afz_pack_reader *reader, int64_t *ret)
{
        int64_t delta;
        if (!afz_take_signed(take, &delta) || __builtin_add_overflow(reader->t_ms, delta, ret))
                return false;
        return *ret >= 0 && *ret <= UINT32_MAX;
}

static bool take_value(struct afz_take *take, int64_t grain, uint64_t *ret)
{
        unsigned char first;
        uint64_t z = 0;
        if (!afz_take_byte(take, &first))
                return false;
        if (first & 0x80 && (!afz_take_number(take, &z) || z >> 58))
                return false;
        uint64_t delta = (uint64_t)afz_unzigzag(z << 6 | (first & 0x3f));
        *ret = first & 0x40 ? delta : delta * (uint64_t)grain;
        return true;
}

/* What the unit of a metric of the file is, by our own table. */
static int64_t grain_of(const struct afz_sink *sink, unsigned kind, unsigned index)
{
        const struct afz_sink all = {.names = sink->names};
        enum afz_metric metric;
        if (!afz_sink_metric(&all, kind, index, &metric))
                return 1;
        return afz_pack_grain(afz_metric_info(metric)->unit);
}

static int put_points(struct afz_sink *sink, const struct known *known, uint32_t t_ms)
{
        int r = 0;
        for (uint64_t left = known->present; left && r >= 0; left &= left - 1) {
                unsigned i = (unsigned)__builtin_ctzll(left);
                enum afz_metric metric;
                if (!afz_sink_metric(sink, known->kind, i, &metric))
                        continue;
                int64_t v = known->value[i];
                struct afz_point point = {t_ms, 0, v, v, v};
                r = afz_sink_point(sink, &sink->flight->track[known->track], metric, &point);
        }
        return r;
}

static int add_known(struct afz_sink *sink, const struct told *told, struct known *ret)
{
        *ret = (struct known){.kind = (unsigned)told->kind,
                              .ours = afz_sink_kind(sink, told->kind)};
        if (ret->ours == AFZ_KIND_NONE)
                return 0;
        struct afz_subject subject = {ret->ours, told->id, told->start};
        struct afz_track *track =
                afz_flight_track(sink->flight, &subject, told->name, told->detail, told->note);
        if (!track)
                return -ENOMEM;
        ret->track = (size_t)(track - sink->flight->track);
        return 0;
}

/* The values of a record, on top of what is known; false: cut off or garbled. */
static bool take_values(struct afz_take *take, const struct afz_sink *sink, unsigned kind,
                        uint64_t *present, int64_t *value)
{
        uint64_t turned, changed;
        if (!afz_take_number(take, &turned) || !afz_take_number(take, &changed))
                return false;
        *present ^= turned;
        if (changed & ~*present)
                return false;
        for (; changed; changed &= changed - 1) {
                unsigned i = (unsigned)__builtin_ctzll(changed);
                uint64_t delta;
                if (!take_value(take, grain_of(sink, kind, i), &delta))
                        return false;
                value[i] = (int64_t)((uint64_t)value[i] + delta);
        }
        return true;
}

static int take_sample(struct afz_sink *sink, struct afz_take *take, uint64_t at)
{
        struct afz_pack_reader *reader = sink->reader;
        int64_t value[AFZ_METRICS_PER_KIND] = {0}, t_ms;
        uint64_t present = 0;
        struct told told;
        bool is_new = at == reader->subjects;
        if (at > reader->subjects || at >= AFZ_PACK_SUBJECTS || !take_time(take, reader, &t_ms) ||
            (is_new && !take_subject(take, &told)))
                return -EBADMSG;
        struct known *known = &reader->known[at];
        if (!is_new) {
                memcpy(value, known->value, sizeof value);
                present = known->present;
        }
        if (!take_values(take, sink, is_new ? (unsigned)told.kind : known->kind, &present, value))
                return -EBADMSG;
        int r = is_new ? add_known(sink, &told, known) : 0;
        if (r < 0)
                return r;
        reader->subjects += is_new;
        reader->t_ms = t_ms;
        known->present = present;
        memcpy(known->value, value, sizeof value);
        if (known->ours == AFZ_KIND_NONE)
                return 0;
        afz_flight_seen(sink->flight, &sink->flight->track[known->track], (uint32_t)t_ms,
                        (uint32_t)t_ms);
        return put_points(sink, known, (uint32_t)t_ms);
}

static int take_mark(struct afz_sink *sink, struct afz_take *take, uint64_t kind)
{
        char text[AFZ_PACK_MARK_CAP];
        int64_t t_ms, code;
        if (!take_time(take, sink->reader, &t_ms) || !afz_take_signed(take, &code) ||
            !afz_take_lines(take, kind == AFZ_MARK_STACK || kind == AFZ_MARK_SITE, text,
                            sizeof text))
                return -EBADMSG;
        sink->reader->t_ms = t_ms;
        if (kind >= AFZ_MARK_COUNT) /* of a newer version */
                return 0;
        return afz_flight_mark(sink->marks ? sink->marks : sink->flight, (uint32_t)t_ms,
                               (enum afz_mark_kind)kind, code, text, sizeof text);
}

static bool take_start(struct afz_take *take, uint32_t *ret_ms)
{
        unsigned char form;
        return afz_take_byte(take, &form) && form == AFZ_PACK_FORM && afz_take_u32(take, ret_ms);
}

int afz_pack_time(const unsigned char *bytes, size_t len, uint32_t *ret_ms)
{
        struct afz_take take = {bytes, len};
        return take_start(&take, ret_ms) ? 0 : -EBADMSG;
}

int afz_pack_read(struct afz_sink *sink, const unsigned char *bytes, size_t len)
{
        struct afz_take take = {bytes, len};
        uint32_t t_ms;
        if (!take_start(&take, &t_ms))
                return -EBADMSG;
        if (!sink->reader && !(sink->reader = malloc(sizeof *sink->reader)))
                return -ENOMEM;
        sink->reader->t_ms = t_ms;
        sink->reader->subjects = 0;
        int r = 0;
        while (take.n && r >= 0) {
                uint64_t tag;
                if (!afz_take_number(&take, &tag))
                        return -EBADMSG;
                r = tag & 1 ? take_mark(sink, &take, tag >> 1) : take_sample(sink, &take, tag >> 1);
        }
        return r;
}

int afz_unpack(const unsigned char *bytes, size_t len, bool (*wanted)(enum afz_metric metric),
               struct afz_flight *ret)
{
        struct afz_sink sink = {.flight = ret, .wanted = wanted};
        int r = afz_pack_read(&sink, bytes, len);
        int settled = afz_sink_settle(&sink);
        afz_sink_done(&sink);
        return r < 0 ? r : settled;
}
