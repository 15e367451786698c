/* doctor's single checks, each over a table of what it may meet. */
#include "test_doctor_machine.h"

#define OK      AFZ_FINDING_OK
#define WARN    AFZ_FINDING_WARN
#define MISSING AFZ_FINDING_MISSING
#define UNKNOWN AFZ_FINDING_UNKNOWN
#define SKIP    AFZ_FINDING_SKIP

/* One file set to one text, and what a check must then say. NULL removes the file. */
static const struct {
        const char *path, *text, *id;
        enum afz_finding_level level;
        const char *words;
} one_file[] = {
        {"proc/sys/kernel/osrelease", "5.4.0-generic\n", "kernel", OK, "5.4.0-generic"},
        {"proc/sys/kernel/osrelease", "5.3.18-lp152\n", "kernel", WARN, "older than 5.4"},
        {"proc/sys/kernel/osrelease", "6.12+\n", "kernel", OK, "6.12+"},
        {"proc/sys/kernel/osrelease", "six.one\n", "kernel", UNKNOWN, ""},
        {"proc/sys/kernel/yama/ptrace_scope", "1\n", "ptrace", OK, "that Antifreeze started"},
        {"proc/sys/kernel/yama/ptrace_scope", "2\n", "ptrace", WARN, "ptrace_scope=1"},
        {"proc/sys/kernel/yama/ptrace_scope", "3\n", "ptrace", WARN, "reboot"},
        {"proc/sys/kernel/yama/ptrace_scope", NULL, "ptrace", OK, "no Yama"},
        {"proc/pressure", NULL, "psi", MISSING, "psi=1"},
        {"dev/kmsg", NULL, "kernel-log", MISSING, "not there"},
        {"proc/42/status", "Cpus_allowed_list:\t0,2-3\n", "machine", OK, "3 of 8 cores"},
        {"proc/42/status", "Cpus_allowed_list:\t0-127\n", "machine", OK, ", 8 cores"},
        {"sys/devices/system/cpu/online", "0-\n", "machine", OK, "8 cores"},
        {"proc/cpuinfo", "flags\t: fpu hypervisor\n", "machine", OK, "in a virtual machine"},
        {"sys/class/dmi/id/sys_vendor", "QEMU\n", "machine", OK, "on bare metal"},
        {"proc/sys/vm/overcommit_memory", "1\n", "overcommit", OK, "never fit"},
        {"proc/sys/vm/overcommit_memory", "2\n", "overcommit", WARN, "overcommit_memory=0"},
        {"proc/sys/vm/swappiness", "0\n", "swappiness", WARN, "60"},
        {"proc/sys/vm/swappiness", "180\n", "swappiness", WARN, "zram"},
        {"proc/swaps", "Filename Type Size Used Priority\n", "swap", MISSING, "swapon"},
        {"proc/swaps", "Filename Type\n/dev/zram0 partition 8126460 0 100\n", "swap", WARN, "zram"},
        {"proc/swaps", "Filename Type\n/swapfile file 1048572 0 -2\n", "swap", WARN,
         "1.0G on disk"},
        {"proc/swaps", "Filename Type\n/dev/zram0 partition 4194300 0 100\n/s file 8388604 0 -2\n",
         "swap", OK, "8.0G on disk, 4.0G on zram"},
        {"sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", "huge-pages", OK,
         "always"},
        {"sys/kernel/mm/transparent_hugepage/", NULL, "huge-pages", OK, "not in this kernel"},
        {"proc/42/limits", LIMITS("1024", "524288"), "open-files", WARN, "ulimit -n 65536"},
        {"proc/42/limits", LIMITS("1024", "2048"), "open-files", WARN, "ulimit -n 2048"},
        {"proc/42/limits", LIMITS("1024", "1024"), "open-files", WARN, "limits.d"},
        {"proc/42/limits", LIMITS("unlimited", "unlimited"), "open-files", OK, "unlimited"},
        {"proc/42/limits", "Max locked memory  65536  65536  bytes\n", "locked-memory", WARN,
         "memlock"},
        {"proc/42/limits", "Max locked memory  65536  unlimited  bytes\n", "locked-memory", WARN,
         "ulimit -l"},
        {"proc/42/limits", "Max processes  1024  4096  processes\n", "process-count", WARN, "-Hu"},
        {"proc/42/limits", "Max address space  8589934592  8589934592  bytes\n", "address-space",
         WARN, "8.0G"},
        {"fs_space", "8321499136 1 104857600 10 9 /dev/shm\n", "shm", WARN, "100M left of 7.8G"},
        {"fs_space", "250000000000 1 1048576 10 9000 /\n", "disk-home", WARN, "1.0M left on /"},
        {"fs_space", "250000000000 1 80000000000 1000000 3 /\n", "disk-state", WARN,
         "3 more files"},
        {"fs_space", "8321499136 1 8321499136 0 0 /tmp\n", "disk-tmp", OK, "takes RAM"},
        {"sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n", "gpu", UNKNOWN, "1 Intel"},
};

