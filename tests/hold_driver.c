/* Opens one tier on a child and does what it is told, a word a line on stdin:
 *
 *      hold_driver TIER [ram=BYTES] [swap=BYTES] [pids=N] [weight=N] [id=ID] [parts] [keeper]
 *                  -- CMD...
 *      hold_driver TIER ... attach=PID
 *      hold_driver collect PLACE
 *
 * `parts`: the kernel's OOM kill takes a leaf and not all. `keeper`: a sleeping child beside the
 * job. Each word is answered by one line, "ok ..." or "no ERRNO why". CMD's output goes to stderr;
 * it gets /dev/null as input. At the end of stdin the hold is closed. For tests/vm_tiers.py and its
 * kin.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup2_hold.h"
#include "clock.h"
#include "hold_tier.h"
#include "spawn_held.h"

static struct afz_env env;
static struct afz_hold hold;
static pid_t job;

static void say(int r)
{
        if (r < 0)
                printf("no %d %s\n", -r, strerror(-r));
        else
                printf("ok %d\n", r);
}

static void look(void)
{
        static const char *const name[AFZ_PULSE_COUNT] = {
                [AFZ_PULSE_NEED] = "need",           [AFZ_PULSE_SWAP] = "swap",
                [AFZ_PULSE_JOB_STALL] = "job_stall", [AFZ_PULSE_OOM_KILLS] = "oom_kills",
                [AFZ_PULSE_PROCESSES] = "processes",
        };
        struct afz_pulse pulse = {0};
        uint64_t start = afz_clock_ns(CLOCK_MONOTONIC);
        int r = hold.row->look(hold.state, &pulse);
        uint64_t took = afz_clock_ns(CLOCK_MONOTONIC) - start;
        if (r < 0) {
                say(r);
                return;
        }
        printf("ok took_ns=%llu", (unsigned long long)took);
        for (int i = 0; i < AFZ_PULSE_COUNT; i++)
                if (name[i] && pulse.has >> i & 1)
                        printf(" %s=%llu", name[i], (unsigned long long)pulse.figure[i]);
        printf("\n");
}

/* The median of many, which is what a tick costs. */
static int by_size(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

static void bench(void)
{
        static uint64_t took[1001];
        struct afz_pulse pulse = {0};
        for (int i = 0; i < 1001; i++) {
                uint64_t start = afz_clock_ns(CLOCK_MONOTONIC);
                (void)hold.row->look(hold.state, &pulse);
                took[i] = afz_clock_ns(CLOCK_MONOTONIC) - start;
        }
        qsort(took, 1001, sizeof took[0], by_size);
        printf("ok median_ns=%llu p99_ns=%llu\n", (unsigned long long)took[500],
               (unsigned long long)took[990]);
}

/* The status of CMD once it has ended: "ok exit 0", "ok signal 9"; "no" while it runs. */
static void status(void)
{
        int st;
        pid_t r = waitpid(job, &st, WNOHANG);
        if (r <= 0)
                printf("no %d\n", r < 0 ? errno : 0);
        else if (WIFSIGNALED(st))
                printf("ok signal %d\n", WTERMSIG(st));
        else
                printf("ok exit %d\n", WEXITSTATUS(st));
}

static void part(unsigned n)
{
        uint64_t need;
        int r = hold.row->look_part(hold.state, n, &need);
        if (r < 0)
                say(r);
        else
                printf("ok need=%llu\n", (unsigned long long)need);
}

static void oom(void)
{
        struct pollfd p = {.fd = hold.row->oom_fd(hold.state), .events = POLLIN};
        printf("ok %d\n", p.fd < 0 ? -1 : poll(&p, 1, 0));
}

/* As on a kernel without cgroup.kill. */
static void forget_kill(void)
{
        struct afz_cgroup2_hold *h = hold.state;
        int *fd = &h->job.fd[AFZ_CG2_KILL];
        if (hold.row->tier < AFZ_TIER_CGROUP2) {
                say(-EOPNOTSUPP);
                return;
        }
        close(*fd);
        *fd = -1;
        say(0);
}

static void act(const char *word, uint64_t n, uint64_t n2)
{
        const struct afz_hold_tier *row = hold.row;
        char place[AFZ_HOLD_PLACE_CAP];
        if (strcmp(word, "look") == 0)
                look();
        else if (strcmp(word, "bench") == 0)
                bench();
        else if (strcmp(word, "brake") == 0)
                say(row->brake(hold.state));
        else if (strcmp(word, "release") == 0)
                say(row->release(hold.state));
        else if (strcmp(word, "limit") == 0)
                say(row->limit(hold.state, &(struct afz_budget){n, n2, true}));
        else if (strcmp(word, "squeeze") == 0)
                say(row->squeeze(hold.state, n));
        else if (strcmp(word, "slow") == 0)
                say(row->slow(hold.state, n ? n : UINT64_MAX));
        else if (strcmp(word, "kill") == 0)
                say(row->kill(hold.state));
        else if (strcmp(word, "split") == 0)
                say(row->split(hold.state, (pid_t)n));
        else if (strcmp(word, "part") == 0)
                part((unsigned)n);
        else if (strcmp(word, "killpart") == 0)
                say(row->kill_part(hold.state, (unsigned)n));
        else if (strcmp(word, "other") == 0)
                say(row->other(hold.state, (pid_t)n));
        else if (strcmp(word, "oom") == 0)
                oom();
        else if (strcmp(word, "status") == 0)
                status();
        else if (strcmp(word, "forget-kill") == 0)
                forget_kill();
        else if (strcmp(word, "place") == 0) {
                row->place(hold.state, place);
                printf("ok %s\n", place);
        } else
                printf("no %d no such word\n", EINVAL);
}

static uint64_t number(const char *text)
{
        return strtoull(text, NULL, 10);
}

static enum afz_tier tier_named(const char *name)
{
        for (int i = 0; i < AFZ_TIER_COUNT; i++)
                if (strcmp(afz_tier_name((enum afz_tier)i), name) == 0)
                        return (enum afz_tier)i;
        fprintf(stderr, "hold_driver: no tier %s\n", name);
        exit(2);
}

static pid_t start_keeper(void)
{
        pid_t pid = fork();
        if (pid == 0) {
                close(0);
                close(1);
                for (;;)
                        pause();
        }
        return pid;
}

static void open_hold(enum afz_tier tier, const struct afz_hold_plan *plan, pid_t keeper)
{
        char why[AFZ_HOLD_WHY_CAP] = "";
        int r = -ENODATA;
        uint64_t start = afz_clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < AFZ_TIER_COUNT; i++) {
                if (afz_hold_tiers[i]->tier != tier)
                        continue;
                hold.row = afz_hold_tiers[i];
                r = hold.row->open(&env, plan, job, keeper, &hold.state, why);
        }
        if (r < 0) {
                printf("no %d %s\n", -r, why);
                exit(3);
        }
        printf("ok %d %llu\n", (int)job,
               (unsigned long long)((afz_clock_ns(CLOCK_MONOTONIC) - start) / 1000));
}

