#include "pack.h"

#include <errno.h>

#include "clock.h"
#include "flight_bytes.h"
#include "pack_form.h"

/* What judges, pictures and exports need. What only the live view shows, what changes in every look
 * and explains nothing (ages, switches), and what is the difference of two others (shared RSS) is
 * left out: it would be most of the file. */
#define ALL        UINT64_MAX
#define M(id)      (UINT64_C(1) << (AFZ_##id & 0xff))
#define RSS_KINDS  (M(PROC_RSS_ANON) | M(PROC_RSS_FILE) | M(PROC_RSS_SHMEM) | M(PROC_RSS_PEAK))
#define PSS_KINDS  (M(PROC_PSS_ANON) | M(PROC_PSS_FILE) | M(PROC_PSS_SHMEM) | M(PROC_SWAP_PSS))
#define PROC_IO    (M(PROC_READ) | M(PROC_WRITTEN) | M(PROC_READ_CALLS) | M(PROC_WRITE_CALLS))
#define PROC_WHO   (M(PROC_PPID) | M(PROC_STATE) | M(PROC_ROLE) | M(PROC_RANK))
#define PROC_TASKS (M(PROC_THREADS) | M(PROC_THREADS_RUNNING) | M(PROC_THREADS_DISK))
#define PROC_TIMES (M(PROC_USER) | M(PROC_SYSTEM) | M(PROC_IO_WAIT))

static const uint64_t kept[AFZ_KIND_COUNT] = {
        [AFZ_KIND_HOST] = ALL,
        [AFZ_KIND_VM] = ALL,
        [AFZ_KIND_PSI] = ALL,
        [AFZ_KIND_CPU] = ALL, /* of the machine as a whole */
        [AFZ_KIND_JOB] = ALL,
        [AFZ_KIND_PROC] = PROC_WHO | PROC_TASKS | PROC_TIMES | M(PROC_MINOR_FAULTS) |
                          M(PROC_MAJOR_FAULTS) | M(PROC_RSS) | RSS_KINDS | M(PROC_SWAP) |
                          M(PROC_PINNED) | M(PROC_PSS) | PSS_KINDS | M(PROC_NEED) | PROC_IO |
                          M(PROC_FDS) | M(PROC_FDS_LIMIT),
        [AFZ_KIND_CGROUP] = ALL, /* of the job's own, and of those with a limit */
        [AFZ_KIND_DISK] = ALL,   /* of those that the job uses */
        [AFZ_KIND_FS] = ALL,
        [AFZ_KIND_NET] = M(NET_RECEIVED) | M(NET_SENT), /* is it downloading? */
        [AFZ_KIND_THERMAL] = ALL,
        [AFZ_KIND_POWER] = ALL,
        [AFZ_KIND_GPU] = ALL,
        [AFZ_KIND_GPU_PROC] = ALL,
        [AFZ_KIND_SELF] = ALL,
        [AFZ_KIND_HOLD] = ALL,
        [AFZ_KIND_SITE] = ALL,
        [AFZ_KIND_INSIDE] = ALL,
};

uint64_t afz_pack_kept(enum afz_kind kind)
{
        if ((unsigned)kind >= AFZ_KIND_COUNT || afz_kind_table[kind].metrics == 0)
                return 0;
        return kept[kind] & UINT64_MAX >> (AFZ_METRICS_PER_KIND - afz_kind_table[kind].metrics);
}

static bool cgroup_is_kept(const struct afz_sample *s)
{
        return afz_sample_or(s, AFZ_CGROUP_LEVEL, 0) == 0 || afz_sample_has(s, AFZ_CGROUP_MAX) ||
               afz_sample_has(s, AFZ_CGROUP_HIGH) || afz_sample_has(s, AFZ_CGROUP_SWAP_MAX);
}

/* Of a kind with many subjects, those that have to do with the job. */
static bool subject_is_kept(const struct afz_sample *s)
{
        switch (s->subject.kind) {
        case AFZ_KIND_CPU:
                return s->subject.id == AFZ_CPU_ALL;
        case AFZ_KIND_CGROUP:
                return cgroup_is_kept(s);
        case AFZ_KIND_DISK:
                return afz_sample_or(s, AFZ_DISK_JOB_USES, 1) != 0;
        case AFZ_KIND_NET:
                return afz_sample_or(s, AFZ_NET_UP, 1) != 0;
        default:
                return true;
        }
}