static void one_file_one_finding(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof one_file / sizeof *one_file; i++) {
                struct machine m;
                machine_open(&m, laptop_files);
                if (one_file[i].text)
                        afz_fixture_set(m.files, one_file[i].path, one_file[i].text);
                else
                        afz_fixture_remove(m.files, one_file[i].path);
                machine_look(&m);
                expect(&m, one_file[i].id, one_file[i].level, one_file[i].words);
                machine_close(&m);
        }
}

static void a_small_machine_has_a_small_shm(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        afz_fixture_set(m.files, "fs_space", "503316480 503316480 503316480 10 9 /dev/shm\n");
        machine_look(&m);
        expect(&m, "shm", WARN, "480M");
        afz_fixture_set(m.files, "proc/meminfo", "MemTotal:         983040 kB\n");
        machine_look(&m);
        expect(&m, "shm", OK, "480M");
        machine_close(&m);
}

static void psi_switched_off_is_told(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        afz_fixture_remove(m.files, "proc/pressure");
        afz_fixture_set(m.files, "proc/cmdline", "root=/dev/sda psi=0 quiet\n");
        machine_look(&m);
        expect(&m, "psi", MISSING, "switched off with psi=0");
        afz_fixture_set(m.files, "proc/cmdline", "root=/dev/sda xpsi=0\n");
        machine_look(&m);
        expect(&m, "psi", MISSING, "not offered");
        machine_close(&m);
}

static void hidepid(void **state)
{
        (void)state;
        static const struct {
                const char *options;
                uid_t uid;
                enum afz_finding_level level;
        } row[] = {
                {"rw", 1000, OK},
                {"rw,hidepid=0", 1000, OK},
                {"rw,hidepid=off", 1000, OK},
                {"rw,hidepid=2", 1000, WARN},
                {"rw,gid=27,hidepid=invisible", 1000, WARN},
                {"rw,hidepid=2", 0, OK},
        };
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                struct machine m;
                char mounts[512];
                machine_open(&m, laptop_files);
                snprintf(mounts, sizeof mounts,
                         "27 1 254:1 / / rw - ext4 /dev/sda1 rw\n"
                         "22 27 0:21 / /proc rw,relatime shared:5 - proc proc %s\n",
                         row[i].options);
                afz_fixture_set(m.files, "proc/42/mountinfo", mounts);
                m.in.uid = row[i].uid;
                machine_look(&m);
                expect(&m, "processes", row[i].level, "");
                expect(&m, "oom-daemons", row[i].level == OK ? OK : UNKNOWN, "");
                machine_close(&m);
        }
}

static void managers(void **state)
{
        (void)state;
        static const struct {
                int answer;
                bool bus;
                enum afz_finding_level level;
                const char *words;
                enum afz_tier tier;
        } row[] = {
                {0, true, OK, "answers", AFZ_TIER_SCOPE},
                {-ENODATA, true, OK, "no libsystemd", AFZ_TIER_SCOPE},
                {-ENODATA, false, WARN, "dbus-user-session", AFZ_TIER_NONE},
                {-ETIMEDOUT, true, WARN, "gives no answer", AFZ_TIER_NONE},
                {-ECONNREFUSED, true, WARN, "XDG_RUNTIME_DIR", AFZ_TIER_NONE},
        };
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                struct machine m;
                machine_open(&m, laptop_files);
                m.manager = row[i].answer;
                m.exist[1] = row[i].bus ? "/run/user/1000/bus" : "/elsewhere";
                machine_look(&m);
                expect(&m, "systemd", row[i].level, row[i].words);
                assert_int_equal(m.d.tier, row[i].tier);
                machine_close(&m);
        }
}

#define HELD                                                                                       \
        {                                                                                          \
                .opened = 1, .braked = 1, .limited = 1, .killed = 1, .clean = 1,                   \
                .took_ns = 40500000                                                                \
        }
