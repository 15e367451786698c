#include "elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bounds for files that are no real ones: what is beyond is taken for damage. */
enum {
        SECTIONS = 4096,
        SYMBOLS = 8 << 20, /* the largest libraries have two million */
        NAMES = 64 << 10,  /* bytes of sections' names */
        NOTE = 4096,       /* bytes of a note */
        CHUNK = 2048,      /* symbols that are read at a time */
        BUILD_ID = 64,
        BY_HAND = 4096, /* bytes of a function without a size */
};

struct afz_elf_symbols {
        int fd;
        bool has_lines;
        unsigned char build_id[BUILD_ID];
        size_t build_id_bytes;
        Elf64_Shdr table, text; /* the symbols, and their names */
        uint64_t *index;        /* (address - table's lowest) << 32 | number; in order */
        size_t count;
        uint64_t lowest;
};

/* All of it or nothing. */
static int read_at(int fd, uint64_t at, void *buf, size_t bytes)
{
        if (at > INT64_MAX - bytes)
                return -EBADMSG;
        for (size_t done = 0; done < bytes;) {
                ssize_t n = pread(fd, (char *)buf + done, bytes - done, (off_t)(at + done));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EBADMSG;
                done += (size_t)n;
        }
        return 0;
}

/* ---- sections ---- */

static bool is_ours(const Elf64_Ehdr *head)
{
        const unsigned char order =
                __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
        return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
               head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_ident[EI_DATA] == order;
}

static int read_sections(int fd, Elf64_Shdr **ret, unsigned *ret_count, Elf64_Shdr *ret_names)
{
        Elf64_Ehdr head;
        int r = read_at(fd, 0, &head, sizeof head);
        if (r < 0)
                return r;
        if (!is_ours(&head))
                return -EBADMSG;
        *ret = NULL;
        *ret_count = 0;
        if (head.e_shnum == 0) /* stripped of all that the loader does not need */
                return 0;
        if (head.e_shnum > SECTIONS || head.e_shentsize != sizeof **ret)
                return -EBADMSG;
        Elf64_Shdr *section = calloc(head.e_shnum, sizeof *section);
        if (!section)
                return -ENOMEM;
        r = read_at(fd, head.e_shoff, section, head.e_shnum * sizeof *section);
        if (r < 0) {
                free(section);
                return r;
        }
        *ret_names = (Elf64_Shdr){0};
        if (head.e_shstrndx < head.e_shnum)
                *ret_names = section[head.e_shstrndx];
        *ret = section;
        *ret_count = head.e_shnum;
        return 0;
}

static bool is_named(const char *names, size_t bytes, uint32_t at, const char *name)
{
        size_t n = strlen(name) + 1;
        return at < bytes && n <= bytes - at && memcmp(names + at, name, n) == 0;
}

static bool find_lines(int fd, const Elf64_Shdr *section, unsigned count, const Elf64_Shdr *names)
{
        bool found = false;
        size_t bytes = names->sh_size < NAMES ? names->sh_size : NAMES;
        char *text = bytes ? malloc(bytes) : NULL;
        if (text && read_at(fd, names->sh_offset, text, bytes) == 0)
                for (unsigned i = 0; i < count && !found; i++)
                        found = section[i].sh_type != SHT_NOBITS &&
                                (is_named(text, bytes, section[i].sh_name, ".debug_info") ||
                                 is_named(text, bytes, section[i].sh_name, ".zdebug_info"));
        free(text);
        return found;
}

static void find_build_id(struct afz_elf_symbols *s, const Elf64_Shdr *note)
{
        unsigned char bytes[NOTE];
        Elf64_Nhdr head;
        size_t n = note->sh_size < NOTE ? note->sh_size : NOTE;
        if (read_at(s->fd, note->sh_offset, bytes, n) < 0)
                return;
        for (size_t at = 0; s->build_id_bytes == 0 && n - at >= sizeof head;) {
                memcpy(&head, bytes + at, sizeof head);
                size_t name = at + sizeof head, left = n - name;
                size_t name_bytes = ((size_t)head.n_namesz + 3) & ~(size_t)3;
                size_t id_bytes = ((size_t)head.n_descsz + 3) & ~(size_t)3;
                if (name_bytes > left || id_bytes > left - name_bytes)
                        return;
                if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
                    memcmp(bytes + name, "GNU", 4) == 0 && head.n_descsz <= BUILD_ID) {
                        memcpy(s->build_id, bytes + name + name_bytes, head.n_descsz);
                        s->build_id_bytes = head.n_descsz;
                }
                at = name + name_bytes + id_bytes;
        }
}

/* ---- the index ---- */

static bool is_function(const Elf64_Sym *sym)
{
        unsigned type = ELF64_ST_TYPE(sym->st_info);
        return (type == STT_FUNC || type == STT_GNU_IFUNC) && sym->st_shndx != SHN_UNDEF &&
               sym->st_value != 0;
}

