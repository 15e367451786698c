#include "metric.h"

#include "count_of.h"

#define ROW(kind, id, name_, unit_, type_, meaning_)                                               \
        {AFZ_##kind##_##id, name_, AFZ_UNIT_##unit_, AFZ_##type_, meaning_},
#define TABLE(kind)                                                                                \
        static const struct afz_metric_info kind##_rows[] = {AFZ_##kind##_METRICS(ROW)};           \
        _Static_assert(AFZ_COUNT_OF(kind##_rows) <= AFZ_METRICS_PER_KIND,                          \
                       "too many metrics in one kind")

TABLE(HOST);
TABLE(VM);
TABLE(PSI);
TABLE(CPU);
TABLE(JOB);
TABLE(PROC);
TABLE(CGROUP);
TABLE(DISK);
TABLE(FS);
TABLE(NET);
TABLE(THERMAL);
TABLE(POWER);
TABLE(GPU);
TABLE(GPU_PROC);
TABLE(SELF);
TABLE(HOLD);
TABLE(SITE);
TABLE(INSIDE);

#define KIND(kind, name_, plural_, what_)                                                          \
        [AFZ_KIND_##kind] = {name_, plural_, what_, kind##_rows, AFZ_COUNT_OF(kind##_rows)}

const struct afz_kind_info afz_kind_table[AFZ_KIND_COUNT] = {
        [AFZ_KIND_NONE] = {"none", 0, "nothing", 0, 0},
        KIND(HOST, "host", 0, "the machine's memory"),
        KIND(VM, "vm", 0, "pages of the machine that come and go"),
        KIND(PSI, "psi", 0, "the machine's pressure stall information"),
        KIND(CPU, "cpu", "cpus", "a core, or the machine's cores added up"),
        KIND(JOB, "job", 0, "the job: its whole process tree added up"),
        KIND(PROC, "process", "processes", "a process of the job"),
        KIND(CGROUP, "cgroup", "cgroups", "a cgroup of the job"),
        KIND(DISK, "disk", "disks", "a block device"),
        KIND(FS, "filesystem", "filesystems", "a file system that the job uses"),
        KIND(NET, "interface", "interfaces", "a network interface"),
        KIND(THERMAL, "thermometer", "thermometers", "a thermometer"),
        KIND(POWER, "supply", "supplies", "a power supply, battery or RAPL domain"),
        KIND(GPU, "gpu", "gpus", "a GPU or MIG instance"),
        KIND(GPU_PROC, "gpu_process", "gpu_processes", "a process on a GPU"),
        KIND(SELF, "self", 0, "Antifreeze's own cost"),
        KIND(HOLD, "hold", 0, "a run as its guard sees it"),
        KIND(SITE, "site", "sites", "a place of the program that allocates"),
        KIND(INSIDE, "inside", "insides", "a process of the job, as its probe tells it"),
};

const char *afz_metric_type_name(enum afz_metric_type type)
{
        static const char *const name[] = {
                [AFZ_GAUGE] = "gauge",
                [AFZ_COUNTER] = "counter",
                [AFZ_FACT] = "fact",
        };
        return (unsigned)type < AFZ_COUNT_OF(name) ? name[type] : "";
}

const char *afz_unit_name(enum afz_unit unit)
{
        static const char *const name[AFZ_UNITS] = {
                [AFZ_UNIT_BYTES] = "bytes",
                [AFZ_UNIT_NS] = "ns",
                [AFZ_UNIT_COUNT] = "count",
                [AFZ_UNIT_PERMYRIAD] = "permyriad",
                [AFZ_UNIT_HUNDREDTHS] = "hundredths",
                [AFZ_UNIT_HZ] = "hz",
                [AFZ_UNIT_MILLICELSIUS] = "millicelsius",
                [AFZ_UNIT_MILLIWATTS] = "milliwatts",
                [AFZ_UNIT_MICROJOULES] = "microjoules",
                [AFZ_UNIT_BYTES_PER_S] = "bytes_per_s",
                [AFZ_UNIT_BITS_PER_S] = "bits_per_s",
                [AFZ_UNIT_FLAG] = "flag",
                [AFZ_UNIT_STATE] = "",
                [AFZ_UNIT_CODE] = "",
        };
        return (unsigned)unit < AFZ_UNITS ? name[unit] : "";
}
