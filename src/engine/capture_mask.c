#include "capture_mask.h"

#include <errno.h>
#include <string.h>

#include "capture_known.h"
#include "count_of.h"

static uint64_t rotate(uint64_t v, int by)
{
        return v << by | v >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
        v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
        v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
}

/* SipHash-2-4: short, and made so that who knows some words and their masks learns no key. */
static uint64_t hash(const struct afz_mask *mask, struct afz_span word)
{
        const uint64_t *k = mask->key;
        uint64_t v[4] = {k[0] ^ UINT64_C(0x736f6d6570736575), k[1] ^ UINT64_C(0x646f72616e646f6d),
                         k[0] ^ UINT64_C(0x6c7967656e657261), k[1] ^ UINT64_C(0x7465646279746573)};
        for (size_t i = 0; i <= word.n / 8; i++) {
                uint64_t m = 0;
                for (size_t b = 0; b < 8 && i * 8 + b < word.n; b++)
                        m |= (uint64_t)(unsigned char)word.p[i * 8 + b] << (8 * b);
                if (i == word.n / 8)
                        m |= (uint64_t)word.n << 56;
                v[3] ^= m;
                sip_round(v);
                sip_round(v);
                v[0] ^= m;
        }
        v[2] ^= 0xff;
        for (int i = 0; i < 4; i++)
                sip_round(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void afz_mask_word(const struct afz_mask *mask, struct afz_span word, struct afz_out *out)
{
        if (word.n > 0)
                afz_out_fmt(out, "x%06x", (unsigned)(hash(mask, word) & 0xffffff));
}

void afz_mask_comm(const struct afz_mask *mask, struct afz_span comm, struct afz_out *out)
{
        static const char digits[] = "0123456789abcdef";
        size_t keep = afz_known_program(comm);
        uint64_t h = hash(mask, comm);
        afz_out_bytes(out, comm.p, keep);
        for (size_t i = keep; i < comm.n; i++, h = rotate(h, 4))
                afz_out_char(out, i == keep ? 'x' : digits[h & 15]);
}

static struct afz_span skip(struct afz_span s, size_t n)
{
        return (struct afz_span){s.p + n, s.n - n};
}

/* The next component; what is left begins behind its slash. False at the end. */
static bool take_component(struct afz_span *path, struct afz_span *ret, bool *ret_slash)
{
        if (path->n == 0)
                return false;
        const char *slash = memchr(path->p, '/', path->n);
        size_t n = slash ? (size_t)(slash - path->p) : path->n;
        *ret = (struct afz_span){path->p, n};
        *ret_slash = slash != NULL;
        *path = skip(*path, slash ? n + 1 : n);
        return true;
}

static bool is_step(struct afz_span name)
{
        return name.n == 0 || afz_span_eq(name, ".") || afz_span_eq(name, "..");
}

static void mask_component(const struct afz_mask *mask, struct afz_span name, struct afz_out *out)
{
        static const char *const marks[] = {"memfd:", "dmabuf:"};
        if (is_step(name) || afz_known_component(name)) {
                afz_out_bytes(out, name.p, name.n);
                return;
        }
        for (size_t i = 0; i < AFZ_COUNT_OF(marks); i++)
                if (afz_span_take_prefix(&name, marks[i]) == 0)
                        afz_out_str(out, marks[i]);
        afz_mask_word(mask, name, out);
}

void afz_mask_path(const struct afz_mask *mask, struct afz_span path, struct afz_out *out)
{
        struct afz_span name;
        bool slash;
        while (take_component(&path, &name, &slash)) {
                mask_component(mask, name, out);
                if (slash)
                        afz_out_char(out, '/');
        }
}

void afz_mask_target(const struct afz_mask *mask, struct afz_span target, struct afz_out *out)
{
        static const char deleted[] = " (deleted)";
        bool gone = afz_span_ends(target, deleted);
        if (gone)
                target.n -= strlen(deleted);
        if (afz_known_target(target))
                afz_out_bytes(out, target.p, target.n);
        else
                afz_mask_path(mask, target, out);
        if (gone)
                afz_out_str(out, deleted);
}

static void mask_cgroup(const struct afz_mask *mask, struct afz_span name, struct afz_out *out)
{
        static const char *const endings[] = {".service", ".scope", ".slice", ".mount", ".socket"};
        if (is_step(name) || afz_known_cgroup(name)) {
                afz_out_bytes(out, name.p, name.n);
                return;
        }
        for (size_t i = 0; i < AFZ_COUNT_OF(endings); i++) {
                if (!afz_span_ends(name, endings[i]))
                        continue;
                afz_mask_word(mask, name, out);
                afz_out_str(out, endings[i]);
                return;
        }
        afz_mask_word(mask, name, out);
}

void afz_mask_cgroup_path(const struct afz_mask *mask, struct afz_span path, struct afz_out *out)
{
        struct afz_span name;
        bool slash;
        while (take_component(&path, &name, &slash)) {
                mask_cgroup(mask, name, out);
                if (slash)
                        afz_out_char(out, '/');
        }
}

void afz_mask_release(const struct afz_mask *mask, struct afz_span release, struct afz_out *out)
{
        while (release.n > 0) {
                const char *dash = memchr(release.p, '-', release.n);
                size_t n = dash ? (size_t)(dash - release.p) : release.n;
                struct afz_span part = {release.p, n};
                if (afz_known_release(part))
                        afz_out_bytes(out, part.p, part.n);
                else
                        afz_mask_word(mask, part, out);
                if (dash)
                        afz_out_char(out, '-');
                release = skip(release, dash ? n + 1 : n);
        }
}

static void mask_osrelease(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        afz_mask_release(mask, afz_span_trim(text), out);
        if (afz_span_ends(text, "\n"))
                afz_out_char(out, '\n');
}

/* Folders of /sys whose entries somebody gave a name to. */
static const struct {
        const char *folder;
        bool (*known)(struct afz_span);
} named_in_sys[] = {
        {"class/net/", afz_known_interface},
        {"class/power_supply/", afz_known_supply},
};

static void mask_sys_path(const struct afz_mask *mask, struct afz_span path, struct afz_out *out)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(named_in_sys); i++) {
                struct afz_span name;
                bool slash;
                if (afz_span_take_prefix(&path, named_in_sys[i].folder) < 0)
                        continue;
                afz_out_str(out, named_in_sys[i].folder);
                if (!take_component(&path, &name, &slash))
                        return;
                if (named_in_sys[i].known(name))
                        afz_out_bytes(out, name.p, name.n);
                else
                        afz_mask_word(mask, name, out);
                if (slash)
                        afz_out_char(out, '/');
        }
        afz_out_bytes(out, path.p, path.n);
}

