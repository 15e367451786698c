#include "version.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "count_of.h"
#include "doctor.h"
#include "find_part.h"

static void put_part(FILE *out, const char *name, const struct afz_part *part)
{
        char path[1024], real[PATH_MAX];
        bool found = afz_find_part(part, path, sizeof path) == 0 && realpath(path, real);
        fprintf(out, "%-8s %s\n", name, found ? real : "not found");
}

/* All but libdw are the loader's. */
static void put_codecs(FILE *out)
{
        const char *comma = "";
        fputs("codecs  ", out);
        for (size_t i = 0; i < afz_feature_count; i++) {
                const struct afz_feature *f = &afz_feature_table[i];
                if (strcmp(f->name, "libdw") == 0)
                        continue;
                fprintf(out, "%s %s %s", comma, f->name, *f->version ? f->version : "left out");
                comma = ",";
        }
        fputc('\n', out);
}

static void put_libdw(FILE *out)
{
        for (size_t i = 0; i < afz_feature_count; i++) {
                const struct afz_feature *f = &afz_feature_table[i];
                if (strcmp(f->name, "libdw") == 0)
                        fprintf(out, "%-8s %s\n", f->name, *f->version ? f->version : "left out");
        }
}

void afz_version_print(FILE *out)
{
        static const struct {
                const char *name;
                const struct afz_part *part;
        } rows[] = {
                {"probe", &afz_part_probe},   {"agent", &afz_part_agent},
                {"loader", &afz_part_loader}, {"convert", &afz_part_converter},
                {"manual", &afz_part_manual},
        };
        fprintf(out, "antifreeze %s\n", AFZ_VERSION);
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++)
                put_part(out, rows[i].name, rows[i].part);
        put_codecs(out);
        put_libdw(out);
}
