/* What happens when RAM is full: swap, /dev/shm, overcommit, huge pages. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "checks.h"
#include "doctor_thresholds.h"
#include "quantity.h"

struct swaps {
        uint64_t disk_bytes, zram_bytes;
};

/* "/dev/dm-1  partition  8388604  0  -2", below a line of headings. */
static int read_swaps(const struct afz_env *env, struct swaps *ret)
{
        char buf[16384];
        struct afz_span text, line;
        struct swaps sum = {0};
        int r = afz_env_read(env, AFZ_ROOT_PROC, "swaps", buf, sizeof buf, &text);
        if (r < 0)
                return r;
        if (afz_span_take_line(&text, &line) < 0 || !afz_span_starts(line, "Filename"))
                return -EINVAL;
        while (afz_span_take_line(&text, &line) == 0) {
                struct afz_span name, type;
                uint64_t kib;
                if (afz_span_take_word(&line, &name) < 0 || afz_span_take_word(&line, &type) < 0 ||
                    afz_span_take_u64(&line, &kib) < 0 || kib > UINT64_MAX >> 20)
                        return -EINVAL;
                if (afz_span_starts(name, "/dev/zram"))
                        sum.zram_bytes += kib * 1024;
                else
                        sum.disk_bytes += kib * 1024;
        }
        *ret = sum;
        return 0;
}

static void fix_swap(const struct afz_doctor_ctx *ctx, struct afz_finding *ret)
{
        char size[AFZ_SIZE_TEXT_CAP];
        uint64_t want = ctx->box.ram_bytes / 2;
        if (want > AFZ_DOCTOR_SWAP_SUGGESTED_MAX_BYTES)
                want = AFZ_DOCTOR_SWAP_SUGGESTED_MAX_BYTES;
        want = want < AFZ_GIB ? AFZ_GIB : want / AFZ_GIB * AFZ_GIB;
        afz_format_size(size, sizeof size, want);
        if (ctx->box.wsl == 2)
                afz_fix(ret,
                        "in %%UserProfile%%\\.wslconfig, under [wsl2], set swap=%sB; then, in "
                        "Windows: wsl --shutdown",
                        size);
        else
                afz_fix_kernel(ctx, ret,
                               "sudo fallocate -l %s /antifreeze.swap && sudo chmod 600 "
                               "/antifreeze.swap && sudo mkswap /antifreeze.swap && sudo swapon "
                               "/antifreeze.swap",
                               size);
}

AFZ_CHECK(swap)
{
        struct swaps swaps;
        char disk[AFZ_SIZE_TEXT_CAP], zram[AFZ_SIZE_TEXT_CAP], ram[AFZ_SIZE_TEXT_CAP];
        int r = read_swaps(ctx->env, &swaps);
        if (r < 0)
                return afz_find_unread(ret, "/proc/swaps", r);
        afz_format_size(disk, sizeof disk, swaps.disk_bytes);
        afz_format_size(zram, sizeof zram, swaps.zram_bytes);
        afz_format_size(ram, sizeof ram, ctx->box.ram_bytes);
        if (swaps.disk_bytes == 0 && swaps.zram_bytes == 0) {
                fix_swap(ctx, ret);
                return afz_find(ret, AFZ_FINDING_MISSING,
                                "none: nothing cold can be pushed out, a full RAM stalls or kills "
                                "at once");
        }
        if (swaps.disk_bytes == 0) {
                fix_swap(ctx, ret);
                return afz_find(ret, AFZ_FINDING_WARN,
                                "%s, all on zram: what is swapped still takes RAM, and tensors "
                                "hardly compress",
                                zram);
        }
        if (ctx->box.ram_bytes && swaps.disk_bytes < AFZ_DOCTOR_SWAP_SUGGESTED_MAX_BYTES &&
            swaps.disk_bytes < ctx->box.ram_bytes / AFZ_DOCTOR_SWAP_MIN_DIVISOR) {
                fix_swap(ctx, ret);
                return afz_find(ret, AFZ_FINDING_WARN,
                                "%s on disk is little beside %s of RAM: it is full before there is "
                                "time to act",
                                disk, ram);
        }
        if (swaps.zram_bytes)
                return afz_find(ret, AFZ_FINDING_OK, "%s on disk, %s on zram", disk, zram);
        return afz_find(ret, AFZ_FINDING_OK, "%s on disk", disk);
}

AFZ_CHECK(swappiness)
{
        struct swaps swaps;
        uint64_t v;
        int r = read_swaps(ctx->env, &swaps);
        if (r == 0 && swaps.disk_bytes == 0 && swaps.zram_bytes == 0)
                return AFZ_FINDING_SKIP;
        r = afz_env_read_u64(ctx->env, AFZ_ROOT_PROC, "sys/vm/swappiness", &v);
        if (r < 0)
                return afz_find_unread(ret, "/proc/sys/vm/swappiness", r);
        if (v == 0) {
                afz_fix_kernel(ctx, ret, "sudo sysctl vm.swappiness=60");
                return afz_find(ret, AFZ_FINDING_WARN,
                                "0: swap is used only when it is nearly too late");
        }
        if (v > AFZ_DOCTOR_SWAPPINESS_DISK_MAX && swaps.disk_bytes > 0 && swaps.zram_bytes == 0) {
                afz_fix_kernel(ctx, ret, "sudo sysctl vm.swappiness=60");
                return afz_find(ret, AFZ_FINDING_WARN,
                                "%" PRIu64 ": made for zram; on a disk it swaps too eagerly", v);
        }
        return afz_find(ret, AFZ_FINDING_OK, "%" PRIu64, v);
}

