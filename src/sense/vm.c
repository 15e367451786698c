/* Pages that come and go: swap, faults that wait for a disk, allocations that had to reclaim, OOM
 * kills. The kernel adds up every core's share at each reading, so it is not done in every tick;
 * pressure (psi.c) is what tells of trouble at once. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "count_of.h"
#include "sense.h"

/* No line of vmstat is longer: a name of at most 40 bytes and a number of at most 20. */
#define LONGEST_LINE 64

struct state {
        const struct afz_env *env;
        int fd;
};

/* In the order in which the kernel prints them. allocstall has a row for each zone; they add up. */
static const struct afz_key keys[] = {
        {"workingset_refault_anon", AFZ_VM_REFAULT_ANON, 0},
        {"workingset_refault_file", AFZ_VM_REFAULT_FILE, 0},
        {"pswpin", AFZ_VM_SWAP_IN, 0},
        {"pswpout", AFZ_VM_SWAP_OUT, 0},
        {"allocstall_dma", AFZ_VM_ALLOC_STALLS, 0},
        {"allocstall_dma32", AFZ_VM_ALLOC_STALLS, 0},
        {"allocstall_normal", AFZ_VM_ALLOC_STALLS, 0},
        {"allocstall_movable", AFZ_VM_ALLOC_STALLS, 0},
        {"allocstall_device", AFZ_VM_ALLOC_STALLS, 0},
        {"pgmajfault", AFZ_VM_MAJOR_FAULTS, 0},
        {"pgscan_direct", AFZ_VM_SCAN_DIRECT, 0},
        {"oom_kill", AFZ_VM_OOM_KILLS, 0},
};

static void vm_close(void *p)
{
        struct state *st = p;
        if (st)
                close(st->fd);
        free(st);
}

static int vm_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        (void)target;
        int fd = afz_env_open(env, AFZ_ROOT_PROC, "vmstat", 0);
        if (fd < 0)
                return afz_sense_missing(fd);
        struct state *st = malloc(sizeof *st);
        if (!st) {
                close(fd);
                return -ENOMEM;
        }
        *st = (struct state){env, fd};
        *ret_state = st;
        return 0;
}

/* Swap is counted in pages; everything of ours is in bytes. */
static void pages_to_bytes(struct afz_sample *s, enum afz_metric m, long page_bytes)
{
        int64_t pages;
        if (!afz_sample_get(s, m, &pages))
                return;
        afz_sample_forget(s, m);
        afz_sample_set_scaled(s, m, (uint64_t)pages, (uint64_t)page_bytes);
}

static int vm_read(void *p, struct afz_batch *out)
{
        struct state *st = p;
        char buf[16384];
        ssize_t n = afz_fd_read_lines(st->fd, buf, sizeof buf, LONGEST_LINE);
        if (n < 0)
                return (int)n;
        struct afz_sample *s = afz_batch_add(out, (struct afz_subject){AFZ_KIND_VM, 0, 0}, "vm");
        if (!s)
                return -ENOSPC;
        afz_span_each_key((struct afz_span){buf, (size_t)n}, keys, AFZ_COUNT_OF(keys),
                          afz_sample_add_key, s);
        pages_to_bytes(s, AFZ_VM_SWAP_IN, st->env->page_bytes);
        pages_to_bytes(s, AFZ_VM_SWAP_OUT, st->env->page_bytes);
        return 0;
}

const struct afz_sense afz_sense_vm = {
        .name = "vm",
        .what = "swapping, faults, reclaim and OOM kills of the machine",
        .every_ns = 500000000, /* 500 ms: enough for rates, and half of what a tick would cost */
        .max_samples = 1,
        .absent = "/proc/vmstat is not there: swapping and OOM kills cannot be seen",
        .denied = "/proc/vmstat may not be read",
        .open = vm_open,
        .read = vm_read,
        .close = vm_close,
};
