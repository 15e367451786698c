#include "flight_about.h"

#include <errno.h>
#include <stdlib.h>

#include "crc32.h"
#include "pack.h"

enum { CMD_CAP = AFZ_TEXT_CAP, PATH_CAP = AFZ_TEXT_CAP, GIT_CAP = 256, NAME_CAP = 64 };

/* Of metrics that are never kept only the place is told. */
void afz_names_put(struct afz_put *put)
{
        afz_put_number(put, AFZ_KIND_COUNT);
        for (int k = 0; k < AFZ_KIND_COUNT; k++) {
                const struct afz_kind_info *kind = &afz_kind_table[k];
                uint64_t kept = afz_pack_kept((enum afz_kind)k);
                afz_put_text(put, kind->name, NAME_CAP);
                afz_put_number(put, kind->metrics);
                for (unsigned i = 0; i < kind->metrics; i++)
                        afz_put_text(put, kept >> i & 1 ? kind->metric[i].name : "", NAME_CAP);
        }
}

uint32_t afz_names_sum(void)
{
        unsigned char buf[AFZ_KIND_COUNT * AFZ_METRICS_PER_KIND * 8];
        struct afz_put put = {.p = buf, .cap = sizeof buf};
        afz_names_put(&put);
        return put.full ? 0 : afz_crc32(0, buf, put.len);
}

void afz_about_put(struct afz_put *put, const struct afz_flight_head *head, uint64_t start_ns)
{
        afz_put_text(put, head->run, sizeof head->run);
        afz_put_text(put, head->boot_id, sizeof head->boot_id);
        afz_put_text(put, head->host, sizeof head->host);
        afz_put_text(put, head->cmd, CMD_CAP);
        afz_put_text(put, head->cwd, PATH_CAP);
        afz_put_text(put, head->git, GIT_CAP);
        afz_put_signed(put, head->started_s);
        afz_put_number(put, start_ns);
        afz_put_number(put, head->ram_total_bytes);
        afz_put_number(put, head->swap_total_bytes);
        afz_put_number(put, head->budget_bytes);
        afz_put_number(put, head->swap_bytes);
        afz_put_number(put, head->cores);
        afz_put_number(put, head->tier);
        afz_put_number(put, head->policy);
        afz_names_put(put);
}

static enum afz_kind kind_named(const char *name)
{
        for (int k = 1; k < AFZ_KIND_COUNT; k++)
                if (strcmp(afz_kind_table[k].name, name) == 0)
                        return (enum afz_kind)k;
        return AFZ_KIND_NONE;
}

static void learn_metric(struct afz_names *names, unsigned file_kind, unsigned index,
                         const char *name)
{
        const struct afz_kind_info *kind = &afz_kind_table[names->kind[file_kind]];
        for (unsigned i = 0; name[0] && i < kind->metrics; i++)
                if (strcmp(kind->metric[i].name, name) == 0) {
                        names->metric[file_kind][index] = (unsigned char)i;
                        names->known[file_kind] |= UINT64_C(1) << index;
                        return;
                }
}

static bool take_names(struct afz_take *take, struct afz_names *ret)
{
        char name[NAME_CAP];
        uint64_t kinds, metrics;
        if (!afz_take_number(take, &kinds) || kinds > AFZ_NAMES_KINDS)
                return false;
        memset(ret, 0, sizeof *ret);
        for (unsigned k = 0; k < kinds; k++) {
                if (!afz_take_text(take, name, sizeof name) || !afz_take_number(take, &metrics) ||
                    metrics > AFZ_METRICS_PER_KIND)
                        return false;
                ret->kind[k] = (unsigned char)kind_named(name);
                for (unsigned i = 0; i < metrics; i++) {
                        if (!afz_take_text(take, name, sizeof name))
                                return false;
                        learn_metric(ret, k, i, name);
                }
        }
        return true;
}

static bool take_numbers(struct afz_take *take, struct afz_flight_head *head, uint64_t *start_ns)
{
        return afz_take_signed(take, &head->started_s) && afz_take_number(take, start_ns) &&
               afz_take_number(take, &head->ram_total_bytes) &&
               afz_take_number(take, &head->swap_total_bytes) &&
               afz_take_number(take, &head->budget_bytes) &&
               afz_take_number(take, &head->swap_bytes) && afz_take_u32(take, &head->cores) &&
               afz_take_u32(take, &head->tier) && afz_take_u32(take, &head->policy);
}

static int set_texts(struct afz_flight_head *head, const char *cmd, const char *cwd,
                     const char *git)
{
        head->cmd = strdup(cmd);
        head->cwd = strdup(cwd);
        head->git = strdup(git);
        if (head->cmd && head->cwd && head->git)
                return 0;
        free(head->cmd);
        free(head->cwd);
        free(head->git);
        head->cmd = head->cwd = head->git = NULL;
        return -ENOMEM;
}

static void replace(struct afz_flight_head *old, const struct afz_flight_head *with)
{
        free(old->cmd);
        free(old->cwd);
        free(old->git);
        *old = *with;
}

int afz_about_none(struct afz_flight_head *ret)
{
        struct afz_flight_head head = {0};
        int r = set_texts(&head, "", "", "");
        if (r == 0)
                replace(ret, &head);
        return r;
}

int afz_about_read(const unsigned char *bytes, size_t len, struct afz_flight_head *ret,
                   uint64_t *ret_start_ns, struct afz_names *ret_names)
{
        struct afz_take take = {bytes, len};
        struct afz_flight_head head = {0};
        struct afz_names names;
        char cmd[CMD_CAP], cwd[PATH_CAP], git[GIT_CAP];
        uint64_t start_ns;
        if (!afz_take_text(&take, head.run, sizeof head.run) ||
            !afz_take_text(&take, head.boot_id, sizeof head.boot_id) ||
            !afz_take_text(&take, head.host, sizeof head.host) ||
            !afz_take_text(&take, cmd, sizeof cmd) || !afz_take_text(&take, cwd, sizeof cwd) ||
            !afz_take_text(&take, git, sizeof git) || !take_numbers(&take, &head, &start_ns) ||
            !take_names(&take, &names))
                return -EBADMSG;
        int r = set_texts(&head, cmd, cwd, git);
        if (r < 0)
                return r;
        replace(ret, &head);
        *ret_start_ns = start_ns;
        *ret_names = names;
        return 0;
}
