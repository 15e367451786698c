/* doctor on whole machines: real layouts, broken ones, hostile ones. */
#include "test_doctor_machine.h"

#define OK      AFZ_FINDING_OK
#define WARN    AFZ_FINDING_WARN
#define MISSING AFZ_FINDING_MISSING
#define UNKNOWN AFZ_FINDING_UNKNOWN
#define SKIP    AFZ_FINDING_SKIP

static void all_is_well_on_the_laptop(void **state)
{
        (void)state;
        struct machine m;
        size_t fds = afz_fixture_open_fds();
        machine_open(&m, laptop_files);
        m.in.gpu = &(struct afz_gpu_facts){0};
        machine_look(&m);
        for (size_t i = 0; i < afz_check_count; i++)
                if (m.d.finding[i].level != OK && m.d.finding[i].level != SKIP)
                        fail_msg("%s: %s", afz_check_table[i].id, m.d.finding[i].text);
        expect(&m, "machine", OK, "16G of RAM, 8 cores; on bare metal");
        expect(&m, "systemd", OK, "the user manager answers (systemd 252.22-1~deb12u1)");
        expect(&m, "delegation", OK, "the systemd manager passes on: memory, pids, cpu");
        expect(&m, "tier", OK, "not yet proved");
        expect(&m, "wsl", SKIP, "");
        assert_string_equal(afz_doctor_tier_name(m.d.tier), "scope");
        assert_int_equal(m.asked, 1);
        assert_int_equal(m.system_asked, 0);
        machine_close(&m);
        assert_int_equal(afz_fixture_open_fds(), fds);
}

/* As recorded on a small virtual machine with cgroup v1 and an empty v2 beside it. */
static const struct afz_fixture_row hybrid_files[] = {
        {"machine", "self_pid 42\n"},
        {"proc/42/mountinfo",
         "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
         "23 27 0:22 / /sys rw,relatime - sysfs sysfs rw\n"
         "24 27 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw,size=12332508k,mode=755\n"
         "25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684100k\n"
         "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
         "30 25 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684100k\n"
         "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
         "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
         "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
         "37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"
         "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"},
        {"proc/42/cgroup", "9:name=systemd:/\n8:pids:/\n7:blkio:/\n6:freezer:/\n5:devices:/\n"
                           "4:memory:/process_api/e265\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n0::/\n"},
        {"proc/42/ns/pid", "-> pid:[4026531836]"},
        {"proc/meminfo", "MemTotal:       24684100 kB\n"},
        {"proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu rdpid hypervisor lahf_lm\n"},
        {"proc/sys/kernel/osrelease", "6.18.44-fc-v490\n"},
        {"proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"},
        {"sys/bus/", NULL},
        {"cgroup/cpu/tasks", "42\n"},
        {"cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"cgroup/memory/process_api/memory.limit_in_bytes", "9223372036854771712\n"},
        {"cgroup/memory/process_api/e265/memory.limit_in_bytes", "21474836480\n"},
        {"cgroup/memory/process_api/e265/cgroup.procs", "42\n"},
        {"cgroup/freezer/cgroup.procs", "42\n"},
        {"cgroup/unified/cgroup.controllers", "\n"},
        {"fs_space", "25276518400 25276518400 25276518400 10 9 /dev/shm\n"
                     "270553174016 1 84617093120 0 0 /\n"},
        {0},
};

static void hybrid_is_not_cgroup2(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, hybrid_files);
        m.in.uid = 0;
        m.exist[0] = "/.dockerenv";
        m.exist[1] = NULL;
        machine_look(&m);
        expect(&m, "cgroup", WARN, "hybrid");
        expect(&m, "delegation", OK, "v1 memory cgroup is writable; freezer: writable");
        expect(&m, "memory-limit", WARN, "20G of the machine's 24G");
        expect(&m, "systemd", MISSING, "no systemd system manager");
        expect(&m, "swap", MISSING, "none");
        expect(&m, "swap", MISSING, "fallocate -l 11G");
        expect(&m, "swappiness", SKIP, "");
        expect(&m, "shm", OK, "24G");
        expect(&m, "gpu", OK, "none here");
        /* A file left over from an image does not make the first pid namespace a container. */
        expect(&m, "machine", OK, "in a virtual machine");
        assert_null(strstr(finding_of(&m, "machine")->text, "container"));
        assert_string_equal(afz_doctor_tier_name(m.d.tier), "cgroup1");

        afz_fixture_remove(m.files, "cgroup/unified");
        m.denied[0] = "memory/process_api/e265/cgroup.procs";
        machine_look(&m);
        expect(&m, "cgroup", WARN, "cgroup v1 only");
        expect(&m, "delegation", MISSING, "not writable");
        expect(&m, "tier", MISSING, "none");
        assert_string_equal(afz_doctor_tier_name(m.d.tier), "none");
        machine_close(&m);
}

