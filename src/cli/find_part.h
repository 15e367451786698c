#ifndef AFZ_FIND_PART_H
#define AFZ_FIND_PART_H
/* Where a part of ours lies that is not in this program: beside it in a build folder, in a folder
 * beside that of where it was installed, or where it was to be installed. */
#include <stddef.h>

struct afz_part {
        const char *name;      /* the file that must be there, and readable */
        const char *beside[6]; /* folders to look in, from this program's own on, as of glob(7):
                                  "/x/"; NULL ends them */
        const char *installed; /* the folder of the build's own prefix */
};

/* All that we have. */
extern const struct afz_part afz_part_probe, afz_part_agent, afz_part_loader, afz_part_converter,
        afz_part_manual;

/* Its path. -ENOENT: nowhere. */
int afz_find_part(const struct afz_part *part, char *ret, size_t cap);

/* The same for a program that lies elsewhere. */
int afz_find_part_of(const char *program, const struct afz_part *part, char *ret, size_t cap);

#endif
