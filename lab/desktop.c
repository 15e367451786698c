/* lab-desktop - a desktop's stand-in: on a 50 ms beat it touches every page of 96 MiB of anonymous
 * memory and of 96 MiB of a file, and notes when it was through. A desktop that has to wait for its
 * pages is a desktop that is frozen.
 *
 * usage: lab-desktop BOARD FILE [UID]
 *
 * BOARD is the file of results (board.h), on tmpfs. FILE holds the file pages; it is made if it is
 * too short. With a UID it becomes that user after it has locked its own code, stack and board:
 * only what it touches may be slow.
 *
 * A beat that comes late swallows those that fell due meanwhile, so that the sum of lateness is
 * time on the clock, counted once. */
#include "board.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
        ANON_BYTES = 96 * LAB_MIB,
        FILE_BYTES = 96 * LAB_MIB,
        BEAT_NS = 50 * 1000 * 1000,
        WITNESS_NS = 10 * 1000 * 1000,
        WITNESS_PRIORITY = 50, /* real time, over everything but the kernel's own */
};

static _Atomic uint64_t
        witness_late_ns; /* worst since the last beat; the one thing two threads share */

static void sleep_until(uint64_t t_ns)
{
        struct timespec t = {(time_t)(t_ns / 1000000000U), (long)(t_ns % 1000000000U)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
                ;
}

static void *witness(void *unused)
{
        (void)unused;
        for (uint64_t due = lab_now_ns() + WITNESS_NS;; due += WITNESS_NS) {
                sleep_until(due);
                uint64_t now = lab_now_ns();
                if (now - due > atomic_load(&witness_late_ns))
                        atomic_store(&witness_late_ns, now - due);
                if (now > due)
                        due += (now - due) / WITNESS_NS * WITNESS_NS;
        }
        return NULL;
}

static int start_witness(void)
{
        pthread_attr_t attr;
        pthread_t thread;
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, 64 * 1024);
        pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
        pthread_attr_setschedparam(&attr,
                                   &(struct sched_param){.sched_priority = WITNESS_PRIORITY});
        if (pthread_create(&thread, &attr, witness, NULL) == 0)
                return 0;
        /* Who may not be ahead of others is a witness as good as any other program. */
        pthread_attr_setinheritsched(&attr, PTHREAD_INHERIT_SCHED);
        return pthread_create(&thread, &attr, witness, NULL);
}

/* What an ordinary user lacks, taken along. */
static int become(uid_t uid)
{
        struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
        if (setrlimit(RLIMIT_MEMLOCK, &all) < 0 || setrlimit(RLIMIT_RTPRIO, &all) < 0)
                return -1;
        return setresgid(uid, uid, uid) < 0 ? -1 : setresuid(uid, uid, uid);
}

static unsigned char *map_anon(void)
{
        unsigned char *anon =
                mmap(NULL, ANON_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (anon == MAP_FAILED)
                return NULL;
        /* A desktop's memory is many small things; and one huge page touched would keep 511 others
         * warm. */
        madvise(anon, ANON_BYTES, MADV_NOHUGEPAGE);
        for (size_t at = 0; at < ANON_BYTES; at += LAB_PAGE)
                lab_page_fill(anon + at, at / LAB_PAGE);
        return anon;
}

static unsigned char *map_file(int fd)
{
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0)
                return NULL;
        if (st.st_size < FILE_BYTES) {
                unsigned char page[LAB_PAGE] = {0};
                for (size_t at = 0; at < FILE_BYTES; at += LAB_PAGE) {
                        lab_page_fill(page, at / LAB_PAGE);
                        if (write(fd, page, sizeof page) != LAB_PAGE)
                                return NULL;
                }
                fsync(fd);
        }
        unsigned char *file = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        return file == MAP_FAILED ? NULL : file;
}

static void touch(unsigned char *anon, const unsigned char *file)
{
        for (size_t at = 0; at < ANON_BYTES; at += LAB_PAGE)
                (*(volatile unsigned char *)(anon + at + 64))++;
        for (size_t at = 0; at < FILE_BYTES; at += LAB_PAGE)
                (void)*(const volatile unsigned char *)(file + at);
}

static void beat_on(struct lab_desktop_board *board, unsigned char *anon, const unsigned char *file)
{
        touch(anon, file);
        board->ready = 1;

        uint64_t due = lab_now_ns() + BEAT_NS;
        for (size_t n = 0; n < LAB_BEATS_MAX; n++) {
                sleep_until(due);
                touch(anon, file);
                uint64_t end = lab_now_ns();
                board->beats[n] = (struct lab_beat){due, end, atomic_exchange(&witness_late_ns, 0)};
                atomic_thread_fence(memory_order_release);
                board->count = n + 1;
                due += BEAT_NS * (1 + (end - due) / BEAT_NS);
        }
}

int main(int argc, char **argv)
{
        if (argc < 3) {
                fprintf(stderr, "usage: lab-desktop BOARD FILE [UID]\n");
                return 2;
        }
        struct lab_desktop_board *board = lab_board_map(argv[1], sizeof *board);
        int fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (board == NULL || (argc > 3 && become((uid_t)atoi(argv[3])) < 0) ||
            start_witness() != 0 || mlockall(MCL_CURRENT) < 0) {
                perror("lab-desktop");
                return 1;
        }
        unsigned char *anon = map_anon();
        unsigned char *file = map_file(fd);
        if (anon == NULL || file == NULL) {
                perror("lab-desktop");
                return 1;
        }
        beat_on(board, anon, file);
        return 0;
}