static void wsl2(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        afz_fixture_set(m.files, "proc/version",
                        "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d) (gcc)\n");
        afz_fixture_set(m.files, "proc/meminfo", "MemTotal:        8033508 kB\n");
        afz_fixture_set(m.files, "sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n");
        afz_fixture_remove(m.files, "proc/pressure");
        m.exist[0] = NULL;
        machine_look(&m);
        expect(&m, "wsl", WARN, ".wslconfig");
        expect(&m, "wsl", WARN, "7.7G");
        expect(&m, "psi", MISSING, "kernelCommandLine=psi=1");
        expect(&m, "systemd", MISSING, "/etc/wsl.conf");
        expect(&m, "linger", SKIP, "");
        assert_int_equal(m.asked, 0);

        afz_fixture_set(m.files, "proc/version", "Linux version 4.4.0-19041-Microsoft (x)\n");
        afz_fixture_set(m.files, "proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n");
        machine_look(&m);
        expect(&m, "wsl", MISSING, "wsl --set-version");
        expect(&m, "kernel", WARN, "5.4");
        machine_close(&m);
}

static void chroot_into_a_folder(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        /* Its root is no mount, so that none stands on one that is shown. */
        afz_fixture_set(m.files, "proc/42/mountinfo",
                        "103 83 0:21 / /proc rw,relatime - proc proc rw\n"
                        "116 83 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw,size=12332544k\n"
                        "117 116 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684112k\n");
        afz_fixture_set(m.files, "fs_space", "25276530688 25276530688 25276530688 10 9 /dev/shm\n");
        machine_look(&m);
        expect(&m, "processes", OK, "all processes");
        expect(&m, "shm", OK, "24G");
        expect(&m, "disk-home", UNKNOWN, "");
        machine_close(&m);
}

static void docker(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        afz_fixture_set(m.files, "proc/42/mountinfo",
                        "700 600 0:90 / / rw,relatime - overlay overlay rw,lowerdir=/var/l\n"
                        "701 700 0:91 / /proc rw,nosuid - proc proc rw\n"
                        "702 700 0:92 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755\n"
                        "703 702 0:93 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k\n"
                        "704 700 0:25 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n");
        afz_fixture_set(m.files, "proc/42/cgroup", "0::/\n");
        afz_fixture_set(m.files, "proc/42/ns/pid", "-> pid:[4026532871]");
        afz_fixture_set(m.files, "cgroup/memory.max", "4294967296\n");
        afz_fixture_set(m.files, "cgroup/cgroup.procs", "1\n42\n");
        afz_fixture_set(m.files, "fs_space",
                        "67108864 67108864 67108864 10 9 /dev/shm\n"
                        "250000000000 1 3000000000 1000000 900000 /\n");
        afz_fixture_remove(m.files, "dev/kmsg");
        m.exist[0] = "/.dockerenv";
        m.exist[1] = NULL;
        m.denied[0] = ".";
        m.in.uid = 0;
        machine_look(&m);
        expect(&m, "machine", OK, "in a container");
        expect(&m, "memory-limit", WARN, "4.0G of the machine's 16G");
        expect(&m, "shm", WARN, "64M");
        expect(&m, "shm", WARN, "--shm-size");
        expect(&m, "delegation", MISSING, "writable-cgroups");
        expect(&m, "oom-daemons", UNKNOWN, "not all processes");
        expect(&m, "kernel-log", MISSING, "--device=/dev/kmsg");
        expect(&m, "disk-home", WARN, "2.8G left");
        assert_string_equal(afz_doctor_tier_name(m.d.tier), "none");

        m.denied[0] = NULL;
        machine_look(&m);
        assert_string_equal(afz_doctor_tier_name(m.d.tier), "cgroup2");
        expect(&m, "delegation", OK, "ours to divide; controllers: memory, pids, cpu, io");
        machine_close(&m);
}

