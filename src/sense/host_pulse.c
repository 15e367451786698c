#include "host_pulse.h"

#include <unistd.h>

#include "count_of.h"
#include "psi_parse.h"
#include "sense.h"

/* Longer than any line of /proc/vmstat. */
#define VMSTAT_LINE 64

static const struct afz_key meminfo_keys[] = {
        {"MemAvailable", AFZ_PULSE_AVAILABLE, 0},
        {"SwapFree", AFZ_PULSE_SWAP_FREE, 0},
};

static const struct afz_key vmstat_keys[] = {{"pswpin", AFZ_PULSE_SWAP_INS, 0}};

static void set(void *pulse, int figure, uint64_t value)
{
        afz_pulse_set(pulse, (enum afz_pulse_figure)figure, value);
}

int afz_host_pulse_open(const struct afz_env *env, struct afz_host_pulse *ret)
{
        int fd = afz_env_open(env, AFZ_ROOT_PROC, "meminfo", 0);
        if (fd < 0)
                return afz_sense_missing(fd);
        *ret = (struct afz_host_pulse){
                .meminfo_fd = fd,
                .pressure_fd = afz_env_open(env, AFZ_ROOT_PROC, "pressure/memory", 0),
                .vmstat_fd = afz_env_open(env, AFZ_ROOT_PROC, "vmstat", 0),
        };
        return 0;
}

void afz_host_pulse_close(struct afz_host_pulse *pulse)
{
        const int fd[] = {pulse->meminfo_fd, pulse->pressure_fd, pulse->vmstat_fd};
        for (size_t i = 0; i < AFZ_COUNT_OF(fd); i++)
                if (fd[i] >= 0)
                        close(fd[i]);
        *pulse = (struct afz_host_pulse){-1, -1, -1};
}

int afz_host_pulse_read(const struct afz_host_pulse *pulse, bool with_paging, struct afz_pulse *ret)
{
        char buf[16384];
        struct afz_psi psi;
        ssize_t n = afz_fd_read_record(pulse->meminfo_fd, buf, sizeof buf);
        if (n < 0)
                return (int)n;
        afz_span_each_key((struct afz_span){buf, (size_t)n}, meminfo_keys,
                          AFZ_COUNT_OF(meminfo_keys), set, ret);
        n = pulse->pressure_fd >= 0 ? afz_fd_read_record(pulse->pressure_fd, buf, sizeof buf) : -1;
        if (n > 0 && afz_psi_parse((struct afz_span){buf, (size_t)n}, &psi) == 0 && psi.has_full)
                afz_pulse_set(ret, AFZ_PULSE_STALL, psi.full.total_ns);
        n = with_paging && pulse->vmstat_fd >= 0
                    ? afz_fd_read_lines(pulse->vmstat_fd, buf, sizeof buf, VMSTAT_LINE)
                    : -1;
        if (n > 0)
                afz_span_each_key((struct afz_span){buf, (size_t)n}, vmstat_keys,
                                  AFZ_COUNT_OF(vmstat_keys), set, ret);
        return 0;
}
