#ifndef AFZ_GPU_DRM_H
#define AFZ_GPU_DRM_H
/* What AMD's and Intel's backends share: finding cards in sysfs, reading their small files, and
 * finding the processes that hold memory on them.
 *
 * Processes are found by looking through /proc/PID/fd for files of /dev/dri, which costs tens of
 * microseconds a process. All are looked at when we open; after that a few at each poll, in rounds,
 * so that a process shows up some seconds after it opened its GPU. Those that are known are read
 * at every poll. Unless we are root, only our own user's processes can be looked at: those that
 * were seen are shown, and how many there are is then not told.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dir.h"
#include "gpu_backend.h"

#define AFZ_DRM_CARDS      16
#define AFZ_DRM_WATCHED    256  /* descriptors that are read at every poll */
#define AFZ_DRM_FDS        4096 /* looked at in one process: a server may hold a hundred thousand */
#define AFZ_DRM_LOOKS      16 /* processes looked at in a poll: 30 us each, more with many files */
#define AFZ_DRM_FIRST_LOOK 65536

struct afz_drm_card {
        char path[48]; /* "class/drm/card0" */
        char driver[16];
        char pdev[AFZ_GPU_PCI_CAP];
        char pci_id[16]; /* "1002:744C" */
        char hwmon[80];  /* "class/drm/card0/device/hwmon/hwmon3", or "" */
        bool asleep;     /* as of the last afz_drm_card_asleep() */
};

/* Finds the cards of the drivers in `drivers` (ends in NULL), in the order of their numbers.
 * Returns how many, at most AFZ_DRM_CARDS. */
unsigned afz_drm_cards(const struct afz_env *env, const char *const *drivers,
                       struct afz_drm_card *ret);

/* A card that the kernel has put to sleep would be woken by being read: it is left alone. */
bool afz_drm_card_asleep(const struct afz_env *env, struct afz_drm_card *card);

/* One file below the card's folder (below its hwmon folder): a number; times num, divided by den.
 */
int afz_drm_u64(const struct afz_env *env, const char *folder, const char *file, uint64_t *ret);
void afz_drm_set(const struct afz_env *env, const char *folder, const char *file,
                 struct afz_gpu_row *row, enum afz_metric metric, uint64_t num, uint64_t den);

/* PCIe generation and lanes, which every PCI device tells. */
void afz_drm_set_link(const struct afz_env *env, const struct afz_drm_card *card,
                      struct afz_gpu_row *row);

struct afz_drm_client {
        uint32_t pid, fd, card;
        bool has_id;
        uint64_t id;
        int64_t mem_bytes; /* -1: unknown */
};

struct afz_drm_clients {
        const struct afz_env *env;
        const struct afz_drm_card *card;
        unsigned cards;
        bool use_system;        /* the card has no memory of its own: RAM is what counts */
        unsigned count, unseen; /* unseen: found no room since the last poll */
        struct afz_drm_client client[AFZ_DRM_WATCHED];
        struct afz_dir proc;        /* the round through /proc */
        bool closed, closed_so_far; /* a process may not be looked at: in the last whole round, in
                                       this */
        struct afz_dir fds;
        char buf[8192];
};

/* `card` is borrowed. Takes a first look at every process. */
int afz_drm_clients_open(struct afz_drm_clients *clients, const struct afz_env *env,
                         const struct afz_drm_card *card, unsigned cards, bool use_system);
void afz_drm_clients_close(struct afz_drm_clients *clients);

/* Sets how many processes hold memory on a card, where all of them can be seen. */
void afz_drm_set_processes(const struct afz_drm_clients *clients, unsigned card,
                           const struct afz_gpu_snapshot *from, struct afz_gpu_row *row);

/* Reads the known, looks for new ones, and appends what each process holds on each card. */
void afz_drm_clients_poll(struct afz_drm_clients *clients, struct afz_gpu_snapshot *into);

#endif
