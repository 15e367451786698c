#include "module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probe.h"

enum {
        NOTE_BYTES = 256, /* of a PT_NOTE segment that are looked at */
        PATH_PIECE = 64,  /* a path is copied by this much: it may end with the page */
        PATH_CAP = 512,
};

/* As glibc has had it since 2.35, on both machines. */
struct find_object {
        unsigned long long flags;
        void *map_start, *map_end;
        struct link_map *link_map;
        void *eh_frame;
        unsigned long long reserved[7];
};

static struct {
        struct known {
                struct afz_module m;
                _Atomic uint32_t ready; /* 1: it is there; 2: it was, and was unloaded */
                uint32_t build_id_bytes;
                unsigned char build_id[AFZ_BOOK_BUILD_ID];
        } known[AFZ_BOOK_MODULES];
        _Atomic uint32_t count;
        unsigned long long unloaded; /* the loader's count of them */
        _Atomic int is_child;
        int (*find_object)(void *, struct find_object *);
        char program[AFZ_BOOK_MODULE_PATH]; /* the loader has no path for it */
} modules;

uint64_t afz_read_self(uint64_t at, void *buf, uint64_t size)
{
        struct iovec to = {buf, size}, from = {(void *)(uintptr_t)at, size}; /* NOLINT */
        ssize_t n = process_vm_readv(afz_pid(), &to, 1, &from, 1, 0);
        return n > 0 ? (uint64_t)n : 0;
}

/* ---- what the loader says ---- */

/* The note's bytes are in memory with the module's first pages. */
static uint32_t take_build_id(const unsigned char *note, uint64_t size, unsigned char *ret)
{
        uint64_t at = 0;
        while (size - at >= 12) {
                uint32_t head[3]; /* sizes of name and value, type */
                memcpy(head, note + at, sizeof head);
                uint64_t value = at + 12 + (((uint64_t)head[0] + 3) & ~UINT64_C(3));
                uint64_t next = value + (((uint64_t)head[1] + 3) & ~UINT64_C(3));
                if (value > size || head[1] > size - value)
                        return 0;
                if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 &&
                    memcmp(note + at + 12, "GNU", 4) == 0) {
                        uint32_t n = head[1] < AFZ_BOOK_BUILD_ID ? head[1] : AFZ_BOOK_BUILD_ID;
                        memcpy(ret, note + value, n);
                        return n;
                }
                if (next > size)
                        return 0;
                at = next;
        }
        return 0;
}

static void read_segments(const ElfW(Phdr) * header, unsigned headers, uint64_t shift,
                          struct known *ret)
{
        struct afz_module *m = &ret->m;
        unsigned char note[NOTE_BYTES];
        m->base = UINT64_MAX;
        m->shift = shift;
        for (unsigned i = 0; i < headers; i++) {
                const ElfW(Phdr) *p = &header[i];
                uint64_t from = shift + p->p_vaddr, to = from + p->p_memsz;
                if (p->p_type == PT_GNU_EH_FRAME)
                        m->unwind = from;
                if (p->p_type == PT_DYNAMIC)
                        m->dynamic = from;
                if (p->p_type == PT_NOTE && ret->build_id_bytes == 0) {
                        uint64_t n = p->p_memsz < sizeof note ? p->p_memsz : sizeof note;
                        ret->build_id_bytes =
                                take_build_id(note, afz_read_self(from, note, n), ret->build_id);
                }
                if (p->p_type != PT_LOAD)
                        continue;
                m->base = from < m->base ? from : m->base;
                m->end = to > m->end ? to : m->end;
        }
}

/* ---- what we know ---- */

static void copy_path(const struct afz_module *m, char *ret)
{
        char path[PATH_CAP];
        uint64_t have = 0;
        while (have + PATH_PIECE < sizeof path) {
                uint64_t want = PATH_PIECE - ((uintptr_t)m->path + have) % PATH_PIECE;
                uint64_t n = afz_read_self((uintptr_t)m->path + have, path + have, want);
                const void *end = memchr(path + have, '\0', n);
                if (end || n != want) {
                        have = end ? (uint64_t)((const char *)end - path) : have + n;
                        break;
                }
                have += n;
        }
        path[have] = '\0';
        const char *from = have == 0 ? modules.program : path;
        size_t size = strlen(from),
               cut = size < AFZ_BOOK_MODULE_PATH - 1 ? 0 : size - (AFZ_BOOK_MODULE_PATH - 1);
        memcpy(ret, from + cut, size - cut);
}

