#ifndef AFZ_CAPTURE_MASK_H
#define AFZ_CAPTURE_MASK_H
/* What a capture may show of a file. Pure: texts in, texts out.
 *
 * A private word becomes 'x' and 6 hexadecimal digits of a keyed hash (SipHash-2-4). The key is
 * drawn anew for every capture and thrown away: within a capture the same word has the same mask
 * everywhere, so that a folder in a mount table, a working directory and a link still fit together,
 * and nobody can try out words afterwards. capture_known.h has the words that are kept.
 *
 * Masked texts parse as the originals do: the senses see the same values and the same roles, only
 * other names.
 */
#include <stdint.h>

#include "env.h"
#include "out.h"

struct afz_mask {
        uint64_t key[2];
};

/* One word, whole. */
void afz_mask_word(const struct afz_mask *mask, struct afz_span word, struct afz_out *out);

/* A thread's name; as long as before. */
void afz_mask_comm(const struct afz_mask *mask, struct afz_span comm, struct afz_out *out);

/* A path, absolute or not, component by component. No blank or newline is in the result. */
void afz_mask_path(const struct afz_mask *mask, struct afz_span path, struct afz_out *out);

/* What a link leads to: a path, "socket:[1]", "/memfd:x (deleted)". */
void afz_mask_target(const struct afz_mask *mask, struct afz_span target, struct afz_out *out);

/* A path below the cgroup root, or in /proc/PID/cgroup. */
void afz_mask_cgroup_path(const struct afz_mask *mask, struct afz_span path, struct afz_out *out);

/* A kernel's release: who builds his own gives it a name. */
void afz_mask_release(const struct afz_mask *mask, struct afz_span release, struct afz_out *out);

/* The path of a file, folder or link below one of the env's roots, as the capture has it. */
void afz_mask_name(const struct afz_mask *mask, enum afz_root root, enum afz_open_kind kind,
                   struct afz_span path, struct afz_out *out);

/* The text of a file below a root. -EPERM when nothing is known of this file: it is left out,
 * because what nobody thought about may be private. */
int afz_mask_file(const struct afz_mask *mask, enum afz_root root, const char *path,
                  struct afz_span text, struct afz_out *out);

/* Bytes that are enough for the mask of so many. */
static inline size_t afz_mask_room(size_t n)
{
        return 8 * n + 256;
}

/* One file each; afz_mask_file() picks them. Half a line at the end is masked as a whole one is. */
typedef void afz_mask_text(const struct afz_mask *mask, struct afz_span text, struct afz_out *out);

/* capture_mask_proc.c */
afz_mask_text afz_mask_cmdline, afz_mask_environ, afz_mask_stat, afz_mask_status,
        afz_mask_comm_file, afz_mask_fdinfo, afz_mask_smaps;
/* capture_mask_mount.c */
afz_mask_text afz_mask_mountinfo, afz_mask_mountstats, afz_mask_swaps;

/* The next line with or without a newline behind it; false at the end. */
bool afz_mask_take_line(struct afz_span *text, struct afz_span *ret, bool *ret_whole);

#endif
