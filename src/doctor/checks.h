#ifndef AFZ_CHECKS_H
#define AFZ_CHECKS_H
/* Inside doctor: what a check is given, how it speaks, and the checks themselves.
 *
 * Facts that several checks need are gathered once, before the first check runs; a check only looks
 * and speaks.
 */
#include "cgroup_layout.h"
#include "doctor.h"
#include "manager.h"
#include "mount_list.h"

struct afz_box {
        bool vm, container;
        bool vm_known;      /* false: neither signs of a VM nor of bare metal could be read */
        char vm_name[48];   /* as its firmware calls it, or "" */
        const char *sign;   /* of the container */
        int wsl;            /* 0, or the version of WSL: 1, 2 */
        uint64_t ram_bytes; /* 0: unknown */
};

struct afz_doctor_ctx {
        const struct afz_env *env;
        const struct afz_doctor_effects *effects;
        uid_t uid;
        const struct afz_gpu_facts *gpu;
        const struct afz_probe_facts *probe;
        struct afz_mount_list mounts;
        struct afz_box box;
        struct afz_cgroup_layout cgroup;
        struct afz_manager manager;
        enum afz_tier forecast; /* from the files */
        const struct afz_trial *trial;
        size_t trials;
};

/* Which machine this is; box.c. Needs ctx->mounts. */
void afz_box_look(const struct afz_doctor_ctx *ctx, struct afz_box *ret);

/* Which tier the facts promise; check_protection.c. Needs all of the above. */
enum afz_tier afz_tier_forecast(const struct afz_doctor_ctx *ctx);

/* Tries the tiers from the best downwards until one holds; check_trial.c. Returns how many. */
size_t afz_try_tiers(const struct afz_doctor_ctx *ctx, struct afz_trial ret[AFZ_TIER_COUNT]);

/* The one that held, or NULL. */
const struct afz_trial *afz_proved_trial(const struct afz_doctor_ctx *ctx);

/* Sets level and sentence; returns the level, so that a check can end with it. */
enum afz_finding_level afz_find(struct afz_finding *ret, enum afz_finding_level level,
                                const char *format, ...) __attribute__((format(printf, 3, 4)));

/* UNKNOWN, because `what` gave this error. */
enum afz_finding_level afz_find_unread(struct afz_finding *ret, const char *what, int err);

/* Says what to do. The second form is for what only the kernel's owner can do: inside a container
 * it adds that it has to be done outside. */
void afz_fix(struct afz_finding *ret, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void afz_fix_kernel(const struct afz_doctor_ctx *ctx, struct afz_finding *ret, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* effects->may() below a root of the env, and for an absolute path. */
int afz_doctor_may(const struct afz_doctor_ctx *ctx, enum afz_root root, const char *path,
                   int mode);
int afz_doctor_may_abs(const struct afz_doctor_ctx *ctx, const char *path, int mode);

/* Whether a folder such as sys/module/nouveau is there: 1, 0, or -errno when we may not look. */
int afz_doctor_has(const struct afz_doctor_ctx *ctx, enum afz_root root, const char *path);

/* /proc/OURSELVES/name, as afz_env_read(). */
int afz_doctor_read_self(const struct afz_env *env, const char *name, char *buf, size_t cap,
                         struct afz_span *ret);

#define AFZ_CHECK(name)                                                                            \
        enum afz_finding_level afz_check_##name(const struct afz_doctor_ctx *ctx,                  \
                                                struct afz_finding *ret)

AFZ_CHECK(machine);
AFZ_CHECK(kernel);
AFZ_CHECK(wsl);

AFZ_CHECK(processes);
AFZ_CHECK(ptrace);
AFZ_CHECK(psi);
AFZ_CHECK(kernel_log);
AFZ_CHECK(probe);
AFZ_CHECK(python);
AFZ_CHECK(native_lines);
AFZ_CHECK(memory_reading);

AFZ_CHECK(cgroup);
AFZ_CHECK(delegation);
AFZ_CHECK(memory_limit);
AFZ_CHECK(systemd);
AFZ_CHECK(linger);
AFZ_CHECK(tier);
AFZ_CHECK(trial_scope);
AFZ_CHECK(trial_cgroup2);
AFZ_CHECK(trial_cgroup1);
AFZ_CHECK(trial_none);
AFZ_CHECK(oom_daemons);

AFZ_CHECK(swap);
AFZ_CHECK(swappiness);
AFZ_CHECK(shm);
AFZ_CHECK(overcommit);
AFZ_CHECK(huge_pages);

AFZ_CHECK(open_files);
AFZ_CHECK(locked_memory);
AFZ_CHECK(process_count);
AFZ_CHECK(address_space);

AFZ_CHECK(disk_home);
AFZ_CHECK(disk_tmp);
AFZ_CHECK(disk_state);

AFZ_CHECK(gpu);
AFZ_CHECK(gpu_driver);
AFZ_CHECK(gpu_access);
AFZ_CHECK(gpu_leftover);

#endif
