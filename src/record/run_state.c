#include "run_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "run_id.h"

static const uint64_t state_magic =
        UINT64_C(0x3174617473666161) /* "aafstat1" */ ^ (sizeof(struct afz_run_state) << 32);

/* FNV-1a: against torn writes, not against people. */
static uint64_t sum_of(const struct afz_run_state *state)
{
        const unsigned char *p = (const unsigned char *)state;
        uint64_t sum = UINT64_C(0xcbf29ce484222325);
        for (size_t i = 0; i < offsetof(struct afz_run_state, sum); i++)
                sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
        return sum;
}

static void host_name(char ret[65])
{
        struct utsname name;
        snprintf(ret, 65, "%.64s", uname(&name) == 0 ? name.nodename : "");
}

int afz_run_state_make(int dir_fd)
{
        const char zero[sizeof(struct afz_run_state)] = {0};
        const char *temporary = AFZ_RUN_STATE ".new";
        int r = 0;

        unlinkat(dir_fd, temporary, 0);
        int fd =
                openat(dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        for (int slot = 0; slot < 2 && r == 0; slot++)
                r = afz_write_all(fd, zero, sizeof zero);
        /* A network file system may have no locks; the page's lock is the one that counts. */
        if (r == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
                r = -EBUSY;
        if (r == 0 && renameat(dir_fd, temporary, dir_fd, AFZ_RUN_STATE) < 0)
                r = -errno;
        if (r == 0)
                return fd;
        unlinkat(dir_fd, temporary, 0);
        close(fd);
        return r;
}

void afz_run_state_set(struct afz_run_state *state, const struct afz_run_page *page,
                       const struct afz_outcome *outcome, uint64_t duration_ns)
{
        memset(state, 0, sizeof *state);
        host_name(state->host);
        state->duration_ns = duration_ns;
        state->outcome = *outcome;
        state->page = *page;
}

static int read_slot(int fd, int slot, struct afz_run_state *ret)
{
        ssize_t n = pread(fd, ret, sizeof *ret, slot * (off_t)sizeof *ret);
        if (n < 0)
                return -errno;
        if (n != sizeof *ret || ret->magic != state_magic || ret->sum != sum_of(ret))
                return -EBADMSG;
        return 0;
}

static int check(struct afz_run_state *state)
{
        state->host[sizeof state->host - 1] = '\0';
        afz_outcome_check(&state->outcome);
        return afz_run_page_check(&state->page);
}

int afz_run_state_read(int fd, struct afz_run_state *ret)
{
        struct afz_run_state slot[2];
        bool good[2];
        for (int i = 0; i < 2; i++)
                good[i] = read_slot(fd, i, &slot[i]) == 0;
        if (!good[0] && !good[1])
                return -EBADMSG;
        int best = good[0] && good[1] ? slot[1].turn > slot[0].turn : good[1];
        int r = check(&slot[best]);
        if (r == 0)
                *ret = slot[best];
        return r;
}

int afz_run_state_write(int fd, struct afz_run_state *state)
{
        struct afz_run_state before;
        state->magic = state_magic;
        state->turn = afz_run_state_read(fd, &before) == 0 ? before.turn + 1 : 1;
        state->sum = sum_of(state);
        ssize_t n =
                pwrite(fd, state, sizeof *state, (off_t)(state->turn % 2) * (off_t)sizeof *state);
        if (n < 0)
                return -errno;
        return n == sizeof *state ? 0 : -ENOSPC;
}

bool afz_run_state_is_here(const struct afz_run_state *state)
{
        char host[65];
        host_name(host);
        return strcmp(host, state->host) == 0;
}

static void lost_verdict(struct afz_outcome *outcome, const struct afz_run_page *page, bool reboot)
{
        struct afz_verdict *v = &outcome->verdict[0];
        *outcome = (struct afz_outcome){.end = {AFZ_END_LOST, -1}, .verdicts = 1};
        afz_verdict_set(v, reboot ? "machine-lost" : "lost", AFZ_LEVEL_UNKNOWN, 1);
        if (reboot) {
                afz_verdict_note(v,
                                 "the machine has been booted anew since, and no end was recorded");
                afz_verdict_machine_lost(v, NULL);
        } else {
                afz_verdict_lost(v, page->place[0] != '\0');
        }
}

void afz_run_state_lose(struct afz_run_state *state, const struct afz_run_page *page)
{
        struct afz_run_page last = page ? *page : state->page;
        struct afz_outcome outcome;
        char boot[AFZ_BOOT_ID_CAP];
        uint64_t turn = state->turn;

        afz_boot_id(boot);
        lost_verdict(&outcome, &last, boot[0] != '\0' && strcmp(boot, last.boot_id) != 0);
        uint64_t tick = last.tick_ns;
        afz_run_state_set(state, &last, &outcome,
                          tick > last.started_ns ? tick - last.started_ns : 0);
        state->turn = turn;
}