#define ABSENT                                                                                     \
        {                                                                                          \
                .why = "not to be found"                                                           \
        }
#define LEAKY                                                                                      \
        {                                                                                          \
                .opened = 1, .braked = 1, .killed = 1, .clean = 1,                                 \
                .why = "the limit does not stop it"                                                \
        }
#define UNCLEAN                                                                                    \
        {                                                                                          \
                .opened = 1, .braked = 1, .limited = 1, .killed = 1,                               \
                .why = "something is left of it"                                                   \
        }

static void tiers_are_proved(void **state)
{
        (void)state;
        static const struct {
                struct afz_trial trial[AFZ_TIER_COUNT];
                int tried;
                enum afz_tier tier;
                enum afz_finding_level level, scope, cgroup2, none;
                const char *words;
        } row[] = {
                {{[AFZ_TIER_SCOPE] = HELD},
                 1,
                 AFZ_TIER_SCOPE,
                 OK,
                 SKIP,
                 SKIP,
                 SKIP,
                 "scope proved: limited, braked, killed in 41 ms"},
                {{[AFZ_TIER_SCOPE] = ABSENT, [AFZ_TIER_CGROUP2] = HELD},
                 2,
                 AFZ_TIER_CGROUP2,
                 OK,
                 MISSING,
                 SKIP,
                 SKIP,
                 "cgroup2 proved: "},
                {{[AFZ_TIER_SCOPE] = LEAKY,
                  [AFZ_TIER_CGROUP2] = UNCLEAN,
                  [AFZ_TIER_CGROUP1] = HELD},
                 3,
                 AFZ_TIER_CGROUP1,
                 OK,
                 WARN,
                 WARN,
                 SKIP,
                 "cgroup1 proved: "},
                {{[AFZ_TIER_SCOPE] = ABSENT,
                  [AFZ_TIER_CGROUP2] = ABSENT,
                  [AFZ_TIER_CGROUP1] = ABSENT,
                  [AFZ_TIER_NONE] = HELD},
                 4,
                 AFZ_TIER_NONE,
                 MISSING,
                 MISSING,
                 MISSING,
                 SKIP,
                 "stopped, not limited"},
                /* Nothing holds: what the files promise is all there is to say. */
                {{[AFZ_TIER_SCOPE] = ABSENT,
                  [AFZ_TIER_CGROUP2] = ABSENT,
                  [AFZ_TIER_CGROUP1] = ABSENT,
                  [AFZ_TIER_NONE] = LEAKY},
                 4,
                 AFZ_TIER_SCOPE,
                 WARN,
                 MISSING,
                 MISSING,
                 WARN,
                 "no tier held"},
        };
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                struct machine m;
                machine_open(&m, laptop_files);
                m.in.effects.trial = fake_trial;
                memcpy(m.trial, row[i].trial, sizeof m.trial);
                machine_look(&m);
                expect(&m, "tier", row[i].level, row[i].words);
                expect(&m, "trial-scope", row[i].scope, row[i].trial[AFZ_TIER_SCOPE].why);
                expect(&m, "trial-cgroup2", row[i].cgroup2, row[i].trial[AFZ_TIER_CGROUP2].why);
                expect(&m, "trial-none", row[i].none, row[i].trial[AFZ_TIER_NONE].why);
                assert_int_equal(m.tried, row[i].tried);
                assert_int_equal(m.d.trials, row[i].tried);
                assert_int_equal(m.d.tier, row[i].tier);
                assert_int_equal(m.d.proved, i + 1 < sizeof row / sizeof *row);
                machine_close(&m);
        }
}

static void what_cannot_be_tried_is_said(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        m.in.effects.trial = fake_trial;
        m.trial_err = -EAGAIN;
        machine_look(&m);
        expect(&m, "tier", WARN, "no tier held");
        expect(&m, "trial-none", MISSING, "could not be tried");
        assert_false(m.d.proved);

        /* A mute manager is waited for once and not twice. */
        m.trial_err = 0;
        m.tried = 0;
        m.manager = -ETIMEDOUT;
        m.trial[AFZ_TIER_CGROUP2] = (struct afz_trial)HELD;
        machine_look(&m);
        expect(&m, "trial-scope", MISSING, "gives no answer");
        expect(&m, "tier", OK, "cgroup2 proved");
        assert_int_equal(m.tried, 1);
        machine_close(&m);
}

