/* Programs that lock themselves in (seccomp), by prctl() or, as libseccomp, by syscall(). A system
 * call that such a program does not make itself may be its end: from then on we make none
 * (afz_seal).
 *
 * A filter that was there before the program began is a container's mostly, and lets through what
 * we need. */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks.h"

enum { WORDS = 6 }; /* of a system call */

static struct {
        long (*syscall)(long, ...);
        int (*prctl)(int, ...);
} next;

void afz_hooks_seal_start(void)
{
        afz_find_next("syscall", &next.syscall);
        afz_find_next("prctl", &next.prctl);
}

/* By hand: libc's syscall() cannot be asked for before the loader is done, and mappings come
 * earlier (hooks_map.c). */
static long call(long number, const long a[WORDS])
{
#if defined(__x86_64__)
        long r = number;
        register long d __asm__("r10") = a[3], e __asm__("r8") = a[4], f __asm__("r9") = a[5];
        __asm__ volatile("syscall"
                         : "+a"(r)
                         : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(d), "r"(e), "r"(f)
                         : "rcx", "r11", "memory");
#elif defined(__aarch64__)
        register long n __asm__("x8") = number, r __asm__("x0") = a[0], b __asm__("x1") = a[1];
        register long c __asm__("x2") = a[2], d __asm__("x3") = a[3], e __asm__("x4") = a[4];
        register long f __asm__("x5") = a[5];
        __asm__ volatile("svc 0"
                         : "+r"(r)
                         : "r"(n), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f)
                         : "memory");
#else
#error "how this machine calls its kernel is not known"
#endif
        if (r >= 0 || r < -4095) /* errors are the last page of numbers */
                return r;
        errno = (int)-r;
        return -1;
}

static bool is_seal(long number, const long a[WORDS])
{
        return AFZ_RARELY((number == SYS_prctl && a[0] == PR_SET_SECCOMP) ||
                          (number == SYS_seccomp &&
                           (a[0] == SECCOMP_SET_MODE_STRICT || a[0] == SECCOMP_SET_MODE_FILTER)));
}

/* Whether it may be done is asked by trying, too: then it stays as it was. */
static void settle(bool done, bool was)
{
        struct afz_book *book = afz_book_seen();
        if (!done && !was)
                afz_seal(0);
        if (done && book && afz_book_is_mine())
                afz_book_say(book, "The program locked itself in (seccomp): what it allocated from "
                                   "then on is not seen.");
}

AFZ_EXPORT long syscall(long number, ...)
{
        long a[WORDS];
        va_list more;
        va_start(more, number);
        for (int i = 0; i < WORDS; i++) /* what was not passed is not looked at, either */
                a[i] = va_arg(more, long);
        va_end(more);
        bool seals = is_seal(number, a), was = seals && afz_seal(1);
        long r = next.syscall ? next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5])
                              : call(number, a);
        if (seals)
                settle(r >= 0, was);
        return r;
}

AFZ_EXPORT int prctl(int option, ...)
{
        long a[WORDS] = {option};
        va_list more;
        va_start(more, option);
        for (int i = 1; i < 5; i++)
                a[i] = va_arg(more, long);
        va_end(more);
        bool seals = is_seal(SYS_prctl, a), was = seals && afz_seal(1);
        int r = next.prctl ? next.prctl(option, a[1], a[2], a[3], a[4]) : (int)call(SYS_prctl, a);
        if (seals)
                settle(r >= 0, was);
        return r;
}
