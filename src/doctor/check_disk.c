/* Room where jobs and Antifreeze write. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "checks.h"
#include "doctor_thresholds.h"
#include "fs_type.h"
#include "quantity.h"

static const char *variable(const struct afz_doctor_ctx *ctx, const char *name)
{
        const char *v = ctx->effects->variable(ctx->effects->ctx, name);
        return v && v[0] == '/' ? v : NULL;
}

static enum afz_finding_level look_at(const struct afz_doctor_ctx *ctx, struct afz_finding *ret,
                                      const char *path, uint64_t min_bytes)
{
        struct afz_fs_space space;
        char point[4096], left[AFZ_SIZE_TEXT_CAP];
        if (ctx->mounts.err < 0)
                return afz_find_unread(ret, "the list of mounts", ctx->mounts.err);
        const struct afz_mount *mount =
                afz_mount_of_linked(&ctx->mounts, path, ctx->effects->link, ctx->effects->ctx);
        if (!mount || afz_mount_unescape(mount->point, point, sizeof point) < 0)
                return afz_find(ret, AFZ_FINDING_UNKNOWN, "which disk %s is on is not told", path);
        if (!afz_mount_answers(mount))
                return afz_find(
                        ret, AFZ_FINDING_UNKNOWN,
                        "%s is on %.*s: not asked, since one that is dead would never answer", path,
                        (int)mount->type.n, mount->type.p);
        int r = ctx->env->fs_space(ctx->env, point, &space);
        if (r < 0)
                return afz_find_unread(ret, point, r);
        afz_format_size(left, sizeof left, space.available_bytes);
        if (space.total_bytes > 0 && space.available_bytes < min_bytes) {
                afz_fix(ret, "du -xh --max-depth=1 %s | sort -h, and remove what is not needed",
                        path);
                return afz_find(ret, AFZ_FINDING_WARN, "only %s left on %s for %s", left, point,
                                path);
        }
        if (space.files > 0 && space.files_free < AFZ_DOCTOR_DISK_FILES_MIN) {
                afz_fix(ret,
                        "du -x --inodes --max-depth=1 %s | sort -n, and remove what is not "
                        "needed",
                        path);
                return afz_find(ret, AFZ_FINDING_WARN,
                                "room for only %" PRIu64 " more files on %s, though %s are free",
                                space.files_free, point, left);
        }
        return afz_find(ret, AFZ_FINDING_OK, "%s free for %s%s", left, path,
                        afz_fs_type_of(mount)->class == AFZ_FS_MEMORY
                                ? " (in memory: what is there takes RAM)"
                                : "");
}

AFZ_CHECK(disk_home)
{
        const char *home = variable(ctx, "HOME");
        if (!home)
                return afz_find(ret, AFZ_FINDING_UNKNOWN, "HOME is not set");
        return look_at(ctx, ret, home, AFZ_DOCTOR_DISK_HOME_MIN_BYTES);
}

AFZ_CHECK(disk_tmp)
{
        const char *tmp = variable(ctx, "TMPDIR");
        return look_at(ctx, ret, tmp ? tmp : "/tmp", AFZ_DOCTOR_DISK_TMP_MIN_BYTES);
}

AFZ_CHECK(disk_state)
{
        char path[4096];
        const char *state = variable(ctx, "XDG_STATE_HOME"), *home = variable(ctx, "HOME");
        int r = state  ? afz_path(path, sizeof path, "%s/antifreeze", state)
                : home ? afz_path(path, sizeof path, "%s/.local/state/antifreeze", home)
                       : -ENODATA;
        if (r < 0)
                return afz_find(ret, AFZ_FINDING_UNKNOWN,
                                "neither XDG_STATE_HOME nor HOME say where runs would be recorded");
        return look_at(ctx, ret, path, AFZ_DOCTOR_DISK_STATE_MIN_BYTES);
}
