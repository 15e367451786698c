/* doctor's checks of the probe and of what reads stacks, over a table of what a trial may show. */
#include "test_doctor_machine.h"

#define OK      AFZ_FINDING_OK
#define WARN    AFZ_FINDING_WARN
#define MISSING AFZ_FINDING_MISSING
#define UNKNOWN AFZ_FINDING_UNKNOWN
#define SKIP    AFZ_FINDING_SKIP

#define GOOD    .started = true, .probed = true
#define TRIED   .found = true, .tried = true, .library = "/usr/lib/antifreeze/p.so", .started = true

static void probe_and_stacks(void **state)
{
        static const struct {
                struct afz_probe_facts facts;
                const char *id;
                enum afz_finding_level level;
                const char *words;
        } rows[] = {
                {{.tried = true}, "probe", MISSING, "was not found"},
                {{.found = true, .library = "/opt/my tools/p.so"}, "probe", WARN, "a space"},
                {{.found = true, .library = "/opt/p.so"}, "probe", OK, "not tried"},
                {{.found = true, .library = "/opt/p.so"}, "python", SKIP, ""},
                {{.found = true, .library = "/opt/p.so"}, "native-lines", SKIP, ""},
                {{.found = true, .library = "/opt/p.so"}, "memory-reading", SKIP, ""},
                {{TRIED, .asked = true, .seen = true}, "probe", OK, "saw what it allocates"},
                {{TRIED, .why = "failed to map segment"}, "probe", WARN, "failed to map segment"},
                {{TRIED, .asked = true, .why = "jemalloc"}, "probe", WARN, "jemalloc"},
                {{.found = true, .tried = true, .err = -EMFILE}, "probe", UNKNOWN, "open files"},
                {{TRIED}, "python", OK, "no Python"},
                {{TRIED, .pythons = 2,
                  .python = {{.path = "/usr/bin/python3", .version = "CPython 3.11", GOOD},
                             {.path = "/opt/python3", .version = "CPython 3.13", GOOD}}},
                 "python",
                 OK,
                 "CPython 3.11 (/usr/bin/python3), CPython 3.13 (/opt/python3)"},
                {{TRIED, .pythons = 2,
                  .python = {{.path = "/usr/bin/python3", .version = "CPython 3.11", GOOD},
                             {.path = "/opt/python3",
                              .started = true,
                              .probed = true,
                              .why = "free-threaded",
                              .stack_err = -ENOTSUP}}},
                 "python",
                 WARN,
                 "/opt/python3: a version or build"},
                {{TRIED, .pythons = 1,
                  .python = {{.path = "/p",
                              .started = true,
                              .probed = true,
                              .version = "CPython 3.11",
                              .stack_err = -EPERM}}},
                 "python",
                 WARN,
                 "may not be read"},
                {{TRIED, .pythons = 1, .python = {{.path = "/p", .stack_err = -ESRCH}}},
                 "python",
                 WARN,
                 "--no-probe"},
                {{TRIED, .pythons = 1,
                  .python = {{.path = "/p", .started = true, .version = "\033[1mx"}}},
                 "python",
                 WARN,
                 "does not get into it"},
                {{TRIED}, "native-lines", OK, "libdw is there"},
                {{TRIED, .libdw_err = -ENOTSUP}, "native-lines", MISSING, "libdw1"},
                {{TRIED}, "memory-reading", OK, "can be read"},
                {{TRIED, .memory_err = -EPERM}, "memory-reading", WARN, "Yama"},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct machine m;
                machine_open(&m, laptop_files);
                m.in.probe = &rows[i].facts;
                machine_look(&m);
                expect(&m, rows[i].id, rows[i].level, rows[i].words);
                machine_close(&m);
        }
}

/* What forbids it is named, with the way out of that. */
static void memory_that_may_not_be_read(void **state)
{
        struct afz_probe_facts facts = {TRIED, .memory_err = -EPERM};
        struct machine m;
        (void)state;
        machine_open(&m, laptop_files);
        m.in.probe = &facts;
        afz_fixture_set(m.files, "proc/42/status", "Cpus_allowed_list:\t0-7\nSeccomp:\t2\n");
        machine_look(&m);
        expect(&m, "memory-reading", WARN, "a seccomp filter is in force");
        expect(&m, "memory-reading", WARN, "outside the sandbox");
        machine_close(&m);

        machine_open(&m, laptop_files);
        m.in.probe = &facts;
        m.exist[0] = "/.dockerenv";
        afz_fixture_set(m.files, "proc/42/ns/pid", "-> pid:[4026532801]");
        machine_look(&m);
        expect(&m, "memory-reading", WARN, "SYS_PTRACE");
        machine_close(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(probe_and_stacks),
                cmocka_unit_test(memory_that_may_not_be_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
