#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "dir.h"
#include "run.h"
#include "run_home.h"
#include "run_id.h"
#include "run_state.h"

struct sum {
        char boot[AFZ_BOOT_ID_CAP];
        uint64_t promised_bytes;
};

static int add_promise(void *ctx, const struct afz_run_entry *entry)
{
        struct sum *sum = ctx;
        struct afz_run_page page;
        if (afz_run_page_read(entry->fd, &page) < 0 || strcmp(page.boot_id, sum->boot) != 0)
                return 0;
        if (!afz_run_is_held(entry->fd) && !page.orphaned)
                return 0;
        uint64_t promised = afz_run_page_promised(&page);
        if (promised > UINT64_MAX - sum->promised_bytes)
                promised = UINT64_MAX - sum->promised_bytes;
        sum->promised_bytes += promised;
        return 0;
}

int afz_run_ledger(int (*make)(void *ctx, uint64_t promised_bytes), void *ctx, char *why)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        struct sum sum = {0};

        if (why)
                why[0] = '\0';
        if (afz_run_home_open(&roots, true, &home, why) < 0)
                return make(ctx, 0);
        int r = afz_run_home_lock(&home, AFZ_LEDGER_WAIT_NS, why);
        if (r == 0) {
                afz_boot_id(sum.boot);
                r = afz_run_home_each(&home, add_promise, &sum);
                if (r < 0)
                        afz_run_why(why, r, "%s: %s", home.folder[0].path, strerror(-r));
        }
        if (r == 0)
                r = make(ctx, sum.promised_bytes);
        afz_run_home_done(&home);
        return r;
}

struct collecting {
        int (*collect)(void *ctx, const char *place);
        void *ctx;
        int count;
};

/* The job lives on within its limit: its promise counts until it is gone. */
static void mark_orphaned(const struct afz_run_entry *entry)
{
        uint32_t yes = 1;
        int fd = openat(entry->home_fd, afz_run_name(entry->id, ".run").text,
                        O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return;
        ssize_t n = pwrite(fd, &yes, sizeof yes, offsetof(struct afz_run_page, orphaned));
        (void)n; /* a promise less in the ledger; the kernel's limit still holds */
        close(fd);
}

static int collect_page(void *ctx, const struct afz_run_entry *entry)
{
        struct collecting *c = ctx;
        struct afz_run_page page;

        if (afz_run_is_held(entry->fd))
                return 0;
        /* What is no page of this version, and nobody's, is only in the way. */
        if (afz_run_page_read(entry->fd, &page) == 0) {
                /* Held by its folder though not by its page: a front that has not gone yet. */
                if (page.dir[0] && afz_run_settle(page.dir, page.id, &page) == -EBUSY)
                        return 0;
                if (c->collect && page.place[0] && c->collect(c->ctx, page.place) == -EBUSY) {
                        mark_orphaned(entry);
                        return 0;
                }
        }
        unlinkat(entry->home_fd, afz_run_name(entry->id, ".sock").text, 0);
        if (unlinkat(entry->home_fd, afz_run_name(entry->id, ".run").text, 0) == 0)
                c->count++;
        return 0;
}

/* What a start that was killed half-way has left: nobody makes anything while we hold the lock. */
static void remove_strays(const struct afz_run_home *home)
{
        for (unsigned i = 0; i < home->folders; i++) {
                struct afz_dir dir = {.fd = home->folder[i].fd};
                char id[AFZ_RUN_ID_CAP] = "";
                int r = afz_dir_rewind(&dir);
                while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                        struct afz_span name = afz_span_str(dir.name);
                        bool page = afz_span_ends(name, ".new"),
                             socket = afz_span_ends(name, ".sock");
                        if ((!page && !socket) || name.n < AFZ_RUN_ID_LENGTH)
                                continue;
                        memcpy(id, dir.name, AFZ_RUN_ID_LENGTH);
                        if (!afz_run_id_is(id))
                                continue;
                        if (page || faccessat(dir.fd, afz_run_name(id, ".run").text, F_OK, 0) < 0)
                                unlinkat(dir.fd, dir.name, 0);
                }
        }
}

int afz_run_collect(int (*collect)(void *ctx, const char *place), void *ctx, char *why)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        struct collecting c = {.collect = collect, .ctx = ctx};

        if (why)
                why[0] = '\0';
        if (afz_run_home_open(&roots, false, &home, why) < 0)
                return 0; /* no folder, nothing left behind */
        int r = afz_run_home_lock(&home, AFZ_LEDGER_WAIT_NS, why);
        if (r == 0)
                r = afz_run_home_each(&home, collect_page, &c);
        if (r == 0)
                remove_strays(&home);
        afz_run_home_done(&home);
        return r < 0 ? r : c.count;
}