static void write_down(struct afz_book *book, const struct known *k)
{
        uint32_t at = atomic_fetch_add(&book->modules, 1);
        if (at >= AFZ_BOOK_MODULES) {
                atomic_store(&book->modules, AFZ_BOOK_MODULES);
                return;
        }
        struct afz_book_module *m = &book->module[at];
        m->end = k->m.end;
        m->shift = k->m.shift;
        m->since_ns = afz_now_ns();
        memcpy(m->build_id, k->build_id, sizeof m->build_id);
        m->build_id_bytes = k->build_id_bytes;
        copy_path(&k->m, m->path);
        atomic_store_explicit(&m->base, k->m.base, memory_order_release);
}

/* One that was unloaded and is back where it was: plugins come and go by the hundred. */
static struct known *find_again(const struct known *found)
{
        uint32_t count = atomic_load(&modules.count);
        for (uint32_t i = 0; i < count; i++) {
                struct known *k = &modules.known[i];
                uint32_t gone = 2;
                if (k->m.base == found->m.base && k->m.end == found->m.end &&
                    k->m.unwind == found->m.unwind &&
                    memcmp(k->build_id, found->build_id, sizeof k->build_id) == 0 &&
                    atomic_compare_exchange_strong(&k->ready, &gone, 1))
                        return k;
        }
        return NULL;
}

static struct known *note_module(struct afz_book *book, const struct known *found)
{
        struct known *again = find_again(found);
        if (again)
                return again;
        uint32_t at = atomic_load(&modules.count);
        do {
                if (at >= AFZ_BOOK_MODULES)
                        return NULL;
        } while (!atomic_compare_exchange_weak(&modules.count, &at, at + 1));
        struct known *k = &modules.known[at];
        k->m = found->m;
        k->build_id_bytes = found->build_id_bytes;
        memcpy(k->build_id, found->build_id, sizeof k->build_id);
        atomic_store_explicit(&k->ready, 1, memory_order_release);
        if (book)
                write_down(book, k);
        return k;
}

static struct known *find_known(uint64_t pc)
{
        uint32_t count = atomic_load(&modules.count);
        for (uint32_t i = 0; i < count; i++) {
                struct known *k = &modules.known[i];
                if (atomic_load_explicit(&k->ready, memory_order_acquire) == 1 && pc >= k->m.base &&
                    pc < k->m.end)
                        return k;
        }
        return NULL;
}

/* ---- asking the loader ---- */

struct search {
        uint64_t pc;
        struct known found;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
        struct search *s = data;
        struct known k = {.m.path = info->dlpi_name};
        (void)size;
        read_segments(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, &k);
        if (s->pc < k.m.base || s->pc >= k.m.end)
                return 0;
        s->found = k;
        return 1;
}

/* The headers lie at the start of the first segment, as every linker puts them; read through the
 * kernel, as the module may be on its way out. */
static int ask_quickly(uint64_t pc, struct known *ret)
{
        struct find_object o;
        struct link_map map;
        ElfW(Ehdr) head;
        ElfW(Phdr) header[16];
        if (modules.find_object((void *)(uintptr_t)pc, &o) != 0) /* NOLINT */
                return -1;
        uint64_t base = (uintptr_t)o.map_start;
        if (afz_read_self((uintptr_t)o.link_map, &map, offsetof(struct link_map, l_ld)) !=
                    offsetof(struct link_map, l_ld) ||
            afz_read_self(base, &head, sizeof head) != sizeof head ||
            memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof header[0])
                return -1;
        unsigned n = head.e_phnum < 16 ? head.e_phnum : 16;
        if (afz_read_self(base + head.e_phoff, header, n * sizeof header[0]) !=
            n * sizeof header[0])
                return -1;
        read_segments(header, n, map.l_addr, ret);
        ret->m.path = map.l_name;
        return pc >= ret->m.base && pc < ret->m.end ? 0 : -1;
}

static int ask_loader(uint64_t pc, struct known *ret)
{
        struct search s = {.pc = pc};
        if (modules.find_object)
                return ask_quickly(pc, ret);
        if (atomic_load(&modules.is_child) || dl_iterate_phdr(visit, &s) != 1)
                return -1;
        *ret = s.found;
        return 0;
}

int afz_module_find(struct afz_book *book, uint64_t pc, struct afz_module *ret)
{
        struct known *k = find_known(pc), found = {0};
        if (!k && ask_loader(pc, &found) == 0) {
                *ret = found.m;
                (void)note_module(book, &found);
                return 0;
        }
        if (!k)
                return -1;
        *ret = k->m;
        return 0;
}