void afz_mask_name(const struct afz_mask *mask, enum afz_root root, enum afz_open_kind kind,
                   struct afz_span path, struct afz_out *out)
{
        const char *slash = path.n > 0 ? memrchr(path.p, '/', path.n) : NULL;
        size_t folder = slash ? (size_t)(slash + 1 - path.p) : 0;
        switch (root) {
        case AFZ_ROOT_CGROUP: /* files have the kernel's names, folders anybody's */
                if (kind != AFZ_OPEN_FILE)
                        folder = path.n;
                afz_mask_cgroup_path(mask, (struct afz_span){path.p, folder}, out);
                afz_out_bytes(out, path.p + folder, path.n - folder);
                break;
        case AFZ_ROOT_DEV:
                afz_mask_path(mask, path, out);
                break;
        case AFZ_ROOT_SYS:
                mask_sys_path(mask, path, out);
                break;
        default:
                afz_out_bytes(out, path.p, path.n);
                break;
        }
}

bool afz_mask_take_line(struct afz_span *text, struct afz_span *ret, bool *ret_whole)
{
        if (text->n == 0)
                return false;
        *ret_whole = afz_span_take_line(text, ret) == 0;
        if (!*ret_whole) {
                *ret = *text;
                *text = skip(*text, text->n);
        }
        return true;
}

static void keep(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        (void)mask;
        afz_out_bytes(out, text.p, text.n);
}

static void hide(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        (void)mask, (void)text, (void)out;
}

/* "4:memory:/user.slice/mine" */
static void mask_cgroup_file(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span line;
        bool whole;
        while (afz_mask_take_line(&text, &line, &whole)) {
                const char *path = memchr(line.p, '/', line.n);
                size_t head = path ? (size_t)(path - line.p) : line.n;
                afz_out_bytes(out, line.p, head);
                afz_mask_cgroup_path(mask, skip(line, head), out);
                if (whole)
                        afz_out_char(out, '\n');
        }
}

/* "  eth0: 1 2 3", or "eth0:1 2 3" */
static void mask_net_dev(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span line;
        bool whole;
        while (afz_mask_take_line(&text, &line, &whole)) {
                const char *colon = memrchr(line.p, ':', line.n);
                size_t n = colon ? (size_t)(colon - line.p) : 0;
                struct afz_span name = afz_span_trim((struct afz_span){line.p, n});
                if (afz_known_interface(name))
                        afz_out_bytes(out, name.p, name.n);
                else
                        afz_mask_word(mask, name, out);
                /* A half line without its colon may be nothing but a name. */
                if (whole || colon)
                        afz_out_bytes(out, line.p + n, line.n - n);
                if (whole)
                        afz_out_char(out, '\n');
        }
}

