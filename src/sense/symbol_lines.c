#include "symbol_lines.h"

#if AFZ_HAVE_LIBDW

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "span.h"

/* As in native_stack.c: the program links libc alone. */
#define CALLS_(X)                                                                                  \
        X(dwfl_begin)                                                                              \
        X(dwfl_end)                                                                                \
        X(dwfl_report_begin)                                                                       \
        X(dwfl_report_end)                                                                         \
        X(dwfl_report_offline)                                                                     \
        X(dwfl_offline_section_address)                                                            \
        X(dwfl_module_getelf)                                                                      \
        X(dwfl_module_getsrc)                                                                      \
        X(dwfl_module_addrdie)                                                                     \
        X(dwfl_lineinfo)                                                                           \
        X(dwarf_getscopes)                                                                         \
        X(dwarf_getscopes_die)                                                                     \
        X(dwarf_getsrcfiles)                                                                       \
        X(dwarf_filesrc)                                                                           \
        X(dwarf_tag)                                                                               \
        X(dwarf_attr_integrate)                                                                    \
        X(dwarf_formstring)                                                                        \
        X(dwarf_formudata)

struct calls {
#define MEMBER_(name) __typeof__(name) *name;
        CALLS_(MEMBER_)
};

struct afz_symbol_lines {
        void *library;
        struct calls dw;
        Dwfl_Callbacks calls;
        struct afz_symbol_namer namer;
        Dwfl *dwfl;
        Dwfl_Module *module;
        uint64_t bias;
};

static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                        const char *file, const char *link, GElf_Word crc, char **ret)
{
        (void)module, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc;
        (void)ret;
        return -1;
}

static bool load(struct afz_symbol_lines *l)
{
        l->library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!l->library)
                return false;
        void *symbol;
#define FIND_(name)                                                                                \
        if (!(symbol = dlsym(l->library, #name)))                                                  \
                return false;                                                                      \
        memcpy(&l->dw.name, &symbol, sizeof symbol);
        CALLS_(FIND_)
        l->calls = (Dwfl_Callbacks){
                .find_debuginfo = no_debuginfo,
                .section_address = l->dw.dwfl_offline_section_address,
        };
        return true;
}

static bool open_module(struct afz_symbol_lines *l, const char *path, int fd)
{
        Dwarf_Addr bias = 0;
        l->dwfl = load(l) ? l->dw.dwfl_begin(&l->calls) : NULL;
        if (!l->dwfl) {
                close(fd);
                return false;
        }
        l->dw.dwfl_report_begin(l->dwfl);
        l->module = l->dw.dwfl_report_offline(l->dwfl, path, path, fd);
        (void)l->dw.dwfl_report_end(l->dwfl, NULL, NULL);
        if (!l->module)
                close(fd); /* else it is the library's */
        if (!l->module || !l->dw.dwfl_module_getelf(l->module, &bias))
                return false;
        l->bias = bias;
        return true;
}

struct afz_symbol_lines *afz_symbol_lines_new(const char *path, int fd,
                                              const struct afz_symbol_namer *namer)
{
        struct afz_symbol_lines *l = calloc(1, sizeof *l);
        if (!l) {
                close(fd);
                return NULL;
        }
        l->namer = *namer;
        if (open_module(l, path, fd))
                return l;
        afz_symbol_lines_free(l);
        return NULL;
}

void afz_symbol_lines_free(struct afz_symbol_lines *l)
{
        if (!l)
                return;
        if (l->dwfl)
                l->dw.dwfl_end(l->dwfl);
        if (l->library)
                dlclose(l->library);
        free(l);
}

/* ---- asking ---- */

static void set_text(const char *text, char *ret, size_t cap)
{
        if (text)
                afz_span_copy(afz_span_str(text), ret, cap);
}

static void set_function(const struct afz_symbol_lines *l, const char *name, struct afz_symbol *ret)
{
        if (name)
                l->namer.call(l->namer.ctx, name, ret->function, sizeof ret->function);
}

static const char *name_of_die(const struct afz_symbol_lines *l, Dwarf_Die *die)
{
        static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
        Dwarf_Attribute attr;
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
                if (l->dw.dwarf_attr_integrate(die, names[i], &attr))
                        return l->dw.dwarf_formstring(&attr);
        return NULL;
}

/* Where what was inlined was called from. */
static void set_call(const struct afz_symbol_lines *l, Dwarf_Die *cu, Dwarf_Die *die,
                     struct afz_symbol *ret)
{
        Dwarf_Attribute attr;
        Dwarf_Word number;
        Dwarf_Files *files;
        size_t count;
        if (l->dw.dwarf_attr_integrate(die, DW_AT_call_line, &attr) &&
            l->dw.dwarf_formudata(&attr, &number) == 0)
                ret->line = (uint32_t)number;
        if (l->dw.dwarf_attr_integrate(die, DW_AT_call_file, &attr) &&
            l->dw.dwarf_formudata(&attr, &number) == 0 &&
            l->dw.dwarf_getsrcfiles(cu, &files, &count) == 0 && number < count)
                set_text(l->dw.dwarf_filesrc(files, number, NULL, NULL), ret->file,
                         sizeof ret->file);
}

/* ret[0] has the line already; each function that was inlined takes the place in front of the one
 * that it was inlined into. */
static size_t add_inlines(const struct afz_symbol_lines *l, Dwarf_Die *cu, uint64_t address,
                          struct afz_symbol *ret, size_t cap)
{
        Dwarf_Die *inner = NULL, *scope = NULL;
        size_t n = 0;
        bool named = false;
        if (l->dw.dwarf_getscopes(cu, address, &inner) <= 0)
                return 0;
        int scopes = l->dw.dwarf_getscopes_die(&inner[0], &scope);
        for (int i = 0; i < scopes && !named; i++) {
                int tag = l->dw.dwarf_tag(&scope[i]);
                if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
                        continue;
                set_function(l, name_of_die(l, &scope[i]), &ret[n]);
                named = tag == DW_TAG_subprogram;
                if (named)
                        break;
                struct afz_symbol outer = {0};
                set_call(l, cu, &scope[i], &outer);
                if (n + 1 < cap)
                        n++;
                ret[n] = outer;
        }
        free(inner);
        free(scope);
        return named ? n + 1 : 0;
}

size_t afz_symbol_lines_find(const struct afz_symbol_lines *l, uint64_t address,
                             struct afz_symbol *ret, size_t cap)
{
        Dwarf_Addr bias = 0, at = address + l->bias;
        int line = 0;
        Dwfl_Line *source = l->dw.dwfl_module_getsrc(l->module, at);
        if (source) {
                set_text(l->dw.dwfl_lineinfo(source, NULL, &line, NULL, NULL, NULL), ret->file,
                         sizeof ret->file);
                ret->line = line > 0 ? (uint32_t)line : 0;
        }
        Dwarf_Die *cu = l->dw.dwfl_module_addrdie(l->module, at, &bias);
        return cu ? add_inlines(l, cu, at - bias, ret, cap) : 0;
}

#else

#include <unistd.h>

struct afz_symbol_lines *afz_symbol_lines_new(const char *path, int fd,
                                              const struct afz_symbol_namer *namer)
{
        (void)path, (void)namer;
        close(fd);
        return NULL;
}

void afz_symbol_lines_free(struct afz_symbol_lines *lines)
{
        (void)lines;
}

size_t afz_symbol_lines_find(const struct afz_symbol_lines *lines, uint64_t address,
                             struct afz_symbol *ret, size_t cap)
{
        (void)lines, (void)address, (void)ret, (void)cap;
        return 0;
}

#endif
