/* lab-job - what a job can do to a machine, each by its name.
 *
 * usage: lab-job NAME [NUMBER|FILE]
 *        lab-job gate FIFO CMD...     wait until FIFO is written to, then run CMD: all is set up
 * before the clock runs
 *
 * $LAB_BOARD names the file of results (board.h). Sizes are MiB, rates MB/s as in the lab's tables.
 */
#include "board.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
        WORKERS = 8,
        LEAK_END_MIB = 4096, /* more than RAM and swap of the lab: somebody has to act */
        FOREVER_S = 600,     /* longer than any cell */
        WORK_S = 20,         /* of a job that does nothing wrong */
        FORKS_MAX = 100000,
};

static struct lab_job_board *board;

static void sleep_ns(uint64_t ns)
{
        struct timespec t = {(time_t)(ns / 1000000000U), (long)(ns % 1000000000U)};
        nanosleep(&t, NULL);
}

static void grown(size_t bytes)
{
        uint64_t now = lab_now_ns();
        if (board->first_ns == 0)
                board->first_ns = now;
        board->last_ns = now;
        board->bytes += bytes;
}

static unsigned char *reserve(size_t bytes)
{
        unsigned char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
                perror("lab-job: mmap");
                exit(1);
        }
        return p;
}

static void fill(unsigned char *p, size_t bytes, uint64_t seed)
{
        for (size_t at = 0; at < bytes; at += LAB_PAGE)
                lab_page_fill(p + at, seed + at / LAB_PAGE);
}

/* grow - `mib` at `rate` MB/s, 0 for as fast as it goes. A pause (a brake, a stall) is not made up
 * for afterwards: real leaks hang on the program's progress, not on the clock. */
static unsigned char *grow(size_t mib, unsigned long rate)
{
        enum { SLACK_NS = 100 * 1000 * 1000 };
        unsigned char *p = reserve(mib * LAB_MIB);
        uint64_t due = lab_now_ns();
        for (size_t i = 0; i < mib; i++) {
                fill(p + i * LAB_MIB, LAB_MIB, i * (LAB_MIB / LAB_PAGE));
                grown(LAB_MIB);
                if (rate == 0)
                        continue;
                uint64_t now = lab_now_ns();
                due += LAB_MIB * 1000U / rate;
                if (due > now)
                        sleep_ns(due - now);
                else if (now - due > SLACK_NS)
                        due = now - SLACK_NS;
        }
        return p;
}

/* wander - touches random pages of p for `seconds`; writes, as training does. */
static void wander(unsigned char *p, size_t bytes, unsigned seconds)
{
        uint64_t end = lab_now_ns() + seconds * 1000000000ULL,
                 x = 88172645463325252U ^ (uint64_t)getpid();
        while (lab_now_ns() < end) {
                for (int i = 0; i < 256; i++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        p[x % (bytes / LAB_PAGE) * LAB_PAGE + 128]++;
                }
        }
}

