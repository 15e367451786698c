/* The net sense: network interfaces. Network *mounts* are file systems and come from the disk sense
 * (job_fs.h). */
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "name_id.h"
#include "netdev.h"
#include "sense.h"

enum {
        MAX_INTERFACES = 64,     /* a node full of containers has one for each */
        TEXT_BYTES = 1024 * 256, /* 256 bytes a line, for far more than are shown */
        MAX_PLACES = 2 * MAX_INTERFACES,
        KEEP_READINGS = 3, /* a name may be shown two readings longer than its interface lives */
};

/* No line of net/dev is longer: a name of at most 15 bytes and sixteen numbers. */
#define LONGEST_LINE  384

#define BITS_PER_MBIT UINT64_C(1000000)

enum link_state { LINK_UNKNOWN, LINK_UP, LINK_DOWN };

struct place {
        char name[IFNAMSIZ + 8]; /* an alias adds ":N"; "": free */
        uint64_t reading;        /* that had it last */
        enum link_state state;
        bool has_speed;
        uint64_t speed_mbit;
};

struct net_sense {
        const struct afz_env *env;
        int fd;
        bool has_sys; /* /sys/class/net shows the same interfaces */
        uint64_t reading;
        struct place place[MAX_PLACES];
        char text[TEXT_BYTES];
};

static void net_close(void *state)
{
        struct net_sense *n = state;
        if (!n)
                return;
        if (n->fd >= 0)
                close(n->fd);
        free(n);
}

/* Whether the job has network interfaces of its own: it then is in another network namespace. What
 * cannot be read is taken for ours. */
static bool is_elsewhere(const struct afz_env *env, uint64_t pid)
{
        char path[40], theirs[64], ours[64];
        afz_path(path, sizeof path, "%llu/ns/net", (unsigned long long)pid);
        if (afz_env_readlink(env, AFZ_ROOT_PROC, path, theirs, sizeof theirs) < 0)
                return false;
        afz_path(path, sizeof path, "%llu/ns/net", (unsigned long long)env->self_pid);
        return afz_env_readlink(env, AFZ_ROOT_PROC, path, ours, sizeof ours) >= 0 &&
               strcmp(theirs, ours) != 0;
}

static int net_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        struct net_sense *n = calloc(1, sizeof *n);
        char path[40] = "net/dev";
        if (!n)
                return -ENOMEM;
        n->env = env;
        n->has_sys = target->pid == 0 || !is_elsewhere(env, target->pid);
        if (!n->has_sys)
                afz_path(path, sizeof path, "%llu/net/dev", (unsigned long long)target->pid);
        n->fd = afz_env_open(env, AFZ_ROOT_PROC, path, 0);
        if (n->fd < 0) {
                int r = n->fd == -ENOENT || n->fd == -ESRCH ? -ENODATA : n->fd;
                net_close(n);
                return r;
        }
        *ret_state = n;
        return 0;
}

static struct place *place_of(struct net_sense *n, struct afz_span name)
{
        struct place *unused = NULL;
        for (size_t i = 0; i < MAX_PLACES; i++) {
                struct place *p = &n->place[i];
                if (p->name[0] && afz_span_eq(name, p->name))
                        return p;
                if (!unused && (!p->name[0] || p->reading + KEEP_READINGS < n->reading))
                        unused = p;
        }
        if (!unused || name.n >= sizeof unused->name)
                return NULL;
        *unused = (struct place){0};
        afz_span_copy(name, unused->name, sizeof unused->name);
        return unused;
}

static enum link_state read_state(struct net_sense *n, const char *name)
{
        char path[64], buf[64];
        struct afz_span text;
        if (afz_path(path, sizeof path, "class/net/%s/operstate", name) < 0 ||
            afz_env_read(n->env, AFZ_ROOT_SYS, path, buf, sizeof buf, &text) < 0)
                return LINK_UNKNOWN;
        text = afz_span_trim(text);
        if (afz_span_eq(text, "up"))
                return LINK_UP;
        /* "unknown" is what loopback and tunnels say, which work all the same. */
        return text.n == 0 || afz_span_eq(text, "unknown") ? LINK_UNKNOWN : LINK_DOWN;
}

/* The speed is asked for when the link changes and not in every reading: the kernel takes its big
 * network lock for it, which a driver in trouble may hold. Where there is no speed it says -1 or
 * an error. */
static void update_link(struct net_sense *n, struct place *p)
{
        char path[64];
        enum link_state was = p->state;
        bool first = p->reading == 0;
        if (!n->has_sys)
                return;
        p->state = read_state(n, p->name);
        if (!first && p->state == was)
                return;
        p->has_speed = p->state == LINK_UP &&
                       afz_path(path, sizeof path, "class/net/%s/speed", p->name) >= 0 &&
                       afz_env_read_u64(n->env, AFZ_ROOT_SYS, path, &p->speed_mbit) >= 0 &&
                       p->speed_mbit > 0 && p->speed_mbit < UINT32_MAX;
}

static void add_interface(struct net_sense *n, const struct afz_netdev *dev, struct afz_batch *out)
{
        uint64_t errors;
        struct place *p = place_of(n, dev->name);
        if (!p) {
                out->dropped++;
                return;
        }
        update_link(n, p);
        p->reading = n->reading;
        struct afz_sample *s = afz_batch_add(
                out, (struct afz_subject){.kind = AFZ_KIND_NET, .id = afz_name_id(p->name)},
                p->name);
        if (!s)
                return;
        afz_sample_set_u64(s, AFZ_NET_RECEIVED, dev->received_bytes);
        afz_sample_set_u64(s, AFZ_NET_SENT, dev->sent_bytes);
        if (!__builtin_add_overflow(dev->receive_errors, dev->receive_drops, &errors) &&
            !__builtin_add_overflow(errors, dev->send_errors, &errors) &&
            !__builtin_add_overflow(errors, dev->send_drops, &errors))
                afz_sample_set_u64(s, AFZ_NET_ERRORS, errors);
        if (p->has_speed)
                afz_sample_set_u64(s, AFZ_NET_SPEED, p->speed_mbit * BITS_PER_MBIT);
        if (p->state != LINK_UNKNOWN)
                afz_sample_set(s, AFZ_NET_UP, p->state == LINK_UP);
}

static int net_read(void *state, struct afz_batch *out)
{
        struct net_sense *n = state;
        ssize_t len = afz_fd_read_lines(n->fd, n->text, sizeof n->text, LONGEST_LINE);
        if (len < 0)
                return (int)len;
        struct afz_span text = {n->text, (size_t)len}, line;
        struct afz_netdev dev;
        n->reading++;
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_netdev_parse(line, &dev) < 0)
                        continue;
                /* What never carried a byte has nothing to tell. */
                if (dev.received_bytes > 0 || dev.sent_bytes > 0)
                        add_interface(n, &dev, out);
        }
        return 0;
}

const struct afz_sense afz_sense_net = {
        .name = "net",
        .what = "network interfaces",
        /* Traffic comes in bursts: a rate over less than a second says little. */
        .every_ns = UINT64_C(1000000000),
        .max_samples = MAX_INTERFACES,
        .absent = "/proc/net/dev is not there (a kernel without network?); network rates are not "
                  "seen",
        .denied = "/proc/net/dev may not be read; network rates are not seen",
        .open = net_open,
        .read = net_read,
        .close = net_close,
};
