#include "symbols.h"

#include <errno.h>

#if AFZ_HAVE_LIBDW

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
        X(dwfl_module_build_id)                                                                    \
        X(dwfl_module_addrinfo)                                                                    \
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
#define MEMBER_(name) typeof(name) *name;
        CALLS_(MEMBER_)
};

enum { MODULES = 128 }; /* files that are open; a job has some hundred, and few of them allocate */

struct file {
        char *path;
        Dwfl *dwfl;
        Dwfl_Module *module; /* NULL: there is nothing in it for us */
        uint64_t bias;
};

struct afz_symbols {
        void *library, *cxx; /* libstdc++, for its demangler; NULL: none */
        char *(*demangle)(const char *name, char *buf, size_t *size, int *status);
        struct calls dw;
        Dwfl_Callbacks calls;
        unsigned files;
        struct file file[MODULES];
};

static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                        const char *file, const char *link, GElf_Word crc, char **ret)
{
        (void)module, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc;
        (void)ret;
        return -1;
}

static int load(struct afz_symbols *s)
{
        s->library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!s->library)
                return -ENOTSUP;
        void *symbol;
#define FIND_(name)                                                                                \
        if (!(symbol = dlsym(s->library, #name)))                                                  \
                return -ENOTSUP;                                                                   \
        memcpy(&s->dw.name, &symbol, sizeof symbol);
        CALLS_(FIND_)
        s->cxx = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
        symbol = s->cxx ? dlsym(s->cxx, "__cxa_demangle") : NULL;
        memcpy(&s->demangle, &symbol, sizeof symbol);
        return 0;
}

int afz_symbols_new(struct afz_symbols **ret)
{
        struct afz_symbols *s = calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        int r = load(s);
        if (r < 0) {
                afz_symbols_free(s);
                return r;
        }
        s->calls = (Dwfl_Callbacks){
                .find_debuginfo = no_debuginfo,
                .section_address = s->dw.dwfl_offline_section_address,
        };
        *ret = s;
        return 0;
}

void afz_symbols_free(struct afz_symbols *s)
{
        if (!s)
                return;
        for (unsigned i = 0; i < s->files; i++) {
                if (s->file[i].dwfl)
                        s->dw.dwfl_end(s->file[i].dwfl);
                free(s->file[i].path);
        }
        if (s->cxx)
                dlclose(s->cxx);
        if (s->library)
                dlclose(s->library);
        free(s);
}

/* ---- files ---- */

static bool is_same_build(const struct afz_symbols *s, Dwfl_Module *module,
                          const struct afz_symbol_module *wanted)
{
        const unsigned char *bits;
        GElf_Addr at;
        int n = s->dw.dwfl_module_build_id(module, &bits, &at);
        size_t bytes = n > 0 ? (size_t)n : 0;
        if (wanted->build_id_bytes == 0)
                return true;
        return bytes >= wanted->build_id_bytes &&
               memcmp(bits, wanted->build_id, wanted->build_id_bytes) == 0;
}

/* A plain file: opening a pipe or a device of that name could wait for ever. */
static int open_plain(const char *path)
{
        struct stat about;
        int fd = path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
        if (fd >= 0 && (fstat(fd, &about) < 0 || !S_ISREG(about.st_mode))) {
                close(fd);
                fd = -1;
        }
        return fd;
}

static void open_file(struct afz_symbols *s, const struct afz_symbol_module *wanted, struct file *f)
{
        Dwarf_Addr bias = 0;
        int fd = open_plain(wanted->path);
        if (fd < 0)
                return;
        f->dwfl = s->dw.dwfl_begin(&s->calls);
        if (!f->dwfl) {
                close(fd);
                return;
        }
        s->dw.dwfl_report_begin(f->dwfl);
        Dwfl_Module *module = s->dw.dwfl_report_offline(f->dwfl, wanted->path, wanted->path, fd);
        (void)s->dw.dwfl_report_end(f->dwfl, NULL, NULL);
        if (!module) {
                close(fd); /* else it is the library's */
                return;
        }
        if (!s->dw.dwfl_module_getelf(module, &bias) || !is_same_build(s, module, wanted))
                return;
        f->module = module;
        f->bias = bias;
}

static const struct file *file_of(struct afz_symbols *s, const struct afz_symbol_module *wanted)
{
        for (unsigned i = 0; i < s->files; i++)
                if (strcmp(s->file[i].path, wanted->path) == 0)
                        return &s->file[i];
        char *path = s->files < MODULES ? strdup(wanted->path) : NULL;
        if (!path)
                return NULL;
        struct file *f = &s->file[s->files++];
        *f = (struct file){.path = path};
        open_file(s, wanted, f);
        return f;
}

/* ---- names ---- */

static void set_text(const char *text, char *ret, size_t cap)
{
        if (text)
                afz_span_copy(afz_span_str(text), ret, cap);
}

static void set_function(const struct afz_symbols *s, const char *name, struct afz_symbol *ret)
{
        int status = -1;
        char *plain = s->demangle && name && strncmp(name, "_Z", 2) == 0
                              ? s->demangle(name, NULL, NULL, &status)
                              : NULL;
        set_text(plain ? plain : name, ret->function, sizeof ret->function);
        free(plain);
}

static const char *name_of_die(const struct afz_symbols *s, Dwarf_Die *die)
{
        static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
        Dwarf_Attribute attr;
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
                if (s->dw.dwarf_attr_integrate(die, names[i], &attr))
                        return s->dw.dwarf_formstring(&attr);
        return NULL;
}

/* Where what was inlined was called from. */
static void set_call(const struct afz_symbols *s, Dwarf_Die *cu, Dwarf_Die *die,
                     struct afz_symbol *ret)
{
        Dwarf_Attribute attr;
        Dwarf_Word number;
        Dwarf_Files *files;
        size_t count;
        if (s->dw.dwarf_attr_integrate(die, DW_AT_call_line, &attr) &&
            s->dw.dwarf_formudata(&attr, &number) == 0)
                ret->line = (uint32_t)number;
        if (s->dw.dwarf_attr_integrate(die, DW_AT_call_file, &attr) &&
            s->dw.dwarf_formudata(&attr, &number) == 0 &&
            s->dw.dwarf_getsrcfiles(cu, &files, &count) == 0 && number < count)
                set_text(s->dw.dwarf_filesrc(files, number, NULL, NULL), ret->file,
                         sizeof ret->file);
}

/* ret[0] has the line already; each function that was inlined takes the place in front of the one
 * that it was inlined into. */
static size_t add_inlines(const struct afz_symbols *s, Dwarf_Die *cu, uint64_t address,
                          struct afz_symbol *ret, size_t cap)
{
        Dwarf_Die *inner = NULL, *scope = NULL;
        size_t n = 0;
        bool named = false;
        if (s->dw.dwarf_getscopes(cu, address, &inner) <= 0)
                return 0;
        int scopes = s->dw.dwarf_getscopes_die(&inner[0], &scope);
        for (int i = 0; i < scopes && !named; i++) {
                int tag = s->dw.dwarf_tag(&scope[i]);
                if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
                        continue;
                set_function(s, name_of_die(s, &scope[i]), &ret[n]);
                named = tag == DW_TAG_subprogram;
                if (named)
                        break;
                struct afz_symbol outer = {0};
                set_call(s, cu, &scope[i], &outer);
                if (n + 1 < cap)
                        n++;
                ret[n] = outer;
        }
        free(inner);
        free(scope);
        return named ? n + 1 : 0;
}

int afz_symbols_find(struct afz_symbols *s, const struct afz_symbol_module *module,
                     uint64_t address, struct afz_symbol *ret, size_t cap)
{
        const struct file *f = file_of(s, module);
        Dwarf_Addr bias = 0, at = f ? address + f->bias : 0;
        GElf_Off offset;
        GElf_Sym symbol;
        int line = 0;
        if (!f || !f->module || cap == 0)
                return 0;
        memset(ret, 0, cap * sizeof *ret);
        const char *name =
                s->dw.dwfl_module_addrinfo(f->module, at, &offset, &symbol, NULL, NULL, NULL);
        Dwfl_Line *source = s->dw.dwfl_module_getsrc(f->module, at);
        if (source) {
                set_text(s->dw.dwfl_lineinfo(source, NULL, &line, NULL, NULL, NULL), ret->file,
                         sizeof ret->file);
                ret->line = line > 0 ? (uint32_t)line : 0;
        }
        Dwarf_Die *cu = s->dw.dwfl_module_addrdie(f->module, at, &bias);
        size_t n = cu ? add_inlines(s, cu, at - bias, ret, cap) : 0;
        if (n == 0) {
                set_function(s, name, ret);
                n = ret->function[0] || ret->file[0];
        }
        return (int)n;
}

#else

int afz_symbols_new(struct afz_symbols **ret)
{
        (void)ret;
        return -ENOTSUP;
}

void afz_symbols_free(struct afz_symbols *symbols)
{
        (void)symbols;
}

int afz_symbols_find(struct afz_symbols *symbols, const struct afz_symbol_module *module,
                     uint64_t address, struct afz_symbol *ret, size_t cap)
{
        (void)symbols, (void)module, (void)address, (void)ret, (void)cap;
        return 0;
}

#endif
