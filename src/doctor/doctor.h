#ifndef AFZ_DOCTOR_H
#define AFZ_DOCTOR_H
/* Finds out what sight and protection are possible on this machine, and what is risky on it.
 *
 *      struct afz_doctor_input in;
 *      afz_doctor_input_live(&env, &in);
 *      in.gpu = &gpu_facts;
 *      struct afz_diagnosis d;
 *      afz_doctor_run(&in, &d);
 *
 * All that is looked at comes through the input: files through the env's roots, the rest through
 * afz_doctor_effects, so that a recorded tree and a few fakes are a whole machine. Nothing here
 * changes the machine, and nothing can hang: network mounts are not touched, and the one question
 * that goes to another program (the systemd manager) is asked by a child with a deadline. The tiers
 * are tried on a child of our own (trial.h), which is gone with all of its traces when we return.
 *
 * A check says what it found in one sentence and, when something is wrong, the way to put it right.
 * What we may not look at is UNKNOWN and never OK. To add a check: write one function, declare it
 * in checks.h, add one row to afz_check_table.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"
#include "gpu_facts.h"
#include "hold.h"
#include "probe_facts.h"
#include "trial.h"

enum afz_finding_level {
        AFZ_FINDING_OK,
        AFZ_FINDING_WARN,    /* works, but is risky or less than it could be */
        AFZ_FINDING_MISSING, /* not offered here */
        AFZ_FINDING_UNKNOWN, /* we could not look */
        AFZ_FINDING_SKIP,    /* does not apply to this machine: not listed */
        AFZ_FINDING_LEVELS
};

/* "ok", "warn", "missing", "unknown", "skip" */
const char *afz_finding_level_name(enum afz_finding_level level);

struct afz_finding {
        enum afz_finding_level level;
        char text[288]; /* one sentence, without control characters */
        char fix[352];  /* what to do; "" when there is nothing to do */
};

/* Too little may be seen to say what would hold a job. */
#define AFZ_TIER_UNKNOWN AFZ_TIER_COUNT

/* afz_tier_name(), or "unknown". */
const char *afz_doctor_tier_name(enum afz_tier tier);

/* What a systemd manager said. */
struct afz_manager_answer {
        char version[32];
};

/* What no file under the env's roots tells. `ctx` is handed back at every call. */
struct afz_doctor_effects {
        /* getenv(), or NULL. */
        const char *(*variable)(void *ctx, const char *name);
        /* faccessat() with the effective ids: 0 or -errno. dir_fd -1: the path is absolute. */
        int (*may)(void *ctx, int dir_fd, const char *path, int mode);
        /* readlink() of an absolute path: the length, or -errno (-EINVAL: not a link). */
        ssize_t (*link)(void *ctx, const char *path, char *buf, size_t cap);
        /* Asks the system's or the user's systemd manager for its version. -ENODATA: this build
         * cannot ask; -ETIMEDOUT: no answer came in time; else why it did not work. */
        int (*ask_manager)(void *ctx, bool system, struct afz_manager_answer *ret);
        /* Tries a tier, as afz_trial_run(). NULL: nothing is tried. */
        int (*trial)(void *ctx, const struct afz_env *env, enum afz_tier tier,
                     struct afz_trial *ret);
        void *ctx;
};

struct afz_doctor_input {
        const struct afz_env *env;
        struct afz_doctor_effects effects;
        uid_t uid;
        const struct afz_gpu_facts *gpu;     /* NULL: the GPU was not asked */
        const struct afz_probe_facts *probe; /* NULL: it was not looked for */
};

struct afz_doctor_ctx;

struct afz_check {
        const char *id;    /* steady: scripts rely on it */
        const char *group; /* heading under which it is shown */
        const char *title; /* a few words */
        enum afz_finding_level (*run)(const struct afz_doctor_ctx *, struct afz_finding *ret);
};

enum { AFZ_CHECKS_MAX = 40 };

extern const struct afz_check afz_check_table[];
extern const size_t afz_check_count;

struct afz_diagnosis {
        struct afz_finding finding[AFZ_CHECKS_MAX]; /* finding[i] is of afz_check_table[i] */
        enum afz_tier tier; /* the best that was proved; else what the files promise */
        bool proved;
        struct afz_trial trial[AFZ_TIER_COUNT]; /* from the best downwards, up to the one proved */
        size_t trials;
};

/* The effects of the machine we run on; gpu stays NULL. The env is borrowed. */
void afz_doctor_input_live(const struct afz_env *env, struct afz_doctor_input *ret);

/* 0, or -ENOMEM. Whatever the machine looks like is a finding and no error. */
int afz_doctor_run(const struct afz_doctor_input *in, struct afz_diagnosis *ret);

/* A library that the build found or left out. */
struct afz_feature {
        const char *name;
        const char *version; /* "": left out */
        const char *use;
};
extern const struct afz_feature afz_feature_table[];
extern const size_t afz_feature_count;

#endif
