#include "py_elf.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
        MOST_HEADERS = 64,  /* program headers; an interpreter has a dozen */
        MOST_DYNAMIC = 256, /* entries of the dynamic section; it has some 30 */
        MOST_CHAIN = 4096,  /* symbols with the same hash bucket; it has three */
        NAME_CAP = 64,
};

static int read_header(const struct afz_py_memory *m, uint64_t base, Elf64_Ehdr *ret)
{
        const unsigned char data =
                __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
        int r = afz_py_read(m, base, ret, sizeof *ret);
        if (r < 0)
                return r;
        if (memcmp(ret->e_ident, ELFMAG, SELFMAG) != 0 || ret->e_ident[EI_CLASS] != ELFCLASS64 ||
            ret->e_ident[EI_DATA] != data || (ret->e_type != ET_EXEC && ret->e_type != ET_DYN) ||
            ret->e_phentsize != sizeof(Elf64_Phdr) || ret->e_phnum > MOST_HEADERS)
                return -EBADMSG;
        return 0;
}

/* Where the object lies (by the segment that begins with the header), and its dynamic section. */
static int read_segments(const struct afz_py_memory *m, uint64_t base, const Elf64_Ehdr *header,
                         uint64_t *ret_bias, Elf64_Phdr *ret_dynamic)
{
        bool has_bias = false, has_dynamic = false;
        for (unsigned i = 0; i < header->e_phnum; i++) {
                Elf64_Phdr segment;
                int r = afz_py_read(m, base + header->e_phoff + i * sizeof segment, &segment,
                                    sizeof segment);
                if (r < 0)
                        return r;
                if (segment.p_type == PT_LOAD && segment.p_offset == 0 && !has_bias) {
                        *ret_bias = base - segment.p_vaddr;
                        has_bias = true;
                } else if (segment.p_type == PT_DYNAMIC && !has_dynamic) {
                        *ret_dynamic = segment;
                        has_dynamic = true;
                }
        }
        return has_bias && has_dynamic ? 0 : -EBADMSG;
}

/* The dynamic linker makes real addresses of these in place, on most machines and not for every
 * object. */
static uint64_t relocated(const struct afz_py_elf *elf, uint64_t address)
{
        return address < elf->bias ? address + elf->bias : address;
}

static int read_dynamic(const struct afz_py_memory *m, uint64_t at, uint64_t bytes,
                        struct afz_py_elf *elf)
{
        uint64_t entries = bytes / sizeof(Elf64_Dyn);
        for (uint64_t i = 0; i < entries && i < MOST_DYNAMIC; i++) {
                Elf64_Dyn d;
                int r = afz_py_read(m, at + i * sizeof d, &d, sizeof d);
                if (r < 0)
                        return r;
                if (d.d_tag == DT_NULL)
                        break;
                if (d.d_tag == DT_SYMTAB)
                        elf->symbols = relocated(elf, d.d_un.d_ptr);
                else if (d.d_tag == DT_STRTAB)
                        elf->strings = relocated(elf, d.d_un.d_ptr);
                else if (d.d_tag == DT_GNU_HASH)
                        elf->hash = relocated(elf, d.d_un.d_ptr);
        }
        return elf->symbols != 0 && elf->strings != 0 && elf->hash != 0 ? 0 : -EBADMSG;
}

int afz_py_elf_open(const struct afz_py_memory *m, uint64_t base, struct afz_py_elf *ret)
{
        struct afz_py_elf elf = {0};
        Elf64_Ehdr header;
        Elf64_Phdr dynamic = {0};
        int r = read_header(m, base, &header);
        if (r == 0)
                r = read_segments(m, base, &header, &elf.bias, &dynamic);
        if (r == 0)
                r = read_dynamic(m, elf.bias + dynamic.p_vaddr, dynamic.p_memsz, &elf);
        if (r == 0)
                *ret = elf;
        return r;
}

static uint32_t hash_of(const char *name)
{
        uint32_t h = 5381;
        for (; *name; name++)
                h = h * 33 + (unsigned char)*name;
        return h;
}

/* 1: it is this one, and defined here; 0: it isn't. */
static int is_symbol(const struct afz_py_memory *m, const struct afz_py_elf *elf, uint64_t index,
                     const char *name, uint64_t *ret)
{
        char text[NAME_CAP];
        size_t bytes = strlen(name) + 1;
        Elf64_Sym symbol;
        int r = afz_py_read(m, elf->symbols + index * sizeof symbol, &symbol, sizeof symbol);
        if (r == 0)
                r = afz_py_read(m, elf->strings + symbol.st_name, text, bytes);
        if (r < 0)
                return r == -EFAULT ? 0 : r;
        if (memcmp(text, name, bytes) != 0 || symbol.st_shndx == SHN_UNDEF)
                return 0;
        *ret = elf->bias + symbol.st_value;
        return 1;
}

int afz_py_elf_find(const struct afz_py_memory *m, const struct afz_py_elf *elf, const char *name,
                    uint64_t *ret)
{
        struct {
                uint32_t buckets, first, filters, shift;
        } head;
        uint32_t h = hash_of(name), index, link;
        int r = afz_py_read(m, elf->hash, &head, sizeof head);
        if (r < 0)
                return r;
        if (head.buckets == 0 || strlen(name) >= NAME_CAP)
                return -ENOENT;
        uint64_t buckets = elf->hash + sizeof head + UINT64_C(8) * head.filters;
        uint64_t chains = buckets + UINT64_C(4) * head.buckets;
        r = afz_py_read_u32(m, buckets + UINT64_C(4) * (h % head.buckets), &index);
        if (r < 0 || index < head.first)
                return r < 0 ? r : -ENOENT;
        for (unsigned i = 0; i < MOST_CHAIN; i++, index++) {
                r = afz_py_read_u32(m, chains + UINT64_C(4) * (index - head.first), &link);
                if (r == 0 && (link | 1) == (h | 1))
                        r = is_symbol(m, elf, index, name, ret);
                if (r != 0)
                        return r < 0 ? r : 0;
                if (link & 1)
                        break;
        }
        return -ENOENT;
}
