/* Cores: time by kind, load, clock rate, throttling. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "count_of.h"
#include "sense.h"

#define MAX_CORES 1024

/* 48 bytes of /proc/stat a core at the least, and interrupts of many kilobytes behind them. */
#define STAT_BYTES (512 * 1024)

/* Clock rate and throttling are sysfs files of every core: looked at once in so many ns. */
#define SLOW_NS UINT64_C(1000000000)

/* On kernels before 5.18 the clock rate of a core that was idle takes a sleep of 10 ms each: so
 * much of one reading, and the cores that are left have their turn at the next. */
#define SLOW_BUDGET_NS UINT64_C(2000000)

struct core {
        char name[12];
        struct afz_sample slow;
};

struct state {
        const struct afz_env *env;
        int stat_fd, loadavg_fd;
        uint64_t slow_next_ns;
        unsigned slow_turn; /* the core whose slow files are next */
        unsigned slow_end;  /* behind the last core */
        bool has_frequency, has_throttle;
        struct core core[MAX_CORES];
        char buf[STAT_BYTES];
};

static void cpu_close(void *p)
{
        struct state *st = p;
        if (!st)
                return;
        if (st->stat_fd >= 0)
                close(st->stat_fd);
        if (st->loadavg_fd >= 0)
                close(st->loadavg_fd);
        free(st);
}

static int read_core_u64(const struct state *st, unsigned core, const char *file, uint64_t *ret)
{
        char path[96];
        afz_path(path, sizeof path, "devices/system/cpu/cpu%u/%s", core, file);
        return afz_env_read_u64(st->env, AFZ_ROOT_SYS, path, ret);
}

static int cpu_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        (void)target;
        struct state *st = calloc(1, sizeof *st);
        uint64_t v;
        if (!st)
                return -ENOMEM;
        st->env = env;
        st->stat_fd = afz_env_open(env, AFZ_ROOT_PROC, "stat", 0);
        st->loadavg_fd = afz_env_open(env, AFZ_ROOT_PROC, "loadavg", 0);
        if (st->stat_fd < 0) {
                int r = afz_sense_missing(st->stat_fd);
                cpu_close(st);
                return r;
        }
        st->has_frequency = read_core_u64(st, 0, "cpufreq/scaling_cur_freq", &v) == 0;
        st->has_throttle = read_core_u64(st, 0, "thermal_throttle/core_throttle_count", &v) == 0;
        *ret_state = st;
        return 0;
}

/* "user nice system idle iowait irq softirq steal guest guest_nice": the first four are always
 * there. Guest time is counted in user already. */
static int set_times(struct afz_sample *s, const struct afz_env *env, struct afz_span line)
{
        uint64_t v[8] = {0};
        int n = 0;
        uint64_t tick_ns = 1000000000U / (uint64_t)env->clock_ticks;
        while (n < 8 && afz_span_take_u64(&line, &v[n]) == 0)
                n++;
        if (n < 4)
                return -EINVAL;
        uint64_t user, irq;
        if (!__builtin_add_overflow(v[0], v[1], &user))
                afz_sample_set_scaled(s, AFZ_CPU_USER, user, tick_ns);
        afz_sample_set_scaled(s, AFZ_CPU_NICE, v[1], tick_ns);
        afz_sample_set_scaled(s, AFZ_CPU_SYSTEM, v[2], tick_ns);
        afz_sample_set_scaled(s, AFZ_CPU_IDLE, v[3], tick_ns);
        if (n > 4)
                afz_sample_set_scaled(s, AFZ_CPU_IOWAIT, v[4], tick_ns);
        if (n > 6 && !__builtin_add_overflow(v[5], v[6], &irq))
                afz_sample_set_scaled(s, AFZ_CPU_IRQ, irq, tick_ns);
        if (n > 7)
                afz_sample_set_scaled(s, AFZ_CPU_STEAL, v[7], tick_ns);
        return 0;
}

static void read_slow(struct state *st, unsigned id)
{
        uint64_t v;
        struct afz_sample *slow = &st->core[id].slow;
        slow->subject.kind = AFZ_KIND_CPU;
        slow->present = 0;
        if (st->has_frequency) {
                if (read_core_u64(st, id, "cpufreq/scaling_cur_freq", &v) == 0)
                        afz_sample_set_scaled(slow, AFZ_CPU_FREQUENCY, v, 1000);
                if (read_core_u64(st, id, "cpufreq/cpuinfo_max_freq", &v) == 0)
                        afz_sample_set_scaled(slow, AFZ_CPU_FREQUENCY_MAX, v, 1000);
        }
        if (st->has_throttle &&
            read_core_u64(st, id, "thermal_throttle/core_throttle_count", &v) == 0)
                afz_sample_set_u64(slow, AFZ_CPU_THROTTLES, v);
}

