#include "checks.h"
#include "count_of.h"

/* In the order in which they are shown: what it is, what can be seen, what can be done, what is
 * risky. */
const struct afz_check afz_check_table[] = {
        {"machine", "Machine", "machine", afz_check_machine},
        {"kernel", "Machine", "kernel", afz_check_kernel},
        {"wsl", "Machine", "WSL", afz_check_wsl},

        {"processes", "Sight", "other processes", afz_check_processes},
        {"ptrace", "Sight", "stacks (Yama)", afz_check_ptrace},
        {"psi", "Sight", "pressure (PSI)", afz_check_psi},
        {"kernel-log", "Sight", "kernel log", afz_check_kernel_log},
        {"memory-reading", "Sight", "reading memory", afz_check_memory_reading},
        {"probe", "Sight", "probe", afz_check_probe},
        {"python", "Sight", "lines of Python", afz_check_python},
        {"native-lines", "Sight", "lines of C, C++", afz_check_native_lines},

        {"cgroup", "Protection", "cgroup layout", afz_check_cgroup},
        {"delegation", "Protection", "delegation", afz_check_delegation},
        {"memory-limit", "Protection", "limit set on us", afz_check_memory_limit},
        {"systemd", "Protection", "systemd", afz_check_systemd},
        {"linger", "Protection", "lingering", afz_check_linger},
        {"oom-daemons", "Protection", "other OOM killers", afz_check_oom_daemons},
        {"tier", "Protection", "tier", afz_check_tier},
        {"trial-scope", "Protection", "tier scope", afz_check_trial_scope},
        {"trial-cgroup2", "Protection", "tier cgroup2", afz_check_trial_cgroup2},
        {"trial-cgroup1", "Protection", "tier cgroup1", afz_check_trial_cgroup1},
        {"trial-none", "Protection", "tier none", afz_check_trial_none},

        {"swap", "Memory", "swap", afz_check_swap},
        {"swappiness", "Memory", "swappiness", afz_check_swappiness},
        {"shm", "Memory", "/dev/shm", afz_check_shm},
        {"overcommit", "Memory", "overcommit", afz_check_overcommit},
        {"huge-pages", "Memory", "huge pages", afz_check_huge_pages},

        {"open-files", "Limits", "open files", afz_check_open_files},
        {"locked-memory", "Limits", "locked memory", afz_check_locked_memory},
        {"process-count", "Limits", "processes", afz_check_process_count},
        {"address-space", "Limits", "address space", afz_check_address_space},

        {"disk-home", "Disk", "home", afz_check_disk_home},
        {"disk-tmp", "Disk", "temporary files", afz_check_disk_tmp},
        {"disk-state", "Disk", "recordings", afz_check_disk_state},

        {"gpu", "GPU", "GPUs", afz_check_gpu},
        {"gpu-driver", "GPU", "NVIDIA driver", afz_check_gpu_driver},
        {"gpu-access", "GPU", "device nodes", afz_check_gpu_access},
        {"gpu-leftover", "GPU", "leftover VRAM", afz_check_gpu_leftover},
};
const size_t afz_check_count = AFZ_COUNT_OF(afz_check_table);

_Static_assert(AFZ_COUNT_OF(afz_check_table) <= AFZ_CHECKS_MAX, "raise AFZ_CHECKS_MAX");
