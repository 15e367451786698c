#include "symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_symbols.h"
#include "span.h"
#include "symbol_lines.h"

enum { MODULES = 128 }; /* files that are open; a job has some hundred, and few of them allocate */

struct file {
        char *path;
        unsigned char *build_id; /* that was wanted */
        size_t build_id_bytes;
        struct afz_elf_symbols *table;  /* NULL: there is nothing in it for us */
        struct afz_symbol_lines *lines; /* NULL: it has none */
};

struct afz_symbols {
        void *cxx; /* libstdc++, for its demangler; NULL: none */
        char *(*demangle)(const char *name, char *buf, size_t *size, int *status);
        unsigned files;
        struct file file[MODULES];
};

int afz_symbols_new(struct afz_symbols **ret)
{
        struct afz_symbols *s = calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        s->cxx = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
        void *symbol = s->cxx ? dlsym(s->cxx, "__cxa_demangle") : NULL;
        memcpy(&s->demangle, &symbol, sizeof symbol);
        *ret = s;
        return 0;
}

void afz_symbols_free(struct afz_symbols *s)
{
        if (!s)
                return;
        for (unsigned i = 0; i < s->files; i++) {
                afz_elf_symbols_free(s->file[i].table);
                afz_symbol_lines_free(s->file[i].lines);
                free(s->file[i].build_id);
                free(s->file[i].path);
        }
        if (s->cxx)
                dlclose(s->cxx);
        free(s);
}

/* ---- names ---- */

/* As it is written; what cannot be taken apart stays as it is. */
static void put_name(void *ctx, const char *name, char *ret, size_t cap)
{
        const struct afz_symbols *s = ctx;
        int status = -1;
        char *plain = s->demangle && strncmp(name, "_Z", 2) == 0
                              ? s->demangle(name, NULL, NULL, &status)
                              : NULL;
        afz_span_copy(afz_span_str(plain ? plain : name), ret, cap);
        free(plain);
}

/* ---- files ---- */

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

static bool is_same_build(const struct afz_elf_symbols *table,
                          const struct afz_symbol_module *wanted)
{
        const unsigned char *bits;
        size_t bytes = afz_elf_build_id(table, &bits);
        return wanted->build_id_bytes == 0 ||
               (bytes >= wanted->build_id_bytes &&
                memcmp(bits, wanted->build_id, wanted->build_id_bytes) == 0);
}

static void open_file(struct afz_symbols *s, const struct afz_symbol_module *wanted, struct file *f)
{
        struct afz_elf_symbols *table;
        int fd = open_plain(wanted->path);
        if (fd < 0)
                return;
        if (afz_elf_symbols_new(fd, &table) < 0) {
                close(fd);
                return;
        }
        if (!is_same_build(table, wanted)) {
                afz_elf_symbols_free(table);
                return;
        }
        f->table = table;
        if (afz_elf_has_lines(table) && (fd = open_plain(wanted->path)) >= 0)
                f->lines = afz_symbol_lines_new(wanted->path, fd,
                                                &(struct afz_symbol_namer){put_name, s});
}

/* A program that is built anew has the path of the one before. */
static bool is_file(const struct file *f, const struct afz_symbol_module *wanted)
{
        return strcmp(f->path, wanted->path) == 0 && f->build_id_bytes == wanted->build_id_bytes &&
               (f->build_id_bytes == 0 ||
                memcmp(f->build_id, wanted->build_id, f->build_id_bytes) == 0);
}

static const struct file *file_of(struct afz_symbols *s, const struct afz_symbol_module *wanted)
{
        for (unsigned i = 0; i < s->files; i++)
                if (is_file(&s->file[i], wanted))
                        return &s->file[i];
        size_t bytes = wanted->build_id_bytes;
        char *path = s->files < MODULES ? strdup(wanted->path) : NULL;
        unsigned char *build_id = path && bytes > 0 ? malloc(bytes) : NULL;
        if (!path || (bytes > 0 && !build_id)) {
                free(path);
                return NULL;
        }
        if (bytes > 0)
                memcpy(build_id, wanted->build_id, bytes);
        struct file *f = &s->file[s->files++];
        *f = (struct file){.path = path, .build_id = build_id, .build_id_bytes = bytes};
        open_file(s, wanted, f);
        return f;
}

int afz_symbols_find(struct afz_symbols *s, const struct afz_symbol_module *module,
                     uint64_t address, struct afz_symbol *ret, size_t cap)
{
        const struct file *f = file_of(s, module);
        char name[4096]; /* templates are long, and what is cut cannot be taken apart */
        if (!f || !f->table || cap == 0)
                return 0;
        memset(ret, 0, cap * sizeof *ret);
        size_t n = f->lines ? afz_symbol_lines_find(f->lines, address, ret, cap) : 0;
        if (n > 0)
                return (int)n;
        if (afz_elf_function(f->table, address, name, sizeof name))
                put_name(s, name, ret->function, sizeof ret->function);
        return ret->function[0] || ret->file[0];
}