/* ---- functions ---- */

/* The loader has made addresses of these where it can write; else they are the file's. */
static const void *table_of(const struct afz_module *m, ElfW(Sxword) tag)
{
        const ElfW(Dyn) *d = (const ElfW(Dyn) *)(uintptr_t)m->dynamic; /* NOLINT */
        for (; d && d->d_tag != DT_NULL; d++)
                if (d->d_tag == tag)
                        return (const void *)(uintptr_t)(d->d_un.d_ptr < m->base /* NOLINT */
                                                                 ? d->d_un.d_ptr + m->shift
                                                                 : d->d_un.d_ptr);
        return NULL;
}

/* How many there are nobody has written down: the last chain of the hash table ends with the last
 * of them. */
static uint32_t count_symbols(const uint32_t *hash)
{
        uint32_t buckets = hash[0], first = hash[1], last = 0;
        const uint32_t *bucket = hash + 4 + (size_t)hash[2] * (sizeof(ElfW(Addr)) / 4);
        const uint32_t *chain = bucket + buckets;
        for (uint32_t i = 0; i < buckets; i++)
                last = bucket[i] > last ? bucket[i] : last;
        if (last < first)
                return 0;
        while (!(chain[last - first] & 1))
                last++;
        return last + 1;
}

const char *afz_module_function(const struct afz_module *module, uint64_t pc)
{
        const ElfW(Sym) *symbol = table_of(module, DT_SYMTAB);
        const char *names = table_of(module, DT_STRTAB);
        const uint32_t *hash = table_of(module, DT_GNU_HASH);
        uint64_t at = pc - module->shift;
        if (!symbol || !names || !hash)
                return NULL;
        for (uint32_t i = hash[1], count = count_symbols(hash); i < count; i++)
                if (symbol[i].st_shndx != SHN_UNDEF && at >= symbol[i].st_value &&
                    at - symbol[i].st_value < symbol[i].st_size)
                        return names + symbol[i].st_name;
        return NULL;
}

/* ---- all of them ---- */

static int note_each(struct dl_phdr_info *info, size_t size, void *data)
{
        struct known k = {.m.path = info->dlpi_name};
        (void)size;
        (void)data;
        modules.unloaded = info->dlpi_subs;
        read_segments(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, &k);
        if (k.m.base < k.m.end)
                (void)note_module(NULL, &k);
        return 0;
}

void afz_module_start(void)
{
        void *found = dlsym(RTLD_DEFAULT, "_dl_find_object");
        memcpy(&modules.find_object, &found, sizeof found);
        ssize_t n = readlink("/proc/self/exe", modules.program, sizeof modules.program - 1);
        modules.program[n > 0 ? n : 0] = '\0';
        (void)dl_iterate_phdr(note_each, NULL);
}

void afz_module_after_fork(void)
{
        atomic_store(&modules.is_child, 1);
}

void afz_module_fill(struct afz_book *book)
{
        uint32_t count = atomic_load(&modules.count);
        for (uint32_t i = 0; i < count; i++)
                if (atomic_load_explicit(&modules.known[i].ready, memory_order_acquire) == 1)
                        write_down(book, &modules.known[i]);
}

struct census {
        unsigned long long unloaded;
        bool there[AFZ_BOOK_MODULES];
};

static int mark_each(struct dl_phdr_info *info, size_t size, void *data)
{
        struct census *c = data;
        struct known k = {0};
        (void)size;
        c->unloaded = info->dlpi_subs;
        if (c->unloaded == modules.unloaded)
                return 1;
        read_segments(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, &k);
        uint32_t count = atomic_load(&modules.count);
        for (uint32_t i = 0; i < count; i++)
                c->there[i] |= modules.known[i].m.base == k.m.base &&
                               modules.known[i].m.end == k.m.end &&
                               modules.known[i].m.path == info->dlpi_name;
        return 0;
}

int afz_module_closed(void)
{
        struct census c = {0};
        uint32_t count = atomic_load(&modules.count);
        (void)dl_iterate_phdr(mark_each, &c);
        if (c.unloaded == modules.unloaded)
                return 0;
        modules.unloaded = c.unloaded;
        for (uint32_t i = 0; i < count; i++) {
                uint32_t there = 1;
                if (!c.there[i])
                        (void)atomic_compare_exchange_strong(&modules.known[i].ready, &there, 2);
        }
        return 1;
}