static void v2_without_memory_is_no_protection(void **state)
{
        (void)state;
        struct machine m;
        machine_open(&m, laptop_files);
        afz_fixture_set(m.files, "cgroup/cgroup.controllers", "cpuset cpu io pids\n");
        machine_look(&m);
        expect(&m, "cgroup", MISSING, "cgroup_enable=memory");
        expect(&m, "tier", MISSING, "none");
        assert_int_equal(m.d.tier, AFZ_TIER_NONE);

        /* The machine has it, but the user manager was not given it. */
        afz_fixture_set(m.files, "cgroup/cgroup.controllers", "cpu memory pids\n");
        afz_fixture_set(m.files,
                        "cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers",
                        "pids\n");
        machine_look(&m);
        expect(&m, "cgroup", OK, "memory controller");
        expect(&m, "delegation", MISSING, "not writable");
        expect(&m, "delegation", MISSING, "Delegate=cpu memory");
        assert_int_equal(m.d.tier, AFZ_TIER_NONE);
        machine_close(&m);
}

static void without_sys_nothing_of_it_is_ok(void **state)
{
        (void)state;
        struct machine m;
        static const char *const blind[] = {"cgroup",     "delegation", "memory-limit", "tier",
                                            "huge-pages", "gpu",        "kernel-log"};
        struct afz_fixture_row files[64];
        size_t n = 0;
        for (const struct afz_fixture_row *row = laptop_files; row->path; row++)
                if (strncmp(row->path, "sys", 3) != 0 && strncmp(row->path, "cgroup", 6) != 0 &&
                    strncmp(row->path, "dev", 3) != 0)
                        files[n++] = *row;
        files[n] = (struct afz_fixture_row){0};
        machine_open(&m, files);
        machine_look(&m);
        for (size_t i = 0; i < sizeof blind / sizeof *blind; i++)
                if (finding_of(&m, blind[i])->level == OK)
                        fail_msg("%s is ok: %s", blind[i], finding_of(&m, blind[i])->text);
        assert_int_equal(m.d.tier, AFZ_TIER_UNKNOWN);
        expect(&m, "machine", OK, "8 cores");
        machine_close(&m);
}

static void an_empty_machine_is_unknown(void **state)
{
        (void)state;
        static const struct afz_fixture_row nothing[] = {{"machine", "self_pid 42\n"}, {0}};
        struct machine m;
        machine_open(&m, nothing);
        memset(m.variables, 0, sizeof m.variables);
        memset(m.exist, 0, sizeof m.exist);
        machine_look(&m);
        for (size_t i = 0; i < afz_check_count; i++)
                if (m.d.finding[i].level == OK)
                        fail_msg("%s is ok: %s", afz_check_table[i].id, m.d.finding[i].text);
        assert_int_equal(m.d.tier, AFZ_TIER_UNKNOWN);
        machine_close(&m);
}

