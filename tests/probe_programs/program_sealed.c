/* Programs that lock themselves in (seccomp), and allocate. 77: it cannot be done here. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

static void allocate(void)
{
        for (int i = 0; i < 1000; i++)
                free(keep(malloc(10000)));
        free(keep(malloc(4 << 20)));
}

/* Nothing is allowed but to read, to write and to end: the heap is there before. */
int locked(void)
{
        mallopt(M_MMAP_THRESHOLD, 1 << 25);
        mallopt(M_TRIM_THRESHOLD, 1 << 28);
        free(keep(malloc(16 << 20)));
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0)
                return 77;
        allocate();
        syscall(SYS_exit, 0);
        return 1;
}

static int ends_well(pid_t pid)
{
        int status = -1;
        return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* What the probe calls and a program such as this one does not, is the end of it. */
int filtered(void)
{
        struct sock_filter rule[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 3, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 2, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        };
        struct sock_fprog filter = {sizeof rule / sizeof *rule, rule};
        /* As libseccomp asks whether there is such a thing: it fails, and seals nothing. */
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == 0)
                return 77;
        keep(malloc(8 << 20));
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
                return 77;
        allocate();
        pid_t pid = fork();
        if (pid == 0) {
                allocate();
                _exit(0);
        }
        CHECK(ends_well(pid));
        if ((pid = fork()) == 0) {
                execl("/proc/self/exe", "program", "inert", (char *)NULL);
                _exit(1);
        }
        CHECK(ends_well(pid));
        return 0;
}
