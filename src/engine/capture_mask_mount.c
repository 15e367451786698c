/* Masks of the tables of mounts and swap. */
#include <limits.h>
#include <string.h>

#include "capture_known.h"
#include "capture_mask.h"
#include "mountinfo.h"

/* Components are masked as they are called and not as they are written, so that a path in a link
 * and the same path in this table get the same mask. */
static void mask_escaped_path(const struct afz_mask *mask, struct afz_span path,
                              struct afz_out *out)
{
        char name[PATH_MAX];
        ssize_t n = afz_mount_unescape(path, name, sizeof name);
        afz_mask_path(mask, n < 0 ? path : (struct afz_span){name, (size_t)n}, out);
}

/* "/dev/vda", "server:/export", "//server/share", "pool/set", "tmpfs" */
static void mask_source(const struct afz_mask *mask, struct afz_span source, struct afz_out *out)
{
        if (afz_known_fs_source(source)) {
                afz_out_bytes(out, source.p, source.n);
                return;
        }
        const char *colon = memmem(source.p, source.n, ":/", 2);
        if (colon && !afz_span_starts(source, "/")) {
                size_t n = (size_t)(colon - source.p);
                afz_mask_word(mask, (struct afz_span){source.p, n}, out);
                afz_out_char(out, ':');
                source = (struct afz_span){source.p + n + 1, source.n - n - 1};
        }
        mask_escaped_path(mask, source, out);
}

static void mask_type(const struct afz_mask *mask, struct afz_span type, struct afz_out *out)
{
        if (afz_known_fs_type(type)) {
                afz_out_bytes(out, type.p, type.n);
                return;
        }
        if (afz_span_take_prefix(&type, "fuse.") == 0)
                afz_out_str(out, "fuse.");
        afz_mask_word(mask, type, out);
}

static const char *ro_or_rw(struct afz_span options)
{
        return afz_span_eq(options, "ro") || afz_span_starts(options, "ro,") ? "ro" : "rw";
}

/* id parent major:minor root point options tags... - type [source] super-options */
static void mask_mount(const struct afz_mask *mask, struct afz_span line, struct afz_out *out)
{
        enum { ROOT = 3, POINT = 4, OPTIONS = 5 };
        struct afz_span word, type, source, super;
        for (int i = 0; afz_span_take_word(&line, &word) == 0; i++) {
                if (i > OPTIONS && afz_span_eq(word, "-"))
                        break;
                if (i == ROOT || i == POINT)
                        mask_escaped_path(mask, word, out);
                else
                        afz_out_bytes(out, word.p, word.n);
                afz_out_char(out, ' ');
        }
        if (afz_span_take_word(&line, &type) < 0 || afz_span_take_word(&line, &source) < 0)
                return;
        afz_out_str(out, "- ");
        mask_type(mask, type, out);
        afz_out_char(out, ' ');
        if (afz_span_take_word(&line, &super) == 0) {
                mask_source(mask, source, out);
                afz_out_char(out, ' ');
        } else {
                super = source; /* an empty source is written as nothing at all */
        }
        afz_out_str(out, ro_or_rw(super));
        afz_out_char(out, '\n');
}

void afz_mask_mountinfo(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span line;
        struct afz_mount ignored;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_mountinfo_parse(line, &ignored) == 0)
                        mask_mount(mask, line, out);
}

/* "device SOURCE mounted on POINT with fstype TYPE statvers=1.1": whether the line is one. */
static bool mask_stats_head(const struct afz_mask *mask, struct afz_span line, struct afz_out *out)
{
        struct afz_span source = {"", 0}, point, type;
        bool device = afz_span_take_prefix(&line, "device ") == 0;
        if (device ? afz_span_take_word(&line, &source) < 0
                   : afz_span_take_prefix(&line, "no device") < 0)
                return false;
        if (afz_span_take_prefix(&line, " mounted on ") < 0 ||
            afz_span_take_word(&line, &point) < 0 ||
            afz_span_take_prefix(&line, " with fstype ") < 0 ||
            afz_span_take_word(&line, &type) < 0)
                return false;
        afz_out_str(out, device ? "device " : "no device");
        mask_source(mask, source, out);
        afz_out_str(out, " mounted on ");
        mask_escaped_path(mask, point, out);
        afz_out_str(out, " with fstype ");
        mask_type(mask, type, out);
        if (afz_span_eq(line, " statvers=1.1") || afz_span_eq(line, " statvers=1.0"))
                afz_out_bytes(out, line.p, line.n);
        afz_out_char(out, '\n');
        return true;
}

/* "READ: 1 2 3", "bytes: 1 2": nothing but a name of the kernel's and numbers. */
static bool is_counters(struct afz_span line)
{
        struct afz_span name;
        line = afz_span_trim(line);
        if (afz_span_take_until(&line, ':', &name) < 0)
                return false;
        for (size_t i = 0; i < name.n; i++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
                            name.p[i]))
                        return false;
        for (size_t i = 0; i < line.n; i++)
                if (!strchr("0123456789 \t", line.p[i]))
                        return false;
        return true;
}

/* Of what stands below an NFS mount the counters are kept: options name the server and its port,
 * implementation ids its maker. */
void afz_mask_mountstats(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span line;
        while (afz_span_take_line(&text, &line) == 0) {
                struct afz_span words = afz_span_trim(line), rest = words;
                if (mask_stats_head(mask, line, out))
                        continue;
                if (afz_span_take_prefix(&rest, "opts:\t") == 0)
                        afz_out_fmt(out, "\topts:\t%s\n", ro_or_rw(rest));
                else if (afz_span_eq(words, "per-op statistics"))
                        afz_out_str(out, "\tper-op statistics\n");
                else if (words.n == 0)
                        afz_out_char(out, '\n');
                else if (is_counters(line)) {
                        afz_out_bytes(out, line.p, line.n);
                        afz_out_char(out, '\n');
                }
        }
}

/* "Filename Type Size Used Priority" */
void afz_mask_swaps(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span line, word;
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_span_starts(line, "/") && afz_span_take_word(&line, &word) == 0)
                        mask_escaped_path(mask, word, out);
                afz_out_bytes(out, line.p, line.n);
                afz_out_char(out, '\n');
        }
}
