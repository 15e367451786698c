#include "board.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void *lab_board_map(const char *path, size_t size)
{
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
                return NULL;
        void *board = MAP_FAILED;
        if (ftruncate(fd, (off_t)size) == 0)
                board = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        close(fd);
        return board == MAP_FAILED ? NULL : board;
}

uint64_t lab_now_ns(void)
{
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void lab_page_fill(void *page, uint64_t seed)
{
        /* Noise made once, laid into each page at a place of its own: emulated, making it anew
         * would cost more than the page fault that is to be measured. */
        enum { NOISE_WORDS = 8192, WORDS = LAB_PAGE / 3 / sizeof(uint64_t) };
        static uint64_t noise[NOISE_WORDS];
        if (noise[0] == 0) {
                uint64_t x = 0x9e3779b97f4a7c15U;
                for (size_t i = 0; i < NOISE_WORDS; i++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        noise[i] = x;
                }
        }
        uint64_t *words = page;
        memcpy(words, noise + seed * 31 % (NOISE_WORDS - WORDS), WORDS * sizeof *words);
        words[0] = seed + 1;
}
