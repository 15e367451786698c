#ifndef AFZ_TEST_STAND_STILL_H
#define AFZ_TEST_STAND_STILL_H
/* A thread that waits for a lock for ever, in functions whose names can be found on its stack. */
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) static void stand_still(void)
{
        static int word;
        syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
        __asm__ volatile("");
}

static void *stand(void *arg)
{
        stand_still();
        __asm__ volatile("");
        return arg;
}

#endif
