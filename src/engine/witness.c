#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "quiet.h"
#include "witness_look.h"

/* What it may use. A look takes some milliseconds; one at a program of hundreds of large libraries
 * a second. */
static const struct {
        uint64_t life_ns; /* then it is killed, */
        uint64_t gone_ns; /* and so long after its start nobody waits for it any more */
        rlim_t cpu_s;
} most = {
        .life_ns = 5 * AFZ_NS_PER_S,
        .gone_ns = 7 * AFZ_NS_PER_S,
        .cpu_s = 4,
};

struct afz_witness {
        struct afz_witness_found *found;
        pid_t pid; /* 0: it has ended, and was reaped */
        uint64_t start_ns;
};

/* Of all that run here it is the one to be missed least, and if it crashes, nobody is to be told:
 * where cores go to a program, that hears of it whatever the limit. */
static void step_back(void)
{
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
                (void)!write(fd, "1000", 4);
                close(fd);
        }
        (void)setrlimit(RLIMIT_CPU, &(struct rlimit){most.cpu_s, most.cpu_s});
        (void)prctl(PR_SET_DUMPABLE, 0);
}

_Noreturn static void be_witness(const struct afz_env *env, const pid_t *pids, size_t n,
                                 bool frozen, struct afz_witness_found *found, pid_t parent)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(0);
        afz_quiet_process("afz-witness");
        afz_quiet_fds(env->root_fd, AFZ_ROOT_COUNT);
        step_back();
        afz_witness_look(env, pids, n, frozen, found);
        _exit(0);
}

int afz_witness_start(const struct afz_env *env, const pid_t *pids, size_t n, bool frozen,
                      struct afz_witness **ret)
{
        struct afz_witness *w = calloc(1, sizeof *w);
        if (!w)
                return -ENOMEM;
        void *map = mmap(NULL, sizeof *w->found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0);
        if (map == MAP_FAILED) {
                free(w);
                return -ENOMEM;
        }
        w->found = map;
        w->start_ns = afz_clock_ns(CLOCK_MONOTONIC);
        pid_t parent = getpid(), pid = fork();
        if (pid == 0)
                be_witness(env, pids, n, frozen, w->found, parent);
        if (pid < 0) {
                int r = -errno;
                afz_witness_free(w);
                return r;
        }
        w->pid = pid;
        *ret = w;
        return 0;
}

static bool is_reaped(struct afz_witness *w, int flags)
{
        pid_t r = w->pid ? waitpid(w->pid, NULL, flags) : 0;
        if (r == w->pid || (r < 0 && errno == ECHILD))
                w->pid = 0;
        return w->pid == 0;
}

bool afz_witness_ended(struct afz_witness *w, uint64_t now_ns)
{
        uint64_t age_ns = now_ns > w->start_ns ? now_ns - w->start_ns : 0;
        if (is_reaped(w, WNOHANG))
                return true;
        if (age_ns > most.life_ns)
                kill(w->pid, SIGKILL);
        /* One that the kernel holds (a FUSE mount whose server hangs, and the job with it) does not
         * hear it. What it had found before counts; it is reaped when we are gone. */
        return age_ns > most.gone_ns;
}

/* What it left is as untrusted as what it read. */
size_t afz_witness_tell(const struct afz_witness *w,
                        void (*put)(void *ctx, int64_t code, const char *text), void *ctx)
{
        uint32_t rounds = atomic_load_explicit(&w->found->rounds, memory_order_acquire);
        if (rounds == 0 || rounds > AFZ_WITNESS_ROUNDS)
                return 0;
        size_t n = w->found->round[rounds - 1].count;
        n = n < AFZ_WITNESS_TEXTS ? n : AFZ_WITNESS_TEXTS;
        for (size_t i = 0; i < n; i++) {
                struct afz_witness_text *t = &w->found->round[rounds - 1].text[i];
                t->text[sizeof t->text - 1] = '\0';
                put(ctx, t->code, t->text);
        }
        return n;
}

void afz_witness_free(struct afz_witness *w)
{
        if (!w)
                return;
        if (w->pid && !is_reaped(w, WNOHANG)) {
                kill(w->pid, SIGKILL);
                (void)is_reaped(w, WNOHANG);
        }
        munmap(w->found, sizeof *w->found);
        free(w);
}
