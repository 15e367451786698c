#ifndef AFZ_ELF_SYMBOLS_H
#define AFZ_ELF_SYMBOLS_H
/* The functions of a program or library file, by address: its symbol table (what it exports, where
 * it was stripped), read once into an index of 8 bytes a function. Libraries of deep learning have
 * a million of them; whoever walks the table for each question is too slow.
 *
 * The file is read, not mapped: one that is cut meanwhile gives nothing, and kills nobody. All of
 * it is checked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct afz_elf_symbols;

/* Takes the descriptor over when it succeeds. -EBADMSG: no ELF64 of this machine's byte order, or a
 * damaged one; -ENOMEM; or as read(). A file without a table is fine, and knows nothing. */
int afz_elf_symbols_new(int fd, struct afz_elf_symbols **ret);
void afz_elf_symbols_free(struct afz_elf_symbols *symbols); /* NULL is fine */

/* Whether it has lines: there is something for libdw in it. */
bool afz_elf_has_lines(const struct afz_elf_symbols *symbols);

/* Its build id, up to so many bytes; how many it has. */
size_t afz_elf_build_id(const struct afz_elf_symbols *symbols, const unsigned char **ret);

/* The function at an address of the file, as the file calls it (mangled); false: not known. */
bool afz_elf_function(const struct afz_elf_symbols *symbols, uint64_t address, char *ret,
                      size_t cap);

#endif
