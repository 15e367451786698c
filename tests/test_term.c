/* What a terminal can show, as a table of environments; and keys out of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "key.h"
#include "term.h"

static void test_capabilities(void **state)
{
        static const struct {
                struct afz_term_looks looks;
                struct afz_term_caps want;
        } rows[] = {
                {{.tty = true, .term = "xterm-256color", .lang = "en_US.UTF-8"},
                 {true, AFZ_DEPTH_256, true}},
                {{.tty = true,
                  .term = "xterm-256color",
                  .colorterm = "truecolor",
                  .lang = "C.utf8"},
                 {true, AFZ_DEPTH_RGB, true}},
                {{.tty = true, .term = "xterm", .colorterm = "24bit", .lc_all = "de_DE.UTF-8"},
                 {true, AFZ_DEPTH_RGB, true}},
                {{.tty = true, .term = "xterm", .colorterm = "yes"}, {true, AFZ_DEPTH_16, false}},
                {{.tty = true, .term = "linux", .lang = "C"}, {true, AFZ_DEPTH_16, false}},
                {{.tty = true, .term = "vt100", .lang = "C.UTF-8"}, {true, AFZ_DEPTH_NONE, true}},
                {{.tty = true, .term = "xterm-direct"}, {true, AFZ_DEPTH_RGB, false}},
                /* NO_COLOR takes the colours only, and only when it is not empty */
                {{.tty = true, .term = "xterm-256color", .colorterm = "truecolor", .no_color = "1"},
                 {true, AFZ_DEPTH_NONE, false}},
                {{.tty = true, .term = "xterm-256color", .no_color = ""},
                 {true, AFZ_DEPTH_256, false}},
                /* plain lines */
                {{.tty = true, .term = "dumb", .lang = "C.UTF-8"}, {false, AFZ_DEPTH_NONE, true}},
                {{.tty = true, .term = ""}, {false, AFZ_DEPTH_NONE, false}},
                {{.tty = true}, {false, AFZ_DEPTH_NONE, false}},
                {{.tty = false, .term = "xterm-256color"}, {false, AFZ_DEPTH_NONE, false}},
                /* LC_ALL beats LC_CTYPE beats LANG; an empty one does not count */
                {{.tty = true, .term = "xterm", .lc_all = "C", .lang = "en_US.UTF-8"},
                 {true, AFZ_DEPTH_16, false}},
                {{.tty = true, .term = "xterm", .lc_all = "", .lc_ctype = "C.UTF-8", .lang = "C"},
                 {true, AFZ_DEPTH_16, true}},
                {{.tty = true, .term = "xterm", .lc_ctype = "POSIX", .lang = "en_US.utf8"},
                 {true, AFZ_DEPTH_16, false}},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct afz_term_caps caps = afz_term_look(&rows[i].looks);
                if (caps.live != rows[i].want.live || caps.depth != rows[i].want.depth ||
                    caps.utf8 != rows[i].want.utf8)
                        fail_msg("row %zu: live %d depth %d utf8 %d", i, caps.live, (int)caps.depth,
                                 caps.utf8);
        }
}

static void test_keys(void **state)
{
        static const struct {
                const char *bytes;
                int keys[6];
        } rows[] = {
                {"q", {'q'}},
                {"\033[A\033[B", {AFZ_KEY_UP, AFZ_KEY_DOWN}},
                {"\033OA\033OF", {AFZ_KEY_UP, AFZ_KEY_END}},
                {"\033[5~\033[6~", {AFZ_KEY_PAGE_UP, AFZ_KEY_PAGE_DOWN}},
                {"\033[1~\033[4~", {AFZ_KEY_HOME, AFZ_KEY_END}},
                {"\033[H\033[F", {AFZ_KEY_HOME, AFZ_KEY_END}},
                {"\033[1;5A", {AFZ_KEY_UP}},
                {"\033", {AFZ_KEY_ESCAPE}},
                {"\033q", {AFZ_KEY_ESCAPE, 'q'}},
                {"\033[", {AFZ_KEY_ESCAPE, '['}},
                {"\033[12", {AFZ_KEY_OTHER}},
                {"\033[99999999999~x", {AFZ_KEY_OTHER, 'x'}},
                {"\033[<0;3;4Mz", {AFZ_KEY_OTHER, 'z'}},
                {"\x03\x1a", {3, 26}},
                {"\xc3\xa9"
                 "a",
                 {AFZ_KEY_OTHER, AFZ_KEY_OTHER, 'a'}},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                const char *at = rows[i].bytes;
                size_t left = strlen(at), used;
                for (int k = 0; k < 6; k++) {
                        assert_int_equal(afz_key_take(at, left, &used), rows[i].keys[k]);
                        assert_true(used <= left);
                        at += used;
                        left -= used;
                }
                assert_int_equal(left, 0);
        }
}

/* On a pseudo-terminal: taken, sized, and given back exactly as it was. */
static void test_terminal_is_given_back(void **state)
{
        (void)state;
        int master = posix_openpt(O_RDWR | O_NOCTTY);
        if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
                skip();
        int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
        assert_true(slave >= 0);
        struct winsize size = {.ws_col = 93, .ws_row = 31};
        assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
        struct termios before, during, after;
        tcgetattr(slave, &before);

        struct afz_term term;
        int w, h;
        char buf[256];
        assert_int_equal(afz_term_open(&term, slave, slave), 0);
        tcgetattr(slave, &during);
        assert_false(during.c_lflag & (ICANON | ECHO | ISIG));
        assert_int_equal(afz_term_size(&term, &w, &h), 0);
        assert_int_equal(w, 93);
        assert_int_equal(h, 31);
        assert_int_equal(afz_term_read(&term, buf, sizeof buf), 0);
        assert_int_equal(write(master, "\003q", 2), 2);
        assert_int_equal(afz_term_read(&term, buf, sizeof buf), 2);
        assert_memory_equal(buf, "\003q", 2);
        afz_term_close(&term);
        afz_term_restore(&term); /* a handler may come late */
        tcgetattr(slave, &after);
        assert_int_equal(before.c_lflag, after.c_lflag);
        assert_int_equal(before.c_iflag, after.c_iflag);
        assert_int_equal(before.c_oflag, after.c_oflag);

        /* What was written last is also what comes out last. */
        size_t have = 0;
        for (buf[0] = 0; !strstr(buf, "\033[?1049l"); buf[have] = 0) {
                ssize_t n = read(master, buf + have, sizeof buf - 1 - have);
                assert_true(n > 0);
                have += (size_t)n;
        }
        const char *on = strstr(buf, "\033[?1049h"), *off = strstr(buf, "\033[?1049l");
        assert_non_null(on);
        assert_non_null(off);
        assert_true(on < off);
        assert_non_null(strstr(off - 20 > buf ? off - 20 : buf, "\033[?25h"));
        close(slave);
        close(master);
}

static void test_not_a_terminal(void **state)
{
        struct afz_term term;
        int fds[2];
        (void)state;
        assert_int_equal(pipe(fds), 0);
        assert_true(afz_term_open(&term, fds[0], fds[1]) < 0);
        close(fds[0]);
        close(fds[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_capabilities),
                cmocka_unit_test(test_keys),
                cmocka_unit_test(test_terminal_is_given_back),
                cmocka_unit_test(test_not_a_terminal),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
