#include <errno.h>
#include <string.h>

#include "drm_fdinfo.h"
#include "gpu_drm.h"

/* Which of our cards the file is of; -1 when none. Without a PCI address (a chip that is not on
 * PCI) the driver's name must do, where only one card has it. */
static int card_of(const struct afz_drm_clients *c, const struct afz_drm_fdinfo *info)
{
        int found = -1;
        for (unsigned i = 0; i < c->cards; i++) {
                const struct afz_drm_card *card = &c->card[i];
                if (!afz_span_eq(info->driver, card->driver))
                        continue;
                if (info->pdev.n > 0 && afz_span_eq(info->pdev, card->pdev))
                        return (int)i;
                if (info->pdev.n == 0)
                        found = found == -1 ? (int)i : -2;
        }
        return found < 0 ? -1 : found;
}

static int64_t held(const struct afz_drm_clients *c, const struct afz_drm_fdinfo *info)
{
        bool known = c->use_system ? info->has_system : info->has_vram;
        uint64_t bytes = c->use_system ? info->system_bytes : info->vram_bytes;
        return known && bytes <= INT64_MAX ? (int64_t)bytes : -1;
}

static int read_client(struct afz_drm_clients *c, uint32_t pid, uint32_t fd,
                       struct afz_drm_client *ret)
{
        char path[48];
        struct afz_span text;
        struct afz_drm_fdinfo info;
        afz_path(path, sizeof path, "%u/fdinfo/%u", pid, fd);
        int r = afz_env_read(c->env, AFZ_ROOT_PROC, path, c->buf, sizeof c->buf, &text);
        if (r == 0)
                r = afz_drm_fdinfo_parse(text, &info);
        if (r < 0)
                return r;
        int card = card_of(c, &info);
        if (card < 0)
                return -ENODATA;
        *ret = (struct afz_drm_client){
                .pid = pid,
                .fd = fd,
                .card = (uint32_t)card,
                .has_id = info.has_client_id,
                .id = info.client_id,
                .mem_bytes = held(c, &info),
        };
        return 0;
}

static bool is_before(const struct afz_drm_client *a, const struct afz_drm_client *b)
{
        return a->pid != b->pid ? a->pid < b->pid : a->fd < b->fd;
}

/* A client that is seen through several descriptors is counted once, at the lowest pid and number.
 * Kernels before 5.19 give no id: then each descriptor counts. */
static void note(struct afz_drm_clients *c, const struct afz_drm_client *client)
{
        for (unsigned i = 0; i < c->count; i++) {
                struct afz_drm_client *x = &c->client[i];
                if (x->pid == client->pid && x->fd == client->fd)
                        return;
                if (x->has_id && client->has_id && x->card == client->card && x->id == client->id) {
                        if (is_before(client, x))
                                *x = *client;
                        return;
                }
        }
        if (c->count < AFZ_DRM_WATCHED)
                c->client[c->count++] = *client;
        else
                c->unseen++;
}

static void look_at(struct afz_drm_clients *c, uint32_t pid)
{
        char path[48], target[64];
        afz_path(path, sizeof path, "%u/fd", pid);
        int r = afz_dir_open(&c->fds, c->env, AFZ_ROOT_PROC, path);
        c->closed_so_far |= r == -EACCES || r == -EPERM;
        for (int i = 0; r >= 0 && i < AFZ_DRM_FDS && (r = afz_dir_next(&c->fds)) > 0; i++) {
                uint64_t fd;
                struct afz_drm_client client;
                if (afz_dir_name_u64(&c->fds, &fd) < 0 || fd > UINT32_MAX)
                        continue;
                afz_path(path, sizeof path, "%u/fd/%u", pid, (unsigned)fd);
                if (afz_env_readlink(c->env, AFZ_ROOT_PROC, path, target, sizeof target) < 0 ||
                    !afz_span_starts(afz_span_str(target), "/dev/dri/"))
                        continue;
                if (read_client(c, pid, (uint32_t)fd, &client) == 0)
                        note(c, &client);
        }
        afz_dir_close(&c->fds);
}

/* The next processes of the round; a round that ends begins anew at the next poll. */
static void look_around(struct afz_drm_clients *c, unsigned looks)
{
        while (looks-- > 0) {
                uint64_t pid;
                int r = afz_dir_next(&c->proc);
                if (r <= 0) {
                        (void)afz_dir_rewind(&c->proc);
                        c->closed = c->closed_so_far || r < 0;
                        c->closed_so_far = false;
                        return;
                }
                if (afz_dir_name_u64(&c->proc, &pid) == 0 && pid > 0 && pid <= UINT32_MAX)
                        look_at(c, (uint32_t)pid);
        }
}

int afz_drm_clients_open(struct afz_drm_clients *c, const struct afz_env *env,
                         const struct afz_drm_card *card, unsigned cards, bool use_system)
{
        c->env = env;
        c->card = card;
        c->cards = cards;
        c->use_system = use_system;
        c->count = 0;
        c->unseen = 0;
        c->closed = true;
        c->closed_so_far = false;
        c->fds.fd = -1;
        int r = afz_dir_open(&c->proc, env, AFZ_ROOT_PROC, ".");
        if (r == 0)
                look_around(c, AFZ_DRM_FIRST_LOOK);
        return r;
}

void afz_drm_clients_close(struct afz_drm_clients *c)
{
        afz_dir_close(&c->proc);
}

void afz_drm_set_processes(const struct afz_drm_clients *c, unsigned card,
                           const struct afz_gpu_snapshot *from, struct afz_gpu_row *row)
{
        if (!c->closed)
                afz_gpu_set(row, AFZ_GPU_PROCESSES, afz_gpu_count_procs(from, card));
}

void afz_drm_clients_poll(struct afz_drm_clients *c, struct afz_gpu_snapshot *into)
{
        unsigned kept = 0;
        for (unsigned i = 0; i < c->count; i++) {
                struct afz_drm_client old = c->client[i], client;
                /* A descriptor may have been closed and be another file by now. */
                if (read_client(c, old.pid, old.fd, &client) < 0 || client.has_id != old.has_id ||
                    client.id != old.id)
                        continue;
                c->client[kept++] = client;
        }
        c->count = kept;
        if (c->proc.fd >= 0)
                look_around(c, AFZ_DRM_LOOKS);
        into->dropped += c->unseen;
        c->unseen = 0;
        for (unsigned i = 0; i < c->count; i++)
                afz_gpu_add_proc(into, c->client[i].card, c->client[i].pid, c->client[i].mem_bytes,
                                 true);
}
