#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"

const char *afz_finding_level_name(enum afz_finding_level level)
{
        static const char *const name[AFZ_FINDING_LEVELS] = {
                [AFZ_FINDING_OK] = "ok",           [AFZ_FINDING_WARN] = "warn",
                [AFZ_FINDING_MISSING] = "missing", [AFZ_FINDING_UNKNOWN] = "unknown",
                [AFZ_FINDING_SKIP] = "skip",
        };
        return (unsigned)level < AFZ_FINDING_LEVELS ? name[level] : "unknown";
}

const char *afz_doctor_tier_name(enum afz_tier tier)
{
        return (unsigned)tier < AFZ_TIER_COUNT ? afz_tier_name(tier) : "unknown";
}

/* Names and versions come from files and variables that anybody may have written. */
static void clean(char *s)
{
        for (; *s; s++)
                if ((unsigned char)*s < 0x20 || *s == 0x7f)
                        *s = '?';
}

enum afz_finding_level afz_find(struct afz_finding *ret, enum afz_finding_level level,
                                const char *format, ...)
{
        va_list args;
        va_start(args, format);
        vsnprintf(ret->text, sizeof ret->text, format, args);
        va_end(args);
        clean(ret->text);
        ret->level = level;
        return level;
}

enum afz_finding_level afz_find_unread(struct afz_finding *ret, const char *what, int err)
{
        const char *why = err == -ENODATA  ? "it is not there"
                          : err == -EINVAL ? "it holds something else than expected"
                                           : strerror(-err);
        return afz_find(ret, AFZ_FINDING_UNKNOWN, "%s could not be read: %s", what, why);
}

void afz_fix(struct afz_finding *ret, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        vsnprintf(ret->fix, sizeof ret->fix, format, args);
        va_end(args);
        clean(ret->fix);
}

void afz_fix_kernel(const struct afz_doctor_ctx *ctx, struct afz_finding *ret, const char *format,
                    ...)
{
        va_list args;
        va_start(args, format);
        vsnprintf(ret->fix, sizeof ret->fix, format, args);
        va_end(args);
        clean(ret->fix);
        size_t n = strlen(ret->fix);
        if (ctx->box.container)
                snprintf(ret->fix + n, sizeof ret->fix - n, " (on the host, not in the container)");
}

int afz_doctor_may(const struct afz_doctor_ctx *ctx, enum afz_root root, const char *path, int mode)
{
        int fd = ctx->env->root_fd[root];
        return fd < 0 ? -ENODATA : ctx->effects->may(ctx->effects->ctx, fd, path, mode);
}

int afz_doctor_may_abs(const struct afz_doctor_ctx *ctx, const char *path, int mode)
{
        return ctx->effects->may(ctx->effects->ctx, -1, path, mode);
}

int afz_doctor_has(const struct afz_doctor_ctx *ctx, enum afz_root root, const char *path)
{
        int r = afz_doctor_may(ctx, root, path, F_OK);
        if (r == -ENOENT || r == -ENOTDIR)
                return 0;
        return r < 0 ? r : 1;
}

int afz_doctor_read_self(const struct afz_env *env, const char *name, char *buf, size_t cap,
                         struct afz_span *ret)
{
        char path[64];
        int r = afz_path(path, sizeof path, "%llu/%s", (unsigned long long)env->self_pid, name);
        return r < 0 ? r : afz_env_read(env, AFZ_ROOT_PROC, path, buf, cap, ret);
}
