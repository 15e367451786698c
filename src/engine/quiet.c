#include "quiet.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fds.h"

enum { MOST = 8 }; /* descriptors that are kept */

void afz_quiet_process(const char *name)
{
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        prctl(PR_SET_NAME, name);
        struct sched_param other = {0};
        sched_setscheduler(0, SCHED_OTHER, &other);
        if (getpriority(PRIO_PROCESS, 0) < 0) /* the guard's own. Not further back: helpers need
                                                 little, but a crowded machine needs them most */
                setpriority(PRIO_PROCESS, 0, 0);
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        (void)!chdir("/"); /* the caller's folder may be unmounted while we live */
}

void afz_quiet_fds(const int *keep, size_t n)
{
        int all[3 + MOST] = {0, 1, 2};
        if (n > MOST)
                n = MOST;
        memcpy(all + 3, keep, n * sizeof *keep);
        afz_fds_close_but(all, 3 + n);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 3 && null >= 0; i++)
                dup2(null, i);
        if (null > 2)
                close(null);
}