/* What holds on this machine says nothing of the one that was recorded. */
static void recordings_are_not_tried(void **state)
{
        (void)state;
        struct machine m;
        struct afz_doctor_input live;
        machine_open(&m, laptop_files);
        afz_doctor_input_live(m.in.env, &live);
        m.in.effects.trial = live.effects.trial;
        machine_look(&m);
        expect(&m, "trial-none", MISSING, "could not be tried");
        assert_false(m.d.proved);
        machine_close(&m);
}

static void the_runtime_folder_may_be_elsewhere(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        m.variables[2] = "XDG_RUNTIME_DIR=/run/mine";
        machine_look(&m);
        expect(&m, "systemd", MISSING, "boot with systemd");
        m.exist[3] = "/run/systemd/system";
        machine_look(&m);
        expect(&m, "systemd", MISSING, "systemctl start user@1000");
        m.exist[0] = "/run/mine/systemd/private";
        m.exist[1] = "/run/mine/bus";
        m.exist[2] = NULL;
        machine_look(&m);
        expect(&m, "systemd", OK, "answers");
        expect(&m, "linger", WARN, "loginctl enable-linger");
        machine_close(&m);
}

static void root_asks_the_system_manager(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        m.in.uid = 0;
        m.exist[0] = "/run/systemd/private";
        machine_look(&m);
        expect(&m, "systemd", OK, "the system manager answers");
        expect(&m, "linger", SKIP, "");
        assert_int_equal(m.system_asked, 1);
        assert_int_equal(m.d.tier, AFZ_TIER_SCOPE);
        machine_close(&m);
}

/* Nothing on a network mount may be touched: a dead server would hold us for ever. */
static void network_mounts_are_left_alone(void **state)
{
        (void)state;
        static const struct {
                const char *home, *link;
        } row[] = {
                {"HOME=/mnt/server/ada", NULL},
                {"HOME=/home/ada", "/home -> /mnt/server"},
                {"HOME=/home/ada", "/home -> mnt/server"},
                {"HOME=/a/b", "/a -> /c"},
        };
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                struct machine m;
                machine_open(&m, laptop_files);
                m.variables[0] = row[i].home;
                m.links[0] = row[i].link;
                if (i == 3)
                        m.links[1] = "/c/b -> ../mnt/x", m.links[2] = "/c/.. -> /mnt/server";
                machine_look(&m);
                if (i < 3)
                        expect(&m, "disk-home", UNKNOWN, "nfs4");
                assert_null(strstr(m.linked, "/mnt/server"));
                machine_close(&m);
        }
        struct machine m;
        machine_open(&m, laptop_files);
        m.links[0] = "/home -> /home";
        machine_look(&m);
        expect(&m, "disk-home", UNKNOWN, "which disk");
        machine_close(&m);
}

static const struct {
        const char *what;
        struct afz_gpu_status nvidia;
        enum afz_finding_level level;
        const char *words;
} drivers[] = {
        {"none", {.state = AFZ_GPU_ABSENT}, SKIP, ""},
        {"well",
         {.state = AFZ_GPU_OK, .driver = "550.54", .nvml = "12.550.54", .cuda_version = 12040},
         OK,
         "CUDA up to 12.4"},
        {"mismatch",
         {.state = AFZ_GPU_MISMATCH, .module = "535.161", .nvml = "12.550.54"},
         WARN,
         "535.161, the library is 12.550.54"},
        {"no library", {.state = AFZ_GPU_NO_LIBRARY, .module = "550.54"}, MISSING, "libnvidia-ml"},
        {"stuck", {.state = AFZ_GPU_STUCK, .call = "nvmlInit_v2"}, WARN, "nvmlInit_v2"},
        {"its helper died", {.state = AFZ_GPU_STARTING}, WARN, "died"},
        {"failed", {.state = AFZ_GPU_FAILED, .error = "Insufficient\nPower"}, WARN, "Insufficient"},
        {"died", {.state = AFZ_GPU_DIED}, WARN, "died"},
        {"no device", {.state = AFZ_GPU_NO_DEVICE, .driver = "550.54"}, WARN, "sees no GPU"},
};

static void gpu_drivers(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
                struct machine m;
                struct afz_gpu_facts gpu = {.nvidia = drivers[i].nvidia};
                machine_open(&m, laptop_files);
                m.in.gpu = &gpu;
                machine_look(&m);
                expect(&m, "gpu-driver", drivers[i].level, drivers[i].words);
                expect(&m, "gpu", drivers[i].level == SKIP ? OK : UNKNOWN, "");
                if (gpu.nvidia.state == AFZ_GPU_STARTING) {
                        gpu.late = true;
                        machine_look(&m);
                        expect(&m, "gpu-driver", WARN, "hangs");
                }
                m.in.gpu = NULL;
                machine_look(&m);
                expect(&m, "gpu-driver", UNKNOWN, "not asked");
                machine_close(&m);
        }
}

