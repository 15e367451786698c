#ifndef AFZ_METRIC_H
#define AFZ_METRIC_H
/* What can be known: the kinds of subject, and for each kind its metrics. The rows stand in
 * metric_list.h; this header makes constants of them and metric.c the table.
 *
 * A metric's number is its kind times 256 plus its place in the kind, so that the kind is known
 * from the number, and a sample need only hold the metrics of its own kind.
 */
#include <stdint.h>

#include "metric_list.h"

enum afz_kind {
        AFZ_KIND_NONE,
        AFZ_KIND_HOST,     /* the machine: memory */
        AFZ_KIND_VM,       /* the machine: paging, reclaim and OOM kills */
        AFZ_KIND_PSI,      /* the machine: pressure */
        AFZ_KIND_CPU,      /* a core, or (id AFZ_CPU_ALL) all of them */
        AFZ_KIND_JOB,      /* the job's tree, added up */
        AFZ_KIND_PROC,     /* a process of the job: id is the pid, start its start time */
        AFZ_KIND_CGROUP,   /* a cgroup of the job */
        AFZ_KIND_DISK,     /* a block device: id is major << 20 | minor */
        AFZ_KIND_FS,       /* a mounted file system: id is the mount id */
        AFZ_KIND_NET,      /* a network interface */
        AFZ_KIND_THERMAL,  /* a thermometer */
        AFZ_KIND_POWER,    /* a supply, a battery, a RAPL domain */
        AFZ_KIND_GPU,      /* a GPU or MIG instance */
        AFZ_KIND_GPU_PROC, /* a process on a GPU: id is gpu << 32 | pid */
        AFZ_KIND_SELF,     /* Antifreeze itself */
        AFZ_KIND_HOLD,     /* the guard's own fast looks at a run */
        AFZ_KIND_SITE,     /* a place that allocates: id is a hash of its stack; 0: all others */
        AFZ_KIND_INSIDE,   /* a process of the job, as its probe tells it: id is the pid */
        AFZ_KIND_COUNT
};

#define AFZ_CPU_ALL UINT64_MAX

enum afz_unit {
        AFZ_UNIT_BYTES,
        AFZ_UNIT_NS,
        AFZ_UNIT_COUNT,
        AFZ_UNIT_PERMYRIAD,  /* hundredths of a per cent */
        AFZ_UNIT_HUNDREDTHS, /* of one */
        AFZ_UNIT_HZ,
        AFZ_UNIT_MILLICELSIUS,
        AFZ_UNIT_MILLIWATTS,
        AFZ_UNIT_MICROJOULES,
        AFZ_UNIT_BYTES_PER_S,
        AFZ_UNIT_BITS_PER_S,
        AFZ_UNIT_FLAG,  /* 0 or 1 */
        AFZ_UNIT_STATE, /* a letter */
        AFZ_UNIT_CODE,  /* a number that is no amount: a pid, a mode */
        AFZ_UNITS
};

enum afz_metric_type { AFZ_GAUGE, AFZ_COUNTER, AFZ_FACT };

/* clang-format off: one kind a line, whatever it makes of macros that hold commas. */
#define AFZ_METRIC_ENUM_(kind, id, ...) AFZ_##kind##_##id,
#define AFZ_METRIC_KIND_(kind)                                                                     \
        AFZ_##kind##_FIRST_ = (AFZ_KIND_##kind << 8) - 1, AFZ_##kind##_METRICS(AFZ_METRIC_ENUM_)

enum afz_metric {
        AFZ_METRIC_KIND_(HOST) AFZ_METRIC_KIND_(VM) AFZ_METRIC_KIND_(PSI) AFZ_METRIC_KIND_(CPU)
                AFZ_METRIC_KIND_(JOB) AFZ_METRIC_KIND_(PROC) AFZ_METRIC_KIND_(CGROUP)
                        AFZ_METRIC_KIND_(DISK) AFZ_METRIC_KIND_(FS) AFZ_METRIC_KIND_(NET)
                                AFZ_METRIC_KIND_(THERMAL) AFZ_METRIC_KIND_(POWER)
                                        AFZ_METRIC_KIND_(GPU) AFZ_METRIC_KIND_(GPU_PROC)
                                                AFZ_METRIC_KIND_(SELF) AFZ_METRIC_KIND_(HOLD)
                                                        AFZ_METRIC_KIND_(SITE)
                                                                AFZ_METRIC_KIND_(INSIDE)
};
/* clang-format on */

#define AFZ_METRICS_PER_KIND 64

static inline enum afz_kind afz_metric_kind(enum afz_metric m)
{
        return (enum afz_kind)((unsigned)m >> 8);
}

static inline unsigned afz_metric_index(enum afz_metric m)
{
        return (unsigned)m & 0xffU;
}

struct afz_metric_info {
        enum afz_metric id;
        const char *name; /* as scripts see it; ends in the unit */
        enum afz_unit unit;
        enum afz_metric_type type;
        const char *meaning;
};

struct afz_kind_info {
        const char *name;   /* "host", "proc": one word */
        const char *plural; /* its key in JSON where there can be many; NULL: only ever one */
        const char *what;
        const struct afz_metric_info *metric;
        unsigned metrics;
};

extern const struct afz_kind_info afz_kind_table[AFZ_KIND_COUNT];

static inline const struct afz_metric_info *afz_metric_info(enum afz_metric m)
{
        return &afz_kind_table[afz_metric_kind(m)].metric[afz_metric_index(m)];
}

/* "gauge", "counter", "fact" */
const char *afz_metric_type_name(enum afz_metric_type type);

/* "bytes", "ns", ...: the words of the units, as metric names end. "" for STATE and CODE. */
const char *afz_unit_name(enum afz_unit unit);

#endif