static unsigned long number_or(const char *text, unsigned long otherwise)
{
        return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

/* ---- the jobs: each returns the program's exit status
 * -------------------------------------------------------- */

static int job_oversize(const char *arg)
{
        size_t mib = number_or(arg, 1400);
        wander(grow(mib, 0), mib * LAB_MIB, FOREVER_S);
        return 0;
}

static int job_leak(const char *arg)
{
        grow(LEAK_END_MIB, number_or(arg, 0));
        sleep(FOREVER_S);
        return 0;
}

static int job_ignores_term(const char *arg)
{
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        return job_leak(arg != NULL ? arg : "200");
}

/* One system call: no signal but SIGKILL ends it before it is through. */
static int job_burst(const char *arg)
{
        size_t bytes = number_or(arg, 2048) * LAB_MIB;
        grown(0);
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (p == MAP_FAILED)
                return 1;
        grown(bytes);
        wander(p, bytes, FOREVER_S);
        return 0;
}

/* fork_workers - the children run `work` on p and leave; the parent waits for all. */
static int fork_workers(unsigned char *p, size_t bytes, void (*work)(unsigned char *, size_t))
{
        for (int i = 0; i < WORKERS; i++) {
                pid_t pid = fork();
                if (pid < 0)
                        return 1;
                if (pid == 0) {
                        work(p, bytes);
                        _exit(0);
                }
        }
        int failed = 0, status;
        while (wait(&status) > 0)
                failed |= status != 0;
        return failed;
}

static void copy_all(unsigned char *p, size_t bytes)
{
        for (size_t at = 0; at < bytes; at += LAB_PAGE) {
                p[at + 256]++;
                if (at % LAB_MIB == 0)
                        grown(LAB_MIB);
        }
        wander(p, bytes, FOREVER_S);
}

static int job_workers(const char *arg)
{
        size_t mib = number_or(arg, 240);
        return fork_workers(grow(mib, 0), mib * LAB_MIB, copy_all);
}

static void read_all(unsigned char *p, size_t bytes)
{
        uint64_t end = lab_now_ns() + WORK_S * 1000000000ULL;
        while (lab_now_ns() < end) {
                for (size_t at = 0; at < bytes; at += LAB_PAGE)
                        (void)*(volatile unsigned char *)(p + at);
                sleep_ns(200 * 1000 *
                         1000); /* eight of them must not take an emulated processor whole */
        }
}

/* 500 MB of 2 GB, as one meets it, is 250 of the lab's 1 GiB: the sum of RSS is 2.2 GiB, the need
 * 250 MiB. */
static int job_shared_workers(const char *arg)
{
        size_t mib = number_or(arg, 250);
        return fork_workers(grow(mib, 100), mib * LAB_MIB, read_all);
}

/* tmpfs allows half the RAM: that full, the job goes on with memory of its own, as a data loader
 * does. */
static int job_shm(const char *arg)
{
        static unsigned char block[LAB_MIB];
        fill(block, sizeof block, 1);
        int fd = open("/dev/shm/lab-job", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return 1;
        while (write(fd, block, sizeof block) == (ssize_t)sizeof block)
                grown(sizeof block);
        size_t mib = number_or(arg, 700);
        wander(grow(mib, 0), mib * LAB_MIB, FOREVER_S);
        return 0;
}

static int job_fork_storm(const char *arg)
{
        unsigned long max = number_or(arg, FORKS_MAX);
        uint64_t end = lab_now_ns() + FOREVER_S * 1000000000ULL;
        while (board->forks < max && lab_now_ns() < end) {
                pid_t pid = fork();
                if (pid == 0) {
                        fill(reserve(256 * 1024), 256 * 1024, (uint64_t)getpid());
                        for (;;)
                                pause();
                }
                if (pid > 0)
                        board->forks++;
                else
                        sleep_ns(10 * 1000 * 1000);
        }
        return 0;
}

static int job_page_cache(const char *path)
{
        static unsigned char block[LAB_MIB];
        int fd = open(path != NULL ? path : "/lab-4g", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 1;
        ssize_t n;
        while ((n = read(fd, block, sizeof block)) > 0)
                grown((size_t)n);
        return n < 0;
}

/* Most of it is cold, as a data set that is being read through is; a part is worked on. Ends by
 * itself. */
static int job_steady(const char *arg)
{
        size_t mib = number_or(arg, 350);
        wander(grow(mib, 100), mib / 4 * LAB_MIB, WORK_S);
        return 0;
}

/* Goes through all of it over and over, and changes it: what does not fit into RAM comes back from
 * swap each time, and something else has to go there. Ends by itself. */
static int job_epochs(const char *arg)
{
        size_t bytes = number_or(arg, 800) * LAB_MIB;
        unsigned char *p = grow(bytes / LAB_MIB, 100);
        uint64_t end = lab_now_ns() + 2 * WORK_S * 1000000000ULL;
        for (size_t at = 0; lab_now_ns() < end; at = (at + LAB_PAGE) % bytes)
                p[at + 128]++;
        return 0;
}

/* Not a job: what stands beside one. It stays a while after its growth, working on a part, as a
 * browser does. */
static int job_neighbour(const char *arg)
{
        size_t mib = number_or(arg, 490);
        sleep(4);
        wander(grow(mib, 50), mib / 4 * LAB_MIB, FOREVER_S);
        return 0;
}

/* Rises to `mib`, stays for a second and a half, gives back all but a quarter and goes on. */
static int job_peak(const char *arg)
{
        size_t mib = number_or(arg, 372);
        size_t keep = mib / 4 * LAB_MIB;
        unsigned char *p = grow(mib, 100);
        sleep_ns(1500 * 1000 * 1000ULL);
        munmap(p + keep, mib * LAB_MIB - keep);
        wander(p, keep, 5);
        return 0;
}

static const struct {
        const char *name;
        int (*run)(const char *arg);
} jobs[] = {
        {"oversize", job_oversize},
        {"leak", job_leak},
        {"burst", job_burst},
        {"workers", job_workers},
        {"shm", job_shm},
        {"ignores-term", job_ignores_term},
        {"fork-storm", job_fork_storm},
        {"page-cache", job_page_cache},
        {"steady", job_steady},
        {"epochs", job_epochs},
        {"neighbour", job_neighbour},
        {"shared-workers", job_shared_workers},
        {"peak", job_peak},
};

static int gate(const char *fifo, char **command)
{
        char byte;
        int fd = open(fifo, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, &byte, 1) != 1) {
                perror("lab-job: gate");
                return 125;
        }
        board->start_ns = lab_now_ns();
        execvp(command[0], command);
        perror(command[0]);
        return errno == ENOENT ? 127 : 126;
}

int main(int argc, char **argv)
{
        static struct lab_job_board nowhere;
        const char *path = getenv("LAB_BOARD");
        board = path != NULL ? lab_board_map(path, sizeof *board) : NULL;
        if (board == NULL)
                board = &nowhere;
        if (argc >= 4 && strcmp(argv[1], "gate") == 0)
                return gate(argv[2], argv + 3);
        for (size_t i = 0; argc >= 2 && i < sizeof jobs / sizeof jobs[0]; i++)
                if (strcmp(argv[1], jobs[i].name) == 0)
                        return jobs[i].run(argc > 2 ? argv[2] : NULL);
        fprintf(stderr, "usage: lab-job NAME [NUMBER|FILE] | lab-job gate FIFO CMD...\n");
        return 2;
}