/* Calls for each function of the table; what cannot be read ends it. */
static void walk(const struct afz_elf_symbols *s, void (*each)(void *, const Elf64_Sym *, uint32_t),
                 void *ctx)
{
        Elf64_Sym sym[CHUNK];
        uint64_t count = s->table.sh_size / sizeof *sym;
        if (count > SYMBOLS)
                return;
        for (uint64_t first = 0; first < count; first += CHUNK) {
                size_t n = count - first < CHUNK ? (size_t)(count - first) : CHUNK;
                if (read_at(s->fd, s->table.sh_offset + first * sizeof *sym, sym, n * sizeof *sym) <
                    0)
                        return;
                for (size_t i = 0; i < n; i++)
                        if (is_function(&sym[i]))
                                each(ctx, &sym[i], (uint32_t)(first + i));
        }
}

static void measure(void *ctx, const Elf64_Sym *sym, uint32_t number)
{
        struct afz_elf_symbols *s = ctx;
        (void)number;
        s->count++;
        if (sym->st_value < s->lowest)
                s->lowest = sym->st_value;
}

struct filling {
        struct afz_elf_symbols *s;
        size_t cap;
};

static void fill(void *ctx, const Elf64_Sym *sym, uint32_t number)
{
        struct filling *f = ctx;
        uint64_t at = sym->st_value - f->s->lowest;
        if (sym->st_value >= f->s->lowest && at <= UINT32_MAX && f->s->count < f->cap)
                f->s->index[f->s->count++] = at << 32 | number;
}

static int by_address(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

/* Twice over the table: the second time into as much room as the first has found. */
static int make_index(struct afz_elf_symbols *s)
{
        s->lowest = UINT64_MAX;
        walk(s, measure, s);
        struct filling f = {.s = s, .cap = s->count};
        s->count = 0;
        s->index = f.cap ? malloc(f.cap * sizeof *s->index) : NULL;
        if (f.cap == 0)
                return 0;
        if (!s->index)
                return -ENOMEM;
        walk(s, fill, &f);
        qsort(s->index, s->count, sizeof *s->index, by_address);
        return 0;
}

/* ---- the file ---- */

static void choose(struct afz_elf_symbols *s, const Elf64_Shdr *section, unsigned count)
{
        for (unsigned i = 0; i < count; i++) {
                const Elf64_Shdr *t = &section[i];
                if (t->sh_type == SHT_NOTE && s->build_id_bytes == 0)
                        find_build_id(s, t);
                /* All functions rather than those that are exported. */
                if ((t->sh_type != SHT_SYMTAB &&
                     (t->sh_type != SHT_DYNSYM || s->table.sh_type == SHT_SYMTAB)) ||
                    t->sh_entsize != sizeof(Elf64_Sym) || t->sh_link >= count)
                        continue;
                s->table = *t;
                s->text = section[t->sh_link];
        }
}

int afz_elf_symbols_new(int fd, struct afz_elf_symbols **ret)
{
        Elf64_Shdr *section, names;
        unsigned count;
        struct afz_elf_symbols *s = calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        s->fd = -1;
        int r = read_sections(fd, &section, &count, &names);
        if (r >= 0) {
                s->fd = fd;
                choose(s, section, count);
                s->has_lines = count > 0 && find_lines(fd, section, count, &names);
                r = make_index(s);
                free(section);
        }
        if (r < 0) {
                s->fd = -1; /* it stays the caller's */
                afz_elf_symbols_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

void afz_elf_symbols_free(struct afz_elf_symbols *s)
{
        if (!s)
                return;
        if (s->fd >= 0)
                close(s->fd);
        free(s->index);
        free(s);
}

bool afz_elf_has_lines(const struct afz_elf_symbols *s)
{
        return s->has_lines;
}

size_t afz_elf_build_id(const struct afz_elf_symbols *s, const unsigned char **ret)
{
        *ret = s->build_id;
        return s->build_id_bytes;
}

/* ---- asking ---- */

/* The number of functions that begin at or before it. */
static size_t at_or_before(const struct afz_elf_symbols *s, uint64_t at)
{
        size_t low = 0, high = s->count;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (s->index[middle] >> 32 <= at)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool read_symbol(const struct afz_elf_symbols *s, size_t i, Elf64_Sym *ret)
{
        uint64_t number = s->index[i] & UINT32_MAX;
        return read_at(s->fd, s->table.sh_offset + number * sizeof *ret, ret, sizeof *ret) == 0;
}

static bool read_name(const struct afz_elf_symbols *s, uint32_t at, char *ret, size_t cap)
{
        uint64_t left = at < s->text.sh_size ? s->text.sh_size - at : 0;
        size_t n = left < cap ? (size_t)left : cap;
        if (n == 0 || read_at(s->fd, s->text.sh_offset + at, ret, n) < 0)
                return false;
        ret[n - 1] = '\0';
        return ret[0] != '\0';
}

bool afz_elf_function(const struct afz_elf_symbols *s, uint64_t address, char *ret, size_t cap)
{
        if (address < s->lowest || s->count == 0 || cap == 0)
                return false;
        /* Some have several names, and what is inside of another is rare: a few are looked at. */
        size_t n = at_or_before(s, address - s->lowest);
        for (size_t i = n; i > 0 && n - i < 4; i--) {
                Elf64_Sym sym;
                if (!read_symbol(s, i - 1, &sym))
                        return false;
                uint64_t into = address - s->lowest - (s->index[i - 1] >> 32);
                /* One without a size, written by hand, goes to the next. */
                if (into < sym.st_size || (sym.st_size == 0 && i == n && into < BY_HAND))
                        return read_name(s, sym.st_name, ret, cap);
        }
        return false;
}