/* A file in which something else stands makes its check anything but ok, and nothing crash. */
static void garbage_is_never_ok(void **state)
{
        (void)state;
        static const struct {
                const char *path, *id;
        } row[] = {
                {"proc/42/mountinfo", "processes"},
                {"proc/42/mountinfo", "shm"},
                {"proc/42/mountinfo", "disk-home"},
                {"proc/42/cgroup", "cgroup"},
                {"proc/42/cgroup", "tier"},
                {"proc/42/limits", "open-files"},
                {"proc/42/limits", "locked-memory"},
                {"proc/42/limits", "process-count"},
                {"proc/42/limits", "address-space"},
                {"proc/sys/kernel/osrelease", "kernel"},
                {"proc/sys/kernel/yama/ptrace_scope", "ptrace"},
                {"proc/sys/vm/swappiness", "swappiness"},
                {"proc/sys/vm/overcommit_memory", "overcommit"},
                {"proc/meminfo", "machine"},
                {"proc/swaps", "swap"},
                {"proc/pressure/memory", "psi"},
                {"sys/kernel/mm/transparent_hugepage/enabled", "huge-pages"},
                {"cgroup/cgroup.controllers", "tier"},
                {"cgroup/user.slice/user-1000.slice/session-3.scope/memory.max", "memory-limit"},
                {"fs_space", "shm"},
        };
        static const char *const garbage[] = {
                "",
                "\n",
                "\xff\xfe\x01\x1b[31mred",
                "18446744073709551616\n",
                "-1\n",
                "Max open files",
                "MemTotal: 99999999999999999999999 kB\n",
                "6",
                "6.",
                ".\n",
                "0:",
                ":::\n",
                "- - - -\n",
                "Filename\n/dev/sda\n",
                "1 2 3 4 5 6\n",
                "always madvise never\n",
        };
        struct machine m;
        machine_open(&m, laptop_files);
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                char whole[4096];
                const struct afz_fixture_row *f = laptop_files;
                while (strcmp(f->path, row[i].path) != 0)
                        f++;
                for (size_t g = 0; g < sizeof garbage / sizeof *garbage; g++) {
                        afz_fixture_set(m.files, row[i].path, garbage[g]);
                        machine_look(&m);
                        if (finding_of(&m, row[i].id)->level == OK)
                                fail_msg("%s is ok with garbage %zu in %s: %s", row[i].id, g,
                                         row[i].path, finding_of(&m, row[i].id)->text);
                }
                if (strcmp(row[i].path, "fs_space") != 0) {
                        afz_fixture_break(m.files, row[i].path);
                        machine_look(&m);
                        assert_int_not_equal(finding_of(&m, row[i].id)->level, OK);
                        afz_fixture_remove(m.files, row[i].path);
                }
                /* Cut in the middle, at every byte: no crash, whatever it then says. */
                for (size_t n = 0; n < strlen(f->text); n += 1 + strlen(f->text) / 40) {
                        memcpy(whole, f->text, n);
                        afz_fixture_set_bytes(m.files, row[i].path, whole, n);
                        machine_look(&m);
                }
                afz_fixture_set(m.files, row[i].path, f->text);
        }
        machine_close(&m);
}

static void hostile_names_stay_harmless(void **state)
{
        (void)state;
        struct machine m;
        char home[5000], variable[5100];
        machine_open(&m, laptop_files);
        memset(home, 'x', sizeof home - 1);
        home[0] = '/';
        home[sizeof home - 1] = '\0';
        snprintf(variable, sizeof variable, "HOME=%s", home);
        m.variables[0] = variable;
        m.variables[1] = "USER=../../etc/passwd";
        memset(&m.d, 0, sizeof m.d);
        assert_int_equal(afz_doctor_run(&m.in, &m.d), 0);
        assert_int_not_equal(finding_of(&m, "disk-home")->level, OK);
        expect(&m, "linger", UNKNOWN, "");

        m.variables[0] = "HOME=/home/\033[2J\nada";
        m.variables[1] = "USER=ada";
        afz_fixture_set(m.files, "proc/77/comm", "earlyoom\n");
        afz_fixture_set(m.files, "proc/78/comm", "earlyoom) Z 1\nsystemd-oomd\n");
        machine_look(&m);
        expect(&m, "oom-daemons", OK, "earlyoom (pid 77) runs");
        assert_null(strstr(finding_of(&m, "oom-daemons")->text, "78"));
        machine_close(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_is_well_on_the_laptop),
                cmocka_unit_test(hybrid_is_not_cgroup2),
                cmocka_unit_test(wsl2),
                cmocka_unit_test(chroot_into_a_folder),
                cmocka_unit_test(docker),
                cmocka_unit_test(v2_without_memory_is_no_protection),
                cmocka_unit_test(without_sys_nothing_of_it_is_ok),
                cmocka_unit_test(an_empty_machine_is_unknown),
                cmocka_unit_test(garbage_is_never_ok),
                cmocka_unit_test(hostile_names_stay_harmless),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
