#include "config.h"
#include "find_part.h"

#define LIB_FOLDERS "/../lib/antifreeze/", "/../lib64/antifreeze/", "/../lib/*/antifreeze/"

const struct afz_part afz_part_probe = {
        .name = "libantifreeze-probe.so",
        .beside = {"/probe/", LIB_FOLDERS},
        .installed = AFZ_PROBE_DIR,
};

const struct afz_part afz_part_agent = {
        .name = "sitecustomize.py",
        .beside = {"/python/antifreeze/enter/", "/../share/antifreeze/python/antifreeze/enter/"},
        .installed = AFZ_AGENT_DIR "/antifreeze/enter",
};

const struct afz_part afz_part_loader = {
        .name = "libantifreeze-loader.so",
        .beside = {"/loader/", LIB_FOLDERS},
        .installed = AFZ_PROBE_DIR,
};

const struct afz_part afz_part_converter = {
        .name = "antifreeze-convert",
        .beside = {"/convert/", "/../libexec/antifreeze/"},
        .installed = AFZ_LIBEXEC_DIR,
};

const struct afz_part afz_part_manual = {
        .name = "antifreeze.1*", /* packages press it */
        .beside = {"/docs/", "/../share/man/man1/"},
        .installed = AFZ_MAN_DIR,
};