static void leftover_vram(void **state)
{
        (void)state;
        const struct afz_gpu_fact mem = {.name = "NVIDIA H200",
                                         .parent = -1,
                                         .has_memory = true,
                                         .total_bytes = 139 * GIB,
                                         .has_processes = true};
        struct {
                uint64_t used;
                uint32_t processes, unseen;
                bool has_processes;
                enum afz_finding_level level;
                const char *words;
        } row[] = {
                {0, 0, 0, true, OK, ""},
                {600 * MIB, 0, 0, true, OK, ""},
                {20 * GIB, 0, 0, true, WARN, "20G in use, but no process"},
                {20 * GIB, 2, 0, true, OK, ""},
                {20 * GIB, 2, 1, true, WARN, "pid 777"},
                {20 * GIB, 0, 0, false, UNKNOWN, "not told"},
        };
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                struct machine m;
                struct afz_gpu_facts gpu = {.nvidia = {.state = AFZ_GPU_OK}, .count = 1};
                gpu.gpu[0] = mem;
                gpu.gpu[0].used_bytes = row[i].used;
                gpu.gpu[0].processes = row[i].processes;
                gpu.gpu[0].has_processes = row[i].has_processes;
                gpu.gpu[0].unseen = row[i].unseen;
                gpu.gpu[0].unseen_pid = 777;
                machine_open(&m, laptop_files);
                m.in.gpu = &gpu;
                machine_look(&m);
                expect(&m, "gpu", OK, "1: NVIDIA H200 139G");
                expect(&m, "gpu-leftover", row[i].level, row[i].words);
                machine_close(&m);
        }
}

static void a_divided_gpu_is_no_leftover(void **state)
{
        (void)state;
        struct machine m;
        struct afz_gpu_facts gpu = {.count = 2};
        gpu.gpu[0] = (struct afz_gpu_fact){
                .parent = -1, .has_memory = true, .used_bytes = 9 * GIB, .has_processes = true};
        gpu.gpu[1] = gpu.gpu[0];
        gpu.gpu[1].number = 1;
        gpu.gpu[1].parent = 0;
        gpu.gpu[1].processes = 1;
        machine_open(&m, laptop_files);
        m.in.gpu = &gpu;
        machine_look(&m);
        expect(&m, "gpu-leftover", OK, "");
        machine_close(&m);
}

static void gpu_nodes(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        afz_fixture_set(m.files, "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
        afz_fixture_set(m.files, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
        afz_fixture_set(m.files, "sys/module/nouveau/refcnt", "1\n");
        machine_look(&m);
        expect(&m, "gpu", MISSING, "nouveau");
        expect(&m, "gpu-access", SKIP, "");
        afz_fixture_set(m.files, "sys/module/nvidia/version", "550.54\n");
        machine_look(&m);
        expect(&m, "gpu-access", MISSING, "nvidia-modprobe");
        afz_fixture_set(m.files, "dev/nvidia0", "");
        afz_fixture_set(m.files, "dev/nvidiactl", "");
        afz_fixture_set(m.files, "dev/nvidia-caps/x", "");
        machine_look(&m);
        expect(&m, "gpu-access", OK, "(2)");
        m.denied[1] = "./nvidia0";
        machine_look(&m);
        expect(&m, "gpu-access", WARN, "/dev/nvidia0 may not");
        machine_close(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_file_one_finding),
                cmocka_unit_test(a_small_machine_has_a_small_shm),
                cmocka_unit_test(psi_switched_off_is_told),
                cmocka_unit_test(hidepid),
                cmocka_unit_test(managers),
                cmocka_unit_test(tiers_are_proved),
                cmocka_unit_test(what_cannot_be_tried_is_said),
                cmocka_unit_test(recordings_are_not_tried),
                cmocka_unit_test(the_runtime_folder_may_be_elsewhere),
                cmocka_unit_test(root_asks_the_system_manager),
                cmocka_unit_test(network_mounts_are_left_alone),
                cmocka_unit_test(gpu_drivers),
                cmocka_unit_test(leftover_vram),
                cmocka_unit_test(a_divided_gpu_is_no_leftover),
                cmocka_unit_test(gpu_nodes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
