#ifndef AFZ_PROC_FIXTURE_H
#define AFZ_PROC_FIXTURE_H
/* Processes of a fixture, and an env that counts what is opened.
 *
 *      struct afz_watched w;
 *      afz_watched_init(&w, afz_fixture_new(rows));     (the fixture's own env is not used)
 *      afz_watched_proc(&w, (struct afz_fake_proc){.pid = 100, .ppid = 1, .start = 5});
 *      ... &w.env ...
 *      afz_watched_done(&w);
 *
 * What is 0 in a fake process gets what most processes have. A new process gets a folder that is
 * another inode than any before it, and moves the newest pid in loadavg; afz_watched_stat()
 * rewrites stat alone, in place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

struct afz_fake_proc {
        uint64_t pid, ppid, pgrp, session, start, flags, utime, stime, minflt, majflt, blkio;
        const char *comm; /* "proc" */
        char state;       /* 'S' */
        int threads;      /* 1 */
};

struct afz_watched {
        struct afz_fixture *fixture;
        struct afz_env env;
        uint64_t now_ns;
        unsigned opens;     /* of anything */
        const char *needle; /* paths that hold this are counted apart */
        unsigned needles;
        unsigned buried, born;
};

static inline uint64_t afz_watched_now(void *ctx)
{
        return ((struct afz_watched *)ctx)->now_ns;
}

static inline void afz_watched_open(void *ctx, enum afz_root root, enum afz_open_kind kind,
                                    const char *path, int err)
{
        struct afz_watched *w = ctx;
        (void)root, (void)kind, (void)err;
        w->opens++;
        w->needles += w->needle && strstr(path, w->needle) != NULL;
}

static inline void afz_watched_init(struct afz_watched *w, struct afz_fixture *fixture)
{
        *w = (struct afz_watched){.fixture = fixture, .now_ns = UINT64_C(1000000000)};
        w->env = *afz_fixture_env(fixture);
        w->env.now_ns = afz_watched_now;
        w->env.on_open = afz_watched_open;
        w->env.ctx = w;
}

static inline void afz_watched_done(struct afz_watched *w)
{
        afz_fixture_free(w->fixture); /* the descriptors in w->env are its */
}

static inline void afz_watched_set(struct afz_watched *w, uint64_t pid, const char *file,
                                   const char *text)
{
        char path[128];
        snprintf(path, sizeof path, "proc/%llu/%s", (unsigned long long)pid, file);
        afz_fixture_set(w->fixture, path, text);
}

static inline void afz_watched_stat(struct afz_watched *w, struct afz_fake_proc p)
{
        char text[512];
        snprintf(text, sizeof text,
                 "%llu (%s) %c %llu %llu %llu 0 -1 %llu %llu 0 %llu 0 %llu %llu 0 0 20 0 %d 0 %llu "
                 "1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0 0 %llu 0 0\n",
                 (unsigned long long)p.pid, p.comm ? p.comm : "proc", p.state ? p.state : 'S',
                 (unsigned long long)p.ppid, (unsigned long long)p.pgrp,
                 (unsigned long long)p.session, (unsigned long long)p.flags,
                 (unsigned long long)p.minflt, (unsigned long long)p.majflt,
                 (unsigned long long)p.utime, (unsigned long long)p.stime,
                 p.threads ? p.threads : 1, (unsigned long long)p.start,
                 (unsigned long long)p.blkio);
        afz_watched_set(w, p.pid, "stat", text);
}

static inline void afz_watched_newest(struct afz_watched *w, uint64_t pid)
{
        char text[64];
        snprintf(text, sizeof text, "0.00 0.00 0.00 1/9 %llu\n", (unsigned long long)pid);
        afz_fixture_set(w->fixture, "proc/loadavg", text);
}

/* The folder is put aside and not removed, so that its inode is not given out again. */
static inline void afz_watched_bury(struct afz_watched *w, uint64_t pid)
{
        char from[600], to[600];
        snprintf(from, sizeof from, "%s/proc/%llu", afz_fixture_dir(w->fixture),
                 (unsigned long long)pid);
        snprintf(to, sizeof to, "%s/proc/dead-%u", afz_fixture_dir(w->fixture), w->buried++);
        (void)rename(from, to);
}

static inline void afz_watched_proc(struct afz_watched *w, struct afz_fake_proc p)
{
        afz_watched_bury(w, p.pid);
        afz_watched_stat(w, p);
        afz_watched_newest(w, 1000000 + w->born++);
}

#endif
