/* The bus where there is none, or one that hangs: bounded, and nothing stays behind. What it does
 * where there is one is in tests/vm_tiers.py. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bus.h"
#include "clock.h"
#include "fixture.h"

static char dir[64];

static int set_up(void **state)
{
        (void)state;
        snprintf(dir, sizeof dir, "/tmp/afz-test-bus-XXXXXX");
        return mkdtemp(dir) ? setenv("XDG_RUNTIME_DIR", dir, 1) : -1;
}

static int tear_down(void **state)
{
        char path[128];
        (void)state;
        snprintf(path, sizeof path, "%s/bus", dir);
        unlink(path);
        unsetenv("DBUS_SESSION_BUS_ADDRESS");
        return rmdir(dir);
}

static bool has_bus(void)
{
        char path[64];
        snprintf(path, sizeof path, "/run/user/%u/bus", (unsigned)geteuid());
        return access(path, F_OK) == 0;
}

static void nothing_left(void)
{
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

static void says_that_there_is_none(void **state)
{
        char version[32] = "untouched";
        size_t fds = afz_fixture_open_fds();
        (void)state;
        setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
        if (has_bus()) /* a machine with a bus of its own answers */
                skip();
        int r = afz_bus_manager_version(false, version, sizeof version);
        assert_true(r == -ENODATA || r == -ENOENT || r == -ECONNREFUSED);
        assert_string_equal(version, "untouched");
        pid_t pid = getpid();
        struct afz_bus_scope scope = {
                .name = "antifreeze-test.scope", .description = "test", .pid = &pid, .pids = 1};
        assert_true(afz_bus_make_scope(false, &scope) < 0);
        nothing_left();
        assert_int_equal(afz_fixture_open_fds(), fds);
}

/* A socket that takes connections and never says a word: a bus whose machine is swapping. */
static void does_not_wait_for_ever(void **state)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char version[32];
        (void)state;
        snprintf(address.sun_path, sizeof address.sun_path, "%s/bus", dir);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(listen(fd, 4), 0);
        uint64_t start = afz_clock_ns(CLOCK_MONOTONIC);
        int r = afz_bus_manager_version(false, version, sizeof version);
        uint64_t took = afz_clock_ns(CLOCK_MONOTONIC) - start;
        close(fd);
        assert_true(r == -ETIMEDOUT || r == -ENODATA);
        assert_true(took < 4 * AFZ_NS_PER_S);
        nothing_left();
}

static void no_desktop_no_child(void **state)
{
        (void)state;
        if (has_bus())
                skip();
        unsetenv("DBUS_SESSION_BUS_ADDRESS");
        assert_int_equal(afz_bus_notify("a", "b", true), -ENODATA);
        setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
        pid_t pid = afz_bus_notify("a", "<b> & c", false);
        assert_true(pid > 0);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(says_that_there_is_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(does_not_wait_for_ever, set_up, tear_down),
                cmocka_unit_test_setup_teardown(no_desktop_no_child, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
