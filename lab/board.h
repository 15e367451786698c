/* What the lab's programs leave behind: small files on tmpfs, mapped and locked, so that neither
 * writing them nor the writer's death costs a disk access or loses a beat. The guest's driver
 * (guest.py, beats.py) reads them by the same layout. */
#ifndef AFZ_LAB_BOARD_H
#define AFZ_LAB_BOARD_H

#include <stddef.h>
#include <stdint.h>

/* The desktop's. All times are CLOCK_MONOTONIC. */
struct lab_beat {
        uint64_t due_ns;
        uint64_t end_ns;     /* when its last page had been touched */
        uint64_t witness_ns; /* how late a thread that needs no memory woke meanwhile: the
                                emulator's own hiccups */
};

enum { LAB_BEATS_MAX = 8192 }; /* 400 s of 50 ms */

struct lab_desktop_board {
        uint64_t ready; /* 1 once all pages are there */
        uint64_t count; /* of valid rows in beats */
        struct lab_beat beats[LAB_BEATS_MAX];
};

/* The job's. */
struct lab_job_board {
        uint64_t start_ns; /* the gate opened */
        uint64_t bytes;    /* grown so far */
        uint64_t first_ns; /* first and last growth: bytes over this time is the rate it really had
                            */
        uint64_t last_ns;
        uint64_t forks;
};

/* lab_board_map - the file `path`, made large enough. NULL with errno on failure. Never unmapped:
 * it lives as long as its process. */
void *lab_board_map(const char *path, size_t size);

uint64_t lab_now_ns(void);

/* lab_page_fill - memory as programs have it: a third of each page is random, so that compressed
 * swap gains about what it gains on a desktop, and no page is recognised as all the same. */
void lab_page_fill(void *page, uint64_t seed);

enum { LAB_PAGE = 4096, LAB_MIB = 1 << 20 };

#endif