/* "KEY=value"; a battery has its serial number here. */
static void mask_uevent(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span line;
        bool whole;
        (void)mask;
        while (afz_mask_take_line(&text, &line, &whole)) {
                if (afz_span_has(line, "SERIAL") || afz_span_has(line, "UNIQ"))
                        continue;
                afz_out_bytes(out, line.p, line.n);
                if (whole)
                        afz_out_char(out, '\n');
        }
}

/* '*' stands for one component or the rest of one. In /proc a file without a row is left out. */
static const struct rule {
        enum afz_root root;
        const char *pattern;
        afz_mask_text *mask;
} rules[] = {
        {AFZ_ROOT_PROC, "*/cmdline", afz_mask_cmdline},
        {AFZ_ROOT_PROC, "*/environ", afz_mask_environ},
        {AFZ_ROOT_PROC, "*/stat", afz_mask_stat},
        {AFZ_ROOT_PROC, "*/task/*/stat", afz_mask_stat},
        {AFZ_ROOT_PROC, "*/status", afz_mask_status},
        {AFZ_ROOT_PROC, "*/task/*/status", afz_mask_status},
        {AFZ_ROOT_PROC, "*/comm", afz_mask_comm_file},
        {AFZ_ROOT_PROC, "*/task/*/comm", afz_mask_comm_file},
        {AFZ_ROOT_PROC, "*/fdinfo/*", afz_mask_fdinfo},
        {AFZ_ROOT_PROC, "*/mountinfo", afz_mask_mountinfo},
        {AFZ_ROOT_PROC, "*/mountstats", afz_mask_mountstats},
        {AFZ_ROOT_PROC, "*/cgroup", mask_cgroup_file},
        {AFZ_ROOT_PROC, "*/smaps_rollup", afz_mask_smaps},
        {AFZ_ROOT_PROC, "*/statm", keep},
        {AFZ_ROOT_PROC, "*/io", keep},
        {AFZ_ROOT_PROC, "*/limits", keep},
        {AFZ_ROOT_PROC, "*/wchan", keep},
        {AFZ_ROOT_PROC, "*/task/*/wchan", keep},
        {AFZ_ROOT_PROC, "*/task/*/children", keep},
        {AFZ_ROOT_PROC, "*/oom_score", keep},
        {AFZ_ROOT_PROC, "*/oom_score_adj", keep},
        {AFZ_ROOT_PROC, "*/schedstat", keep},
        {AFZ_ROOT_PROC, "*/net/dev", mask_net_dev},
        {AFZ_ROOT_PROC, "net/dev", mask_net_dev},
        {AFZ_ROOT_PROC, "meminfo", keep},
        {AFZ_ROOT_PROC, "vmstat", keep},
        {AFZ_ROOT_PROC, "stat", keep},
        {AFZ_ROOT_PROC, "loadavg", keep},
        {AFZ_ROOT_PROC, "uptime", keep},
        {AFZ_ROOT_PROC, "diskstats", keep},
        {AFZ_ROOT_PROC, "zoneinfo", keep},
        {AFZ_ROOT_PROC, "swaps", afz_mask_swaps},
        {AFZ_ROOT_PROC, "pressure/*", keep},
        {AFZ_ROOT_PROC, "sys/vm/*", keep},
        {AFZ_ROOT_PROC, "sys/kernel/osrelease", mask_osrelease},
        {AFZ_ROOT_PROC, "sys/kernel/yama/*", keep},
        {AFZ_ROOT_PROC, "spl/kstat/zfs/arcstats", keep},
        {AFZ_ROOT_PROC, "driver/nvidia/version", keep},

        {AFZ_ROOT_SYS, "class/net/*/address", hide},
        {AFZ_ROOT_SYS, "class/power_supply/*/serial_number", hide},
        {AFZ_ROOT_SYS, "class/power_supply/*/uevent", mask_uevent},
        {AFZ_ROOT_DEV, "kmsg", hide},
};

static bool matches(const char *path, const char *pattern)
{
        for (; *pattern; pattern++) {
                if (*pattern == '*')
                        path += strcspn(path, "/");
                else if (*path++ != *pattern)
                        return false;
        }
        return *path == '\0';
}

int afz_mask_file(const struct afz_mask *mask, enum afz_root root, const char *path,
                  struct afz_span text, struct afz_out *out)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(rules); i++) {
                if (rules[i].root != root || !matches(path, rules[i].pattern))
                        continue;
                rules[i].mask(mask, text, out);
                return out->err;
        }
        if (root != AFZ_ROOT_SYS && root != AFZ_ROOT_CGROUP)
                return -EPERM;
        keep(mask, text, out);
        return out->err;
}
