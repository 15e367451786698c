#ifndef AFZ_DOCTOR_THRESHOLDS_H
#define AFZ_DOCTOR_THRESHOLDS_H
/* Every number at which doctor changes its mind, with its unit and its reason. */
#include <stdint.h>

#define AFZ_MIB (UINT64_C(1) << 20)
#define AFZ_GIB (UINT64_C(1) << 30)

/* The oldest kernel that is supported: pidfds (5.3), PSI (4.20), cgroup v2's freezer (5.2). */
#define AFZ_DOCTOR_KERNEL_MAJOR 5
#define AFZ_DOCTOR_KERNEL_MINOR 4

/* A quarter of RAM: with less, swap is full before a leak is noticed, and gives no time to act. */
#define AFZ_DOCTOR_SWAP_MIN_DIVISOR 4
/* What to suggest: enough to push cold pages out, little enough to be written in seconds. */
#define AFZ_DOCTOR_SWAP_SUGGESTED_MAX_BYTES (16 * AFZ_GIB)

/* Above 100 the kernel prefers swapping to dropping cache: right for zram, wrong for a disk. */
#define AFZ_DOCTOR_SWAPPINESS_DISK_MAX 100

/* Loader workers hand batches over in /dev/shm: eight workers with two batches of 64 MiB each. */
#define AFZ_DOCTOR_SHM_MIN_BYTES (1 * AFZ_GIB)
/* The kernel gives it half of RAM; a little less is still that. */
#define AFZ_DOCTOR_SHM_USUAL_PERCENT 45
/* A tenth left: what fills it is usually left over from jobs that died. */
#define AFZ_DOCTOR_SHM_FREE_MIN_PERCENT 10

/* PyTorch passes tensors between processes as descriptors: 1024 are gone with a few workers. */
#define AFZ_DOCTOR_OPEN_FILES_MIN       4096
#define AFZ_DOCTOR_OPEN_FILES_SUGGESTED 65536
/* What the guard locks of itself, so that it runs while the machine swaps. */
#define AFZ_DOCTOR_LOCKED_MIN_BYTES (8 * AFZ_MIB)
/* Threads count too: 64 cores with a pool in each of 16 workers are a thousand. */
#define AFZ_DOCTOR_PROCESSES_MIN 4096

/* A checkpoint of a model of middle size, and the recording of a long run. */
#define AFZ_DOCTOR_DISK_HOME_MIN_BYTES  (5 * AFZ_GIB)
#define AFZ_DOCTOR_DISK_TMP_MIN_BYTES   (1 * AFZ_GIB)
#define AFZ_DOCTOR_DISK_STATE_MIN_BYTES (512 * AFZ_MIB)
#define AFZ_DOCTOR_DISK_FILES_MIN       1000

/* Older drivers count up to 600 MiB of their own as used on a large card. */
#define AFZ_DOCTOR_VRAM_LEFTOVER_BYTES (1 * AFZ_GIB)

#endif
