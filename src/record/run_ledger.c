#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "clock.h"
#include "dir.h"
#include "run.h"
#include "run_home.h"
#include "run_id.h"
#include "run_state.h"

struct sum {
        char boot[AFZ_BOOT_ID_CAP];
        const char *inside;
        uint64_t promised_bytes;
};

/* Whether its promise counts: it lives, or its job does. */
static bool counts(const struct afz_run_entry *entry, const char *boot, struct afz_run_page *ret)
{
        return afz_run_page_read(entry->fd, ret) == 0 && strcmp(ret->boot_id, boot) == 0 &&
               (afz_run_is_held(entry->fd) || ret->orphaned);
}

static int add_promise(void *ctx, const struct afz_run_entry *entry)
{
        struct sum *sum = ctx;
        struct afz_run_page page;
        if (!counts(entry, sum->boot, &page))
                return 0;
        if (strcmp(page.inside, sum->inside) != 0)
                return 0;
        uint64_t promised = afz_run_page_promised(&page);
        if (promised > UINT64_MAX - sum->promised_bytes)
                promised = UINT64_MAX - sum->promised_bytes;
        sum->promised_bytes += promised;
        return 0;
}

int afz_run_ledger(const char *inside, int (*make)(void *ctx, uint64_t promised_bytes), void *ctx,
                   char *why)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        struct sum sum = {.inside = inside};

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

struct listing {
        char boot[AFZ_BOOT_ID_CAP];
        struct afz_stake *stake;
        unsigned count, cap;
        uint64_t now_ns;
};

/* Its guard has not looked yet, and follows with its first look, before the job takes anything. */
static bool starts(const struct afz_run_page *page)
{
        return page->root_pid == 0 && !page->budget_given;
}

static int add_stake(void *ctx, const struct afz_run_entry *entry)
{
        struct listing *l = ctx;
        struct afz_run_page page;
        if (!counts(entry, l->boot, &page) || page.inside[0] != '\0' ||
            page.policy == AFZ_POLICY_WATCH)
                return 0;
        if (l->count == l->cap)
                return -E2BIG;
        uint64_t tick = page.tick_ns, cap = page.cap_bytes;
        bool silent = l->now_ns > tick && l->now_ns - tick > AFZ_RUN_SILENT_NS;
        struct afz_stake *s = &l->stake[l->count++];
        *s = (struct afz_stake){
                .need_bytes = page.need_bytes,
                .budget_bytes = afz_run_page_budget(&page),
                .fixed = page.budget_given || page.orphaned || (silent && !starts(&page)),
                .over_cap = cap != 0 && page.budget_bytes > cap,
        };
        memcpy(s->id, page.id, sizeof s->id);
        return 0;
}

int afz_run_stakes(struct afz_stake *ret, unsigned cap)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        struct listing l = {.stake = ret, .cap = cap, .now_ns = afz_clock_ns(CLOCK_BOOTTIME)};
        if (afz_run_home_open(&roots, false, &home, NULL) < 0)
                return 0;
        afz_boot_id(l.boot);
        int r = afz_run_home_each(&home, add_stake, &l);
        afz_run_home_done(&home);
        return r < 0 ? r : (int)l.count;
}

static int open_page(int home_fd, const char *id)
{
        int fd = openat(home_fd, afz_run_name(id, ".run").text,
                        O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Not mapped: a file that somebody cuts short would be our end. */
static int write_word(int fd, size_t offset, const void *word, size_t n)
{
        ssize_t done = pwrite(fd, word, n, (off_t)offset);
        return done < 0 ? -errno : (size_t)done == n ? 0 : -EIO;
}

static int write_cap(int fd, uint64_t cap)
{
        struct afz_run_page page;
        int r = afz_run_page_read(fd, &page);
        if (r == 0)
                r = write_word(fd, offsetof(struct afz_run_page, cap_bytes), &cap, sizeof cap);
        if (r == 0 && starts(&page) && page.budget_bytes > cap)
                r = write_word(fd, offsetof(struct afz_run_page, budget_bytes), &cap, sizeof cap);
        return r;
}

int afz_run_set_cap(const char *id, uint64_t cap_bytes)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        int r = afz_run_home_open(&roots, false, &home, NULL);
        if (r < 0)
                return r;
        r = -ENOENT;
        for (unsigned i = 0; r == -ENOENT && i < home.folders; i++) {
                int fd = r = open_page(home.folder[i].fd, id);
                if (fd < 0)
                        continue;
                r = write_cap(fd, cap_bytes);
                close(fd);
        }
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
        int fd = open_page(entry->home_fd, entry->id);
        if (fd < 0)
                return;
        /* Failing, it is a promise less in the ledger; the kernel's limit still holds. */
        (void)write_word(fd, offsetof(struct afz_run_page, orphaned), &yes, sizeof yes);
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
        unlinkat(entry->home_fd, afz_run_name(entry->id, ".probe").text, 0);
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
                             socket = afz_span_ends(name, ".sock") || afz_span_ends(name, ".probe");
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
