#include "aide_work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "count_of.h"
#include "pidfd.h"
#include "proc_read.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

/* One call pages out no more than this, so that the aide hears of the guard's end in between: 64
 * MiB are 2 s on a disk of 30 MB/s. */
#define SQUEEZE_BYTES (UINT64_C(64) << 20)

static int read_file(const struct afz_env *env, uint64_t pid, const char *file, char *buf,
                     size_t cap, struct afz_span *ret)
{
        char path[48];
        snprintf(path, sizeof path, "%llu/%s", (unsigned long long)pid, file);
        int r = afz_env_read(env, AFZ_ROOT_PROC, path, buf, cap, ret);
        return r == -ENOENT ? -ESRCH : r;
}

/* Offsets into struct afz_need_pss. */
#define FIELD(name) ((int)offsetof(struct afz_need_pss, name))

static void add_field(void *ctx, int offset, uint64_t value)
{
        uint64_t *field = (uint64_t *)(void *)((char *)ctx + offset);
        *field += value;
}

static const struct afz_key status_keys[] = {
        {"RssAnon", FIELD(rss_anon_bytes), 0},
        {"RssShmem", FIELD(rss_shmem_bytes), 0},
        {"VmSwap", FIELD(rss_swap_bytes), 0},
};

/* Anonymous pages that nobody else has are dirty; clean private ones are files. */
static const struct afz_key pss_keys[] = {
        {"Pss_Anon", FIELD(anon_bytes), 0},
        {"Pss_Shmem", FIELD(shmem_bytes), 0},
        {"Private_Dirty", FIELD(private_bytes), 0},
        {"SwapPss", FIELD(swap_bytes), 0},
};

void afz_aide_read_pss(const struct afz_env *env, struct afz_aide_row *row)
{
        char buf[4096];
        struct afz_span text;
        struct afz_need_pss pss = {0};
        struct afz_proc_stat st;
        uint64_t start_ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        int r = read_file(env, row->pid, "status", buf, sizeof buf, &text);
        if (r >= 0)
                afz_span_each_key(text, status_keys, AFZ_COUNT_OF(status_keys), add_field, &pss);
        if (r >= 0)
                r = read_file(env, row->pid, "smaps_rollup", buf, sizeof buf, &text);
        size_t n = 0;
        if (r >= 0)
                n = afz_span_each_key(text, pss_keys, AFZ_COUNT_OF(pss_keys), add_field, &pss);
        /* Pss_Anon came with 5.4; a file without it is no answer. */
        if (r >= 0 && n < AFZ_COUNT_OF(pss_keys))
                r = -ENODATA;
        if (r >= 0)
                r = afz_proc_stat_check(env, row->pid, row->start_ticks, buf, &st);
        if (r >= 0) {
                row->faults = st.minor_faults;
                row->inherits = (st.flags & AFZ_PF_FORKNOEXEC) != 0;
        }
        row->cost_ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
        row->result = r < 0 ? r : 0;
        row->pss = pss;
}

void afz_aide_release(const struct afz_env *env, struct afz_aide_row *row)
{
        int fd = afz_proc_open(env, row->pid, row->start_ticks);
        row->result = fd < 0 ? fd : afz_pidfd_release_memory(fd);
        if (fd >= 0)
                close(fd);
}

/* "START-END rw-p 00000000 00:00 0 [heap]": memory of its own with no file behind it. */
static bool is_anonymous(struct afz_span line, uint64_t *ret_start, uint64_t *ret_end)
{
        struct afz_span word, mode, offset, device;
        uint64_t start, end, inode;
        if (afz_span_take_hex(&line, &start) < 0 || afz_span_take_prefix(&line, "-") < 0 ||
            afz_span_take_hex(&line, &end) < 0 || afz_span_take_word(&line, &mode) < 0 ||
            afz_span_take_word(&line, &offset) < 0 || afz_span_take_word(&line, &device) < 0 ||
            afz_span_take_u64(&line, &inode) < 0)
                return false;
        if (inode != 0 || !afz_span_eq(mode, "rw-p") || end <= start)
                return false;
        if (afz_span_take_word(&line, &word) == 0 && !afz_span_eq(word, "[heap]") &&
            !afz_span_starts(word, "[anon"))
                return false; /* [stack], [vvar]... */
        *ret_start = start;
        *ret_end = end;
        return true;
}

static uint64_t page_out(int pidfd, uint64_t start, uint64_t end, uint64_t bytes, int *ret_error)
{
        uint64_t done = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
        bytes = bytes / page * page;
        while (start < end && done < bytes) {
                uint64_t n = end - start < SQUEEZE_BYTES ? end - start : SQUEEZE_BYTES;
                if (n > bytes - done)
                        n = bytes - done;
                struct iovec range = {.iov_base = (void *)(uintptr_t)start, .iov_len = (size_t)n};
                if (syscall(SYS_process_madvise, pidfd, &range, 1UL, MADV_PAGEOUT, 0U) < 0) {
                        *ret_error = -errno;
                        if (errno != EINVAL) /* a range with locked pages is passed over */
                                return done;
                }
                start += n;
                done += n;
        }
        return done;
}

uint64_t afz_aide_squeeze(const struct afz_env *env, struct afz_aide_row *row, uint64_t bytes)
{
        char path[48], line[512];
        uint64_t done = 0, start, end;
        int fd = afz_proc_open(env, row->pid, row->start_ticks), error = 0;
        snprintf(path, sizeof path, "%llu/maps", (unsigned long long)row->pid);
        int maps_fd = fd >= 0 ? afz_env_open(env, AFZ_ROOT_PROC, path, 0) : -1;
        FILE *maps = maps_fd >= 0 ? fdopen(maps_fd, "re") : NULL;
        while (maps && done < bytes && fgets(line, sizeof line, maps))
                if (is_anonymous(afz_span_str(line), &start, &end))
                        done += page_out(fd, start, end, bytes - done, &error);
        if (maps)
                fclose(maps);
        else if (maps_fd >= 0)
                close(maps_fd);
        if (fd >= 0)
                close(fd);
        row->result = fd < 0 ? fd : error;
        return done;
}