static uint32_t ms_of(const struct afz_pack *pack, uint64_t t_ns)
{
        uint64_t ms = t_ns > pack->start_ns ? (t_ns - pack->start_ns) / AFZ_NS_PER_MS : 0;
        return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

void afz_pack_start(struct afz_pack *pack, uint64_t start_ns, uint64_t t_ns)
{
        pack->start_ns = start_ns;
        pack->t_ns = t_ns;
        pack->len = 0;
        pack->dropped = 0;
        pack->subjects = pack->next = 0;
        struct afz_put put = {.p = pack->buf, .cap = pack->cap};
        afz_put_byte(&put, AFZ_PACK_FORM);
        afz_put_number(&put, ms_of(pack, t_ns));
        if (!put.full)
                pack->len = put.len;
}

static struct afz_put room(const struct afz_pack *pack)
{
        return (struct afz_put){.p = pack->buf, .len = pack->len, .cap = pack->cap};
}

/* -ENOSPC too when not even the start found room: what has no beginning cannot be read. */
static int commit(struct afz_pack *pack, const struct afz_put *put, uint64_t t_ns)
{
        if (put->full || pack->len == 0) {
                pack->dropped++;
                return -ENOSPC;
        }
        pack->len = put->len;
        pack->t_ns = t_ns;
        return 0;
}

static void put_time(struct afz_put *put, const struct afz_pack *pack, uint64_t t_ns)
{
        afz_put_signed(put, (int64_t)ms_of(pack, t_ns) - (int64_t)ms_of(pack, pack->t_ns));
}

/* The place of a subject; that of the next new one when it was not seen yet. */
static unsigned find(const struct afz_pack *pack, const struct afz_subject *subject)
{
        for (unsigned n = 0, i = pack->next; n < pack->subjects; n++, i++) {
                if (i >= pack->subjects)
                        i = 0;
                if (afz_subject_same(&pack->seen[i].subject, subject))
                        return i;
        }
        return pack->subjects;
}

/* A multiple of its unit's usual grain is put as such, and that is one bit of the first byte. */
static void put_value(struct afz_put *put, int64_t delta, int64_t grain)
{
        bool whole = delta % grain == 0;
        uint64_t z = afz_zigzag(whole ? delta / grain : delta);
        unsigned char first = (unsigned char)((z & 0x3f) | (whole ? 0 : 0x40));
        z >>= 6;
        afz_put_byte(put, (unsigned char)(first | (z ? 0x80 : 0)));
        if (z)
                afz_put_number(put, z);
}

static void put_subject(struct afz_put *put, const struct afz_sample *s)
{
        afz_put_number(put, (uint64_t)s->subject.kind);
        afz_put_number(put, s->subject.id);
        afz_put_number(put, s->subject.start);
        afz_put_text(put, s->name, AFZ_PACK_NAME_CAP);
        afz_put_text(put, s->detail, AFZ_PACK_DETAIL_CAP);
        afz_put_text(put, s->note, AFZ_PACK_NOTE_CAP);
}

/* Which values are told: those that are new, and those that changed. */
static uint64_t changes(const struct afz_sample *s, uint64_t present, uint64_t before,
                        const int64_t *value)
{
        uint64_t changed = 0;
        for (uint64_t left = present; left; left &= left - 1) {
                int i = __builtin_ctzll(left);
                if (!(before >> i & 1) || s->value[i] != value[i])
                        changed |= left & -left;
        }
        return changed;
}

int afz_pack_sample(struct afz_pack *pack, uint64_t t_ns, const struct afz_sample *sample)
{
        static const int64_t none[AFZ_METRICS_PER_KIND];
        uint64_t present = sample->present & afz_pack_kept(sample->subject.kind);
        if (!present || !subject_is_kept(sample))
                return 0;
        unsigned at = find(pack, &sample->subject);
        bool is_new = at == pack->subjects;
        if (at >= AFZ_PACK_SUBJECTS) {
                pack->dropped++;
                return -ENOSPC;
        }
        const int64_t *value = is_new ? none : pack->seen[at].value;
        uint64_t before = is_new ? 0 : pack->seen[at].present;
        uint64_t changed = changes(sample, present, before, value);

        struct afz_put put = room(pack);
        afz_put_number(&put, (uint64_t)at << 1);
        put_time(&put, pack, t_ns);
        if (is_new)
                put_subject(&put, sample);
        afz_put_number(&put, present ^ before);
        afz_put_number(&put, changed);
        const struct afz_metric_info *info = afz_kind_table[sample->subject.kind].metric;
        for (uint64_t left = changed; left; left &= left - 1) {
                int i = __builtin_ctzll(left);
                /* Wraps where it must: the reader's sum wraps back. */
                put_value(&put, (int64_t)((uint64_t)sample->value[i] - (uint64_t)value[i]),
                          afz_pack_grain(info[i].unit));
        }
        int r = commit(pack, &put, t_ns);
        if (r < 0)
                return r;
        if (is_new) {
                memset(&pack->seen[at], 0, sizeof pack->seen[at]);
                pack->seen[at].subject = sample->subject;
                pack->subjects++;
        }
        pack->seen[at].present = present;
        for (uint64_t left = changed; left; left &= left - 1) {
                int i = __builtin_ctzll(left);
                pack->seen[at].value[i] = sample->value[i];
        }
        pack->next = at + 1;
        return 0;
}

int afz_pack_mark(struct afz_pack *pack, uint64_t t_ns, enum afz_mark_kind kind, int64_t code,
                  const char *text)
{
        struct afz_put put = room(pack);
        afz_put_number(&put, (uint64_t)kind << 1 | 1);
        put_time(&put, pack, t_ns);
        afz_put_signed(&put, code);
        afz_put_lines(&put, text, kind == AFZ_MARK_STACK || kind == AFZ_MARK_SITE,
                      AFZ_PACK_MARK_CAP);
        return commit(pack, &put, t_ns);
}