/* Whose turn it is; cores come in the order of their numbers. */
static void read_slow_turn(struct state *st, unsigned id, uint64_t since_ns)
{
        if (id < st->slow_turn || afz_env_now(st->env) - since_ns > SLOW_BUDGET_NS)
                return;
        read_slow(st, id);
        st->slow_turn = id + 1;
}

/* True when the line is a core's, shown or not. */
static bool read_core_line(struct state *st, struct afz_span line, uint64_t since_ns,
                           struct afz_batch *out)
{
        uint64_t id;
        if (afz_span_take_u64(&line, &id) < 0)
                return false;
        if (id >= MAX_CORES)
                return true;
        struct core *core = &st->core[id];
        if (!core->name[0])
                snprintf(core->name, sizeof core->name, "cpu%u", (unsigned)id);
        struct afz_sample *s =
                afz_batch_add(out, (struct afz_subject){AFZ_KIND_CPU, id, 0}, core->name);
        if (!s)
                return true;
        if (set_times(s, st->env, line) < 0) {
                out->count--;
                return false;
        }
        st->slow_end = (unsigned)id + 1;
        read_slow_turn(st, (unsigned)id, since_ns);
        afz_sample_merge(s, &core->slow);
        return true;
}

/* Of all cores together: how often they were held down, and their mean clocks. */
static void set_slow_of_all(const struct afz_batch *out, struct afz_sample *all)
{
        static const struct {
                enum afz_metric metric;
                bool mean;
        } rows[] = {{AFZ_CPU_THROTTLES, false},
                    {AFZ_CPU_FREQUENCY, true},
                    {AFZ_CPU_FREQUENCY_MAX, true}};
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                uint64_t sum = 0, count = 0, v;
                for (size_t k = 0; k < out->count; k++)
                        if (out->sample[k].subject.id != AFZ_CPU_ALL &&
                            afz_sample_get_u64(&out->sample[k], rows[i].metric, &v)) {
                                sum += v;
                                count++;
                        }
                if (count > 0)
                        afz_sample_set_u64(all, rows[i].metric, rows[i].mean ? sum / count : sum);
        }
}

static void set_load(struct state *st, struct afz_sample *all)
{
        char buf[128];
        uint64_t v;
        ssize_t n = st->loadavg_fd >= 0 ? afz_fd_read_record(st->loadavg_fd, buf, sizeof buf) : -1;
        struct afz_span text = {buf, n > 0 ? (size_t)n : 0};
        static const enum afz_metric to[] = {AFZ_CPU_LOAD1, AFZ_CPU_LOAD5, AFZ_CPU_LOAD15};
        for (int i = 0; i < 3 && afz_span_take_hundredths(&text, &v) == 0; i++)
                afz_sample_set_u64(all, to[i], v);
}

static int cpu_read(void *p, struct afz_batch *out)
{
        static const struct afz_key keys[] = {
                {"ctxt", AFZ_CPU_SWITCHES, 0},
                {"processes", AFZ_CPU_FORKS, 0},
                {"procs_running", AFZ_CPU_RUNNING, 0},
                {"procs_blocked", AFZ_CPU_BLOCKED, 0},
        };
        struct state *st = p;
        ssize_t n = afz_fd_read_record(st->stat_fd, st->buf, sizeof st->buf);
        if (n < 0)
                return (int)n;
        struct afz_sample *all =
                afz_batch_add(out, (struct afz_subject){AFZ_KIND_CPU, AFZ_CPU_ALL, 0}, "all");
        if (!all)
                return -ENOSPC;
        if (out->t_ns >= st->slow_next_ns && st->slow_turn >= st->slow_end) {
                st->slow_next_ns = out->t_ns + SLOW_NS;
                st->slow_turn = 0;
        }
        st->slow_end = 0;
        uint64_t since_ns = afz_env_now(st->env), cores = 0;
        struct afz_span text = {st->buf, (size_t)n}, line;
        while (afz_span_starts(text, "cpu") && afz_span_take_line(&text, &line) == 0) {
                (void)afz_span_take_prefix(&line, "cpu");
                if (afz_span_starts(line, " "))
                        (void)set_times(all, st->env, line);
                else
                        cores += read_core_line(st, line, since_ns, out);
        }
        if (cores > 0)
                afz_sample_set_u64(all, AFZ_CPU_CORES, cores);
        afz_span_each_key(text, keys, AFZ_COUNT_OF(keys), afz_sample_set_key, all);
        set_slow_of_all(out, all);
        set_load(st, all);
        return 0;
}

const struct afz_sense afz_sense_cpu = {
        .name = "cpu",
        .what = "cores: time by kind, load, clock rate, throttling",
        .every_ns = 500000000, /* 500 ms: time is counted in ticks of 10 ms, less is noise */
        .max_samples = MAX_CORES + 1,
        .absent = "/proc/stat is not there: the cores cannot be seen",
        .denied = "/proc/stat may not be read",
        .open = cpu_open,
        .read = cpu_read,
        .close = cpu_close,
};