/* Our words and answers keep to descriptors that CMD does not get. */
static FILE *keep_apart(void)
{
        int in = fcntl(0, F_DUPFD_CLOEXEC, 10), out = fcntl(1, F_DUPFD_CLOEXEC, 10);
        int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
        stdout = fdopen(out, "w");
        if (in < 0 || none < 0 || !stdout || dup2(none, 0) < 0 || dup2(2, 1) < 0)
                exit(2);
        setvbuf(stdout, NULL, _IOLBF, 0);
        return fdopen(in, "r");
}

static void serve(FILE *words)
{
        char line[256], word[32];
        while (fgets(line, sizeof line, words)) {
                unsigned long long n = 0, n2 = 0;
                if (sscanf(line, "%31s %llu %llu", word, &n, &n2) < 1)
                        continue;
                if (strcmp(word, "close") == 0)
                        break;
                act(word, n, n2);
        }
}

static void options(char **argv, struct afz_hold_plan *plan, bool *keeper)
{
        for (; *argv && strcmp(*argv, "--") != 0; argv++) {
                if (strncmp(*argv, "ram=", 4) == 0)
                        plan->budget.ram_bytes = number(*argv + 4);
                else if (strncmp(*argv, "swap=", 5) == 0)
                        plan->budget.swap_bytes = number(*argv + 5);
                else if (strncmp(*argv, "pids=", 5) == 0)
                        plan->processes = number(*argv + 5);
                else if (strncmp(*argv, "weight=", 7) == 0)
                        plan->weight = (uint32_t)number(*argv + 7);
                else if (strncmp(*argv, "id=", 3) == 0)
                        plan->id = *argv + 3;
                else if (strncmp(*argv, "attach=", 7) == 0) {
                        job = (pid_t)number(*argv + 7);
                        plan->adopted = true;
                } else if (strcmp(*argv, "parts") == 0)
                        plan->whole = false;
                else if (strcmp(*argv, "keeper") == 0)
                        *keeper = true;
        }
}

int main(int argc, char **argv)
{
        struct afz_hold_plan plan = {
                .id = "driver",
                .what = "hold_driver",
                .budget = {.ram_bytes = UINT64_MAX, .swap_bytes = UINT64_MAX},
                .weight = 100,
                .whole = true,
        };
        struct afz_spawn spawn = {0};
        bool keep = false;
        char **cmd = argv;
        FILE *words = keep_apart();
        if (argc < 3 || !words || afz_env_open_live(&env) < 0)
                return 2;
        if (strcmp(argv[1], "collect") == 0) {
                say(afz_hold_collect(&env, argv[2]));
                return 0;
        }
        options(argv + 2, &plan, &keep);
        while (*cmd && strcmp(*cmd, "--") != 0)
                cmd++;
        if (!plan.adopted) {
                struct afz_spawn_plan how = {.argv = cmd + 1};
                int r = *cmd ? afz_spawn_start(&how, &spawn) : -EINVAL;
                if (r < 0)
                        return 2;
                job = spawn.pid;
        }
        pid_t keeper = keep ? start_keeper() : 0;
        open_hold(tier_named(argv[1]), &plan, keeper);
        if (!plan.adopted)
                say(afz_spawn_go(&spawn));
        serve(words);
        if (keeper > 0) {
                kill(keeper, SIGKILL);
                waitpid(keeper, NULL, 0);
        }
        afz_hold_close(&hold);
        afz_spawn_done(&spawn);
        afz_env_done(&env);
        printf("ok closed\n");
        return 0;
}
