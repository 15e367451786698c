#include "py_find.h"

#include <errno.h>
#include <string.h>

#include "py_elf.h"

static bool is_candidate(struct afz_span path, struct afz_span exe)
{
        struct afz_span name = afz_span_base_name(path);
        if (path.n > 0 && path.n == exe.n && memcmp(path.p, exe.p, path.n) == 0)
                return true;
        return afz_span_starts(name, "libpython") || afz_span_starts(name, "python");
}

/* "7f0c-7f1d r--p 00000000 fe:01 1234    /usr/bin/python3.11" */
bool afz_py_find_line(struct afz_span line, struct afz_span exe, uint64_t *ret_base)
{
        uint64_t start, offset;
        struct afz_span word;
        if (afz_span_take_hex(&line, &start) < 0 || afz_span_take_word(&line, &word) < 0 ||
            afz_span_take_word(&line, &word) < 0 || afz_span_take_hex(&line, &offset) < 0 ||
            afz_span_take_word(&line, &word) < 0 || afz_span_take_word(&line, &word) < 0)
                return false;
        line = afz_span_trim(line);
        if (offset != 0 || line.n == 0 || line.p[0] != '/' || !is_candidate(line, exe))
                return false;
        *ret_base = start;
        return true;
}

static bool has(const struct afz_py_memory *m, const struct afz_py_elf *elf, const char *name)
{
        uint64_t at;
        return afz_py_elf_find(m, elf, name, &at) == 0;
}

/* Before 3.11 an interpreter doesn't export its version, but what came with each version is
 * exported for good. */
static int read_minor(const struct afz_py_memory *m, const struct afz_py_elf *elf,
                      uint32_t *ret_hex)
{
        static const struct {
                const char *symbol;
                uint32_t hex;
        } since[] = {
                {"PyModule_AddObjectRef", 0x030a0000},
                {"PyObject_CallNoArgs", 0x03090000},
        };
        uint64_t at, version;
        int r = afz_py_elf_find(m, elf, "Py_Version", &at);
        if (r == 0) {
                r = afz_py_read_u64(m, at, &version);
                if (r == 0)
                        *ret_hex = (uint32_t)version;
                return r;
        }
        for (size_t i = 0; r == -ENOENT && i < sizeof since / sizeof since[0]; i++) {
                if (has(m, elf, since[i].symbol)) {
                        *ret_hex = since[i].hex;
                        return 0;
                }
        }
        return r == -ENOENT ? -ENOTSUP : r;
}

static int read_layout(struct afz_py_place *place, const struct afz_py_elf *elf, uint32_t hex)
{
        const struct afz_py_memory *m = &place->memory;
        unsigned char published[AFZ_PY_PUBLISHED_BYTES];
        unsigned minor = hex >> 16 & 0xff;
        if (hex >> 24 != 3)
                return -ENOTSUP;
        if (minor < 13) {
                /* Only builds that count all references have it; in those the tables may be wrong.
                 */
                if (has(m, elf, "_Py_NegativeRefcount"))
                        return -ENOTSUP;
                return afz_py_layout_table(minor, &place->layout);
        }
        int r = afz_py_read(m, place->runtime, published, sizeof published);
        return r < 0 ? r : afz_py_layout_published(hex, published, &place->layout);
}

int afz_py_find_in(struct afz_py_place *place, uint64_t base)
{
        const struct afz_py_memory *m = &place->memory;
        struct afz_py_elf elf;
        uint32_t hex = 0;
        int r = afz_py_elf_open(m, base, &elf);
        if (r == 0)
                r = afz_py_elf_find(m, &elf, "_PyRuntime", &place->runtime);
        if (r < 0)
                return r == -EBADMSG || r == -EFAULT ? -ENOENT : r;
        r = afz_py_elf_find(m, &elf, "PyCode_Type", &place->code_type);
        if (r == 0)
                r = read_minor(m, &elf, &hex);
        if (r == 0)
                r = read_layout(place, &elf, hex);
        if (r == 0)
                r = afz_py_walk_check(place);
        return r == -ENOENT || r == -EFAULT ? -ENOTSUP : r;
}