static void fix_shm(const struct afz_doctor_ctx *ctx, struct afz_finding *ret)
{
        if (ctx->box.container)
                afz_fix(ret, "docker run --shm-size=8g (or --ipc=host); in Kubernetes an emptyDir "
                             "with medium: Memory at /dev/shm");
        else
                afz_fix(ret, "sudo mount -o remount,size=50%% /dev/shm");
}

/* Half of RAM is the kernel's default and all that can be had on a small machine. */
static bool is_small_shm(const struct afz_doctor_ctx *ctx, uint64_t bytes)
{
        uint64_t usual = ctx->box.ram_bytes / 100 * AFZ_DOCTOR_SHM_USUAL_PERCENT;
        return bytes < AFZ_DOCTOR_SHM_MIN_BYTES && (usual == 0 || bytes < usual);
}

AFZ_CHECK(shm)
{
        struct afz_fs_space space;
        char total[AFZ_SIZE_TEXT_CAP], left[AFZ_SIZE_TEXT_CAP];
        if (ctx->mounts.err < 0)
                return afz_find_unread(ret, "the list of mounts", ctx->mounts.err);
        if (!afz_mount_at(&ctx->mounts, "/dev/shm")) {
                afz_fix(ret, ctx->box.container
                                     ? "docker run --shm-size=8g (or --ipc=host)"
                                     : "sudo mount -t tmpfs -o size=50%% tmpfs /dev/shm");
                return afz_find(ret, AFZ_FINDING_MISSING,
                                "nothing is mounted at /dev/shm: loader workers cannot share "
                                "batches");
        }
        int r = ctx->env->fs_space(ctx->env, "/dev/shm", &space);
        if (r < 0)
                return afz_find_unread(ret, "the size of /dev/shm", r);
        afz_format_size(total, sizeof total, space.total_bytes);
        afz_format_size(left, sizeof left, space.available_bytes);
        /* A tmpfs mounted with size=0 has no bound of its own. */
        if (space.total_bytes == 0)
                return afz_find(ret, AFZ_FINDING_OK, "without a bound of its own");
        if (is_small_shm(ctx, space.total_bytes)) {
                fix_shm(ctx, ret);
                return afz_find(ret, AFZ_FINDING_WARN,
                                "only %s: DataLoader workers die of it with \"bus error\"%s", total,
                                space.total_bytes == 64 * AFZ_MIB ? " (Docker's default)" : "");
        }
        if (space.available_bytes < space.total_bytes / 100 * AFZ_DOCTOR_SHM_FREE_MIN_PERCENT) {
                afz_fix(ret, "ls -l /dev/shm, and rm what no running job uses (sudo fuser -v "
                             "/dev/shm/*)");
                return afz_find(ret, AFZ_FINDING_WARN,
                                "%s left of %s: files there are RAM, and outlive the job that made "
                                "them",
                                left, total);
        }
        return afz_find(ret, AFZ_FINDING_OK, "%s, %s of it free", total, left);
}

AFZ_CHECK(overcommit)
{
        uint64_t v;
        int r = afz_env_read_u64(ctx->env, AFZ_ROOT_PROC, "sys/vm/overcommit_memory", &v);
        if (r < 0)
                return afz_find_unread(ret, "/proc/sys/vm/overcommit_memory", r);
        if (v == 0)
                return afz_find(ret, AFZ_FINDING_OK, "0: the kernel's usual judgement");
        if (v == 1)
                return afz_find(ret, AFZ_FINDING_OK,
                                "1: every allocation succeeds, also what will never fit");
        afz_fix_kernel(ctx, ret, "sudo sysctl vm.overcommit_memory=0");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "%" PRIu64 ": fork and CUDA's large reservations fail though memory is "
                        "free",
                        v);
}

AFZ_CHECK(huge_pages)
{
        char buf[128];
        struct afz_span text, word;
        int r = afz_env_read(ctx->env, AFZ_ROOT_SYS, "kernel/mm/transparent_hugepage/enabled", buf,
                             sizeof buf, &text);
        if (r == -ENOENT && afz_doctor_has(ctx, AFZ_ROOT_SYS, "kernel/mm") == 1)
                return afz_find(ret, AFZ_FINDING_OK, "not in this kernel");
        if (r < 0)
                return afz_find_unread(ret, "the transparent huge pages' setting", r);
        while (afz_span_take_word(&text, &word) == 0) {
                if (afz_span_eq(word, "[always]"))
                        return afz_find(ret, AFZ_FINDING_OK,
                                        "always: faster, but sparse memory takes up to 2 MiB a "
                                        "touch");
                if (afz_span_eq(word, "[madvise]"))
                        return afz_find(ret, AFZ_FINDING_OK, "madvise: where programs ask for it");
                if (afz_span_eq(word, "[never]"))
                        return afz_find(ret, AFZ_FINDING_OK, "never");
        }
        return afz_find_unread(ret, "the transparent huge pages' setting", -EINVAL);
}
