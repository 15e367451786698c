#include "run_page.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_id.h"

/* The size is part of it: a page of another version is another size, or another number here. */
const uint64_t afz_run_page_magic =
        UINT64_C(0x31656761707a6661) /* "afzpage1" */ ^ (sizeof(struct afz_run_page) << 32);

static void end_text(char *text, size_t cap)
{
        text[cap - 1] = '\0';
}

int afz_run_page_check(struct afz_run_page *page)
{
        unsigned char given;

        if (page->magic != afz_run_page_magic)
                return -EBADMSG;
        end_text(page->id, sizeof page->id);
        end_text(page->boot_id, sizeof page->boot_id);
        end_text(page->dir, sizeof page->dir);
        end_text(page->place, sizeof page->place);
        end_text(page->cmd, sizeof page->cmd);
        end_text(page->inside, sizeof page->inside);
        if (!afz_run_id_is(page->id) || (page->dir[0] != '\0' && page->dir[0] != '/'))
                return -EBADMSG;
        if (page->tier >= AFZ_TIER_COUNT || page->policy >= AFZ_POLICY_COUNT)
                return -EBADMSG;
        /* A bool with another value than 0 and 1 may not even be looked at. */
        memcpy(&given, &page->budget_given, 1);
        page->budget_given = given != 0;
        afz_facts_check(&page->facts);
        return 0;
}

int afz_run_page_read(int fd, struct afz_run_page *ret)
{
        struct afz_run_page page;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size != sizeof page)
                return -EBADMSG;
        ssize_t n = pread(fd, &page, sizeof page, 0);
        if (n < 0)
                return -errno;
        int r = n == sizeof page ? afz_run_page_check(&page) : -EBADMSG;
        if (r == 0)
                *ret = page;
        return r;
}

uint64_t afz_run_page_budget(const struct afz_run_page *page)
{
        uint64_t budget = page->budget_bytes, cap = page->budget_given ? 0 : page->cap_bytes;
        return budget > cap ? budget : cap;
}

uint64_t afz_run_page_promised(const struct afz_run_page *page)
{
        uint64_t budget = afz_run_page_budget(page), need = page->need_bytes;
        return budget > need ? budget - need : 0;
}

bool afz_run_is_held(int fd)
{
        /* Shared, so that two who look do not see each other. */
        if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
                flock(fd, LOCK_UN);
                return false;
        }
        return errno == EWOULDBLOCK;
}
